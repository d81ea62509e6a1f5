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

.PHONY: install demo test test-slow lint format clean
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
