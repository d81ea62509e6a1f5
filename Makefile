# `make demo` and `make test` need Python 3.11, pip, git and make; everything else is installed here.
SHELL := /bin/bash
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
# A machine without an NVIDIA driver takes the pinned CPU build of torch; one with a driver takes the newest CUDA build.
CONSTRAINTS := $(if $(shell command -v nvidia-smi 2>/dev/null),,-c requirements/cpu.txt)
# Two OpenMP threads that wait for each other are far slower than one; processes use the other cores.
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: install demo test test-slow test-browser test-vllm test-ray test-verl test-oracles test-ocr compare-graders golden lint format clean
.DEFAULT_GOAL := test

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml requirements/cpu.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(CONSTRAINTS) -e '.[all,dev]'
	touch $@

demo: install
	$(BIN)/npbench demo --out demo

test: install lint
	$(BIN)/python -m pytest -n auto

# Agreement of losses and reward calls with TRL and verl, each in an environment of its own.
test-oracles:
	set -euo pipefail; for lib in trl verl; do \
	  test -x .venv-oracles-$$lib/bin/python || $(PYTHON) -m venv .venv-oracles-$$lib; \
	  .venv-oracles-$$lib/bin/python -m pip install --quiet -r requirements/oracles-$$lib.txt -e .; \
	  .venv-oracles-$$lib/bin/python -m pytest -o addopts=--import-mode=importlib -o filterwarnings= -rP \
	    tests/trainers/oracles/test_$$lib.py tests/npbench/test_rewards.py; \
	done

# The vllm backend and the trainer's rollouts with a real engine on a CPU, in an environment of its own.
VLLM_VENV ?= .venv-vllm
test-vllm: $(VLLM_VENV)/.installed
	VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 \
	  $(VLLM_VENV)/bin/python -m pytest -o addopts= -o filterwarnings= --import-mode=importlib \
	  -p no:cacheprovider tests/evaluators/backends/test_offline_vllm.py \
	  tests/evaluators/runs/test_real_vllm_on_ray.py tests/trainers/test_real_vllm_rollouts.py \
	  tests/trainers/test_real_rollout_server.py tests/trainers/test_real_vllm_processes.py

$(VLLM_VENV)/.installed: requirements/vllm.txt pyproject.toml
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/pip install --quiet -r requirements/vllm.txt -e .
	$(VLLM_VENV)/bin/pip uninstall --quiet -y torchvision torchaudio torchcodec triton
	touch $@

# Generation and evaluation on a local Ray with two workers, in an environment of its own.
RAY_VENV ?= .venv-ray
test-ray: $(RAY_VENV)/.installed
	$(RAY_VENV)/bin/python -m pytest -p no:cacheprovider \
	  tests/npbench/test_ray_building.py tests/evaluators/runs/test_ray_backend.py

$(RAY_VENV)/.installed: requirements/ray.txt requirements/cpu.txt pyproject.toml
	$(PYTHON) -m venv $(RAY_VENV)
	$(RAY_VENV)/bin/pip install --quiet $(CONSTRAINTS) -r requirements/ray.txt -e '.[eval,train]'
	touch $@

# The plug-in inside the real verl on a CPU, in an environment of its own.
VERL_VENV ?= .venv-verl
test-verl: $(VERL_VENV)/.installed
	$(VERL_VENV)/bin/python -m pytest -o addopts=--import-mode=importlib -o filterwarnings= \
	  -p no:cacheprovider tests/trainers/engines

$(VERL_VENV)/.installed: requirements/verl.txt pyproject.toml
	$(PYTHON) -m venv $(VERL_VENV)
	$(VERL_VENV)/bin/pip install --quiet -r requirements/verl.txt -e '.[eval]'
	touch $@

# How legible texts in pictures are to a reader that knows nothing of them; prints its rates.
OCR_VENV ?= .venv-ocr
test-ocr: $(OCR_VENV)/.installed
	$(OCR_VENV)/bin/python -m pytest -o addopts=--import-mode=importlib -o filterwarnings= \
	  -p no:cacheprovider -rP tests/npbench/rendering/test_ocr.py

$(OCR_VENV)/.installed: requirements/ocr.txt pyproject.toml
	$(PYTHON) -m venv $(OCR_VENV)
	$(OCR_VENV)/bin/pip install --quiet -r requirements/ocr.txt -e .
	touch $@

# Our grading beside Math-Verify's and mathruler's on the handed cases, and answers a second.
compare-graders: install
	$(BIN)/python tests/performance/grading_compare.py --show
	$(BIN)/python tests/performance/grading.py

# Pages in Debian's Chromium, which root installs where it lacks; selenium joins the ordinary environment.
test-browser: $(VENV)/.browser
	@command -v $${CHROMIUM:-chromium} >/dev/null && command -v $${CHROMEDRIVER:-chromedriver} >/dev/null || \
	  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y chromium chromium-driver; }
	$(BIN)/python -m pytest -m browser tests/browser

$(VENV)/.browser: $(VENV)/.installed requirements/browser.txt
	$(BIN)/python -m pip install --quiet -r requirements/browser.txt
	touch $@

golden: install
	$(BIN)/python tests/npbench/golden/regenerate.py

test-slow: install
	$(BIN)/python -m pytest -n auto -m slow

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo dist build
