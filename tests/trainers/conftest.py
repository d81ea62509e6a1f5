"""Tiny random models, built offline and saved as ordinary Hugging Face folders."""

import json
import math
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from trainers.config import Config, as_toml
from trainers.logs import read_log

CHAT = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}{{ IMAGE }}{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}{{ '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
CORPUS = [
    "Find as many vertices as possible such that no edge joins two of them.",
    "Find as few vertices as possible such that every edge has an end among them.",
    "Answer with a list of vertex numbers. The picture shows the graph: numbered vertices, and a",
    "line for every edge. Lines that cross between vertices do not meet there. Think briefly, then",
    "end with one line of the form\nAnswer: [0, 3]\nAnswer: [1, 2, 4]",
] * 4


def _tokenizer(image_part: str, extra: tuple[str, ...]):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = ["<|pad|>", "<|end|>", "<|user|>", "<|assistant|>", *extra]
    core.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=256 + 150,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<|pad|>", eos_token="<|end|>"
    )
    tokenizer.chat_template = CHAT.replace("IMAGE", repr(image_part))
    return tokenizer


def _save(model, tokenizer, folder: Path) -> Path:
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    return folder


TEXT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 1024,
    "initializer_range": 0.2,
}


@pytest.fixture(scope="session")
def text_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal language model of Qwen2's shape."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = _tokenizer("", ())
    torch.manual_seed(0)
    config = Qwen2Config(vocab_size=len(tokenizer), tie_word_embeddings=False, **TEXT)
    folder = tmp_path_factory.mktemp("models") / "text"
    tokenizer.save_pretrained(folder)
    return _save(Qwen2ForCausalLM(config), tokenizer, folder)


@pytest.fixture(scope="session")
def idefics_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image-text-to-text model of Idefics3's shape: 16 picture tokens."""
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
    )

    extra = ("<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
    tokenizer = _tokenizer("<image>", extra)
    size = {"longest_edge": 64}
    images = Idefics3ImageProcessorPil(size=size, max_image_size=size, do_image_splitting=False)
    processor = Idefics3Processor(
        images, tokenizer, image_seq_len=16, chat_template=tokenizer.chat_template
    )
    torch.manual_seed(0)
    config = Idefics3Config(
        text_config={"model_type": "llama", "vocab_size": len(tokenizer), **TEXT},
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "image_size": 64,
            "patch_size": 8,
        },
        scale_factor=2,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
    )
    folder = tmp_path_factory.mktemp("models") / "idefics"
    processor.save_pretrained(folder)
    return _save(Idefics3ForConditionalGeneration(config), tokenizer, folder)


@pytest.fixture(scope="session")
def qwen_vl_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image-text-to-text model of Qwen2.5-VL's shape, with its 3-D positions."""
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2VLImageProcessorPil,
    )

    extra = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    tokenizer = _tokenizer("<|vision_start|><|image_pad|><|vision_end|>", extra)
    images = Qwen2VLImageProcessorPil(
        patch_size=8, merge_size=2, temporal_patch_size=2, min_pixels=64 * 64, max_pixels=64 * 64
    )
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in extra}
    torch.manual_seed(0)
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3]},
            **TEXT,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "patch_size": 8,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 32,
            "fullatt_block_indexes": [1],
            "out_hidden_size": 32,
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=False,
    )
    folder = tmp_path_factory.mktemp("models") / "qwen_vl"
    tokenizer.save_pretrained(folder)
    images.save_pretrained(folder)
    return _save(Qwen2_5_VLForConditionalGeneration(config), tokenizer, folder)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


TOY_REWARDS = """
def vowels(reply, row):
    return sum(letter in "aeiou" for letter in reply) / max(len(reply), 1)


def broken(reply, row):
    return float("nan")
"""


@pytest.fixture
def toy_rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The import path of a module whose rewards differ between random replies."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "npbench_toy_rewards.py").write_text(TOY_REWARDS)
    monkeypatch.syspath_prepend(folder)
    return "npbench_toy_rewards"


@pytest.fixture
def make_config(toy_rewards: str):
    """A function from a model's folder and changes to a small configuration."""
    from trainers.config import read_config

    def make(model: Path, *, method: str = "grpo", **changes):
        sections = {
            "data": {
                "suite": "nano",
                "tasks": ["vertex_cover"],
                "per_task": 20,
                "modality": "text" if model.name == "text" else "image",
            },
            "sampling": {"max_tokens": 10},
            "optimizer": {"learning_rate": 1e-2},
            "reward": {
                "name": "mupo" if method == "mupo" else "dmpo",
                "functions": {"vowels": f"{toy_rewards}:vowels"},
            },
            "loss": {"clusters": 2, "min_size": 2} if method == "mupo" else {},
        }
        values = {
            "method": method,
            "model": str(model),
            "steps": 3,
            "prompts_per_step": 2,
            "group_size": 4,
        }
        for name, value in changes.items():
            if isinstance(value, dict):
                sections[name] = {**sections.get(name, {}), **value}
            else:
                values[name] = value
        return read_config({**values, **sections})

    return make


WORKER = """
import json, sys
from pathlib import Path
from npbench.errors import InputError
from trainers.config import load_config
from trainers.distributed import process_group
from trainers.loop import train

class Stop(Exception):
    pass

jobs = json.loads(sys.argv[1])
with process_group(load_config(jobs[0][0])):
    for recipe, run, stop in jobs:
        def progress(step, numbers, stop=stop):
            if step == stop:
                raise Stop
        folder = Path(run)
        try:
            train(load_config(recipe), folder, resume=stop == "resume", progress=progress)
        except Stop:
            pass
        except InputError as error:
            print(error)
            break
"""
"""Trains one run after the other, up to a step, to the end, or from where a run stopped."""

Job = tuple[Config, Path, int | str | None]
SAFE = "model.safetensors"


def environment(toy: Path, rank: int, port: int) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(toy), *sys.path]),
        "WORLD_SIZE": "2",
        "RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }


ENDED = """
import os, sys
try:
    exec({0!r})
except SystemExit:
    pass
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
"""
"""Ends as the command line does: threads of a group can abort an interpreter's own end."""
WORKER_NUMBER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
PORTS = count(20000 + 1000 * (WORKER_NUMBER % 12) + os.getpid() % 900)
"""Each worker of pytest has a thousand of its own: a port is bound seconds after it is chosen."""


def free_port() -> int:
    """A port below those that the system gives to whoever asks for any."""
    for port in PORTS:
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("there is no free port")


@pytest.fixture
def two_processes(tmp_path: Path):
    """A function that trains runs in two processes, and gives what each of them printed."""

    def written(jobs: Sequence[Job], rank: int) -> str:
        lines = []
        for number, (config, run, stop) in enumerate(jobs):
            recipe = tmp_path / f"recipe-{rank}-{number}.toml"
            recipe.write_text(as_toml(config))
            lines.append((str(recipe), str(run), stop))
        return json.dumps(lines)

    def start(
        first: Sequence[Job], second: Sequence[Job] | None = None, *, worker: str = WORKER
    ) -> list[str]:
        port = free_port()
        started = [
            subprocess.Popen(
                [sys.executable, "-c", ENDED.format(worker), written(jobs, rank)],
                env=environment(tmp_path / "toy", rank, port),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank, jobs in enumerate((first, first if second is None else second))
        ]
        try:
            ended = [(process, *process.communicate(timeout=500)) for process in started]
        finally:
            for process in started:
                process.kill()
        errors = [err[-3000:] for process, _, err in ended if process.returncode]
        assert not errors, "\n".join(errors)
        return [out.strip() for _, out, _ in ended]

    return start


@pytest.fixture
def assert_same():
    """A function that finds the same rollouts, logged numbers and parameters, up to sums' order."""
    return _assert_same


def _assert_same(one: Path, many: Path) -> None:
    """The same rollouts, logged numbers and parameters, but for the order of sums."""
    rollouts = [read_log(run / "rollouts.jsonl") for run in (one, many)]
    assert [len(lines) for lines in rollouts] == [len(rollouts[0])] * 2
    for a, b in zip(*rollouts, strict=True):
        for name in ("step", "question", "sample", "seed", "ids", "terms", "reward"):
            assert a[name] == b[name]
    for name in ("scalars.jsonl", "evaluations.jsonl"):
        lines = [read_log(run / name) for run in (one, many)]
        for a, b in zip(*lines, strict=True):
            assert list(a) == list(b)
            for key in set(a) - {"seconds", "tokens_per_second"}:
                assert a[key] == pytest.approx(b[key], rel=1e-4, abs=1e-6), key
    last = [run / "checkpoints" / "last" for run in (one, many)]
    model = json.loads((one / "run.json").read_text())["config"]["model"]
    start = load_file(Path(model) / SAFE)
    moved = [{name: w - start[name] for name, w in load_file(x / SAFE).items()} for x in last]
    assert _distance(*moved) < 1e-4
    # the first moment is linear in the gradients; Adam blows up what is nearly 0
    states = [torch.load(x / "trainer.pt", weights_only=True)["optimizer"]["state"] for x in last]
    assert _distance(*({k: one["exp_avg"] for k, one in state.items()} for state in states)) < 1e-5


def _distance(one: dict[object, torch.Tensor], two: dict[object, torch.Tensor]) -> float:
    """The relative distance of two sets of tensors."""
    assert set(one) == set(two)
    gap = sum(float((one[key] - two[key]).double().square().sum()) for key in one)
    size = sum(float(tensor.double().square().sum()) for tensor in one.values())
    assert size > 0.0
    return math.sqrt(gap / size)


@pytest.fixture
def assert_bit_equal():
    """A function that finds the same parameters and the same states of AdamW, to the last bit."""
    return _assert_bit_equal


def _assert_bit_equal(whole: Path, shared: Path) -> None:
    """Processes that share out the optimiser's states end where those that keep them whole do."""
    folders = [run / "checkpoints" / "last" for run in (whole, shared)]
    first, second = (load_file(folder / SAFE) for folder in folders)
    assert all(torch.equal(first[name], second[name]) for name in first)
    states = [
        torch.load(folder / "trainer.pt", weights_only=True)["optimizer"] for folder in folders
    ]
    assert states[0]["state"].keys() == states[1]["state"].keys()
    for key, one in states[0]["state"].items():
        assert all(torch.equal(one[name], states[1]["state"][key][name]) for name in one)
    assert [g["params"] for g in states[0]["param_groups"]] == [
        g["params"] for g in states[1]["param_groups"]
    ]


class FakeLLM:
    """What ours uses of ``vllm.LLM`` and of the engine inside it.

    It has a model of its own whose weights are only those it was given, and a prefix cache that is
    wrong unless it is reset.
    """

    takes_weights = returns_all = True
    dies_after = wrong_token = latest = None

    def __init__(self, model: str, **options) -> None:
        from transformers import AutoConfig, AutoModelForCausalLM

        self.options, self.events, self.asked = options, [], []
        self.awake, self.waiting, self.prefixes = {"weights", "kv_cache"}, [], {}
        self.model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model)).eval()
        self.llm_engine = self
        self.model_config = SimpleNamespace(max_model_len=1024)
        self.engine_core = SimpleNamespace(shutdown=lambda: self.events.append("shutdown"))
        FakeLLM.latest = self

    def sleep(self, level: int) -> None:
        self.events.append(f"sleep {level}")
        self.awake = set()

    def wake_up(self, tags: list[str]) -> None:
        self.events.append(f"wake {tags[0]}")
        self.awake |= set(tags)

    def collective_rpc(self, method: str, kwargs: dict) -> None:
        assert method == "reload_weights"
        assert "weights" in self.awake
        self.events.append("push")
        if "weights_path" in kwargs:
            files = Path(kwargs["weights_path"]).glob("*.safetensors")
            weights = {name: one for file in files for name, one in load_file(file).items()}
        else:
            weights = dict(kwargs["weights_iterator"])
        if self.takes_weights:
            found = self.model.load_state_dict(weights, strict=False)
            assert not found.unexpected_keys
            assert not found.missing_keys or self.model.config.tie_word_embeddings

    def apply_model(self, change) -> None:
        change(self.model)

    def reset_prefix_cache(self) -> bool:
        self.events.append("reset prefix")
        self.prefixes.clear()
        return True

    def reset_mm_cache(self) -> None:
        self.events.append("reset pixels")

    def reset_encoder_cache(self) -> None:
        self.events.append("reset features")

    def add_request(self, name: str, prompt: dict, params) -> None:
        assert self.awake == {"weights", "kv_cache"}
        self.asked.append(params)
        self.waiting.append((name, tuple(prompt["prompt_token_ids"]), params))

    def abort_request(self, names: list[str]) -> None:
        self.waiting = [one for one in self.waiting if one[0] not in names]

    def has_unfinished_requests(self) -> bool:
        return bool(self.waiting)

    def step(self) -> list[SimpleNamespace]:
        """One reply at a time, the last one asked for first."""
        if self.dies_after is not None and len(self.asked) > self.dies_after:
            raise RuntimeError("EngineCore encountered an issue.\nSee stack trace")
        name, prompt, params = self.waiting.pop()
        if not self.returns_all and not self.waiting:
            return []
        self.events.append("draw")
        return [
            SimpleNamespace(request_id=name, finished=True, outputs=[self._reply(prompt, params)])
        ]

    @torch.no_grad()
    def _reply(self, prompt: tuple[int, ...], params) -> SimpleNamespace:
        generator = torch.Generator().manual_seed(params.seed)
        ids, logprobs, reason = [], [], "length"
        while len(ids) < params.max_tokens and reason == "length":
            logits_V = self._logits(prompt, ids)
            for token, bias in (params.logit_bias or {}).items():
                logits_V[token] += bias
            log_V = (logits_V / (params.temperature or 1.0)).log_softmax(-1)
            token = int(torch.multinomial(log_V.exp(), 1, generator=generator))
            token = token if params.temperature else int(log_V.argmax())
            token = token if self.wrong_token is None else self.wrong_token
            ids.append(token)
            logprobs.append({token: SimpleNamespace(logprob=float(log_V[token]))})
            reason = "stop" if token in params.stop_token_ids else "length"
        return SimpleNamespace(token_ids=ids, logprobs=logprobs, finish_reason=reason)

    def _logits(self, prompt: tuple[int, ...], ids: list[int]) -> torch.Tensor:
        if ids:
            return self.model(torch.tensor([[*prompt, *ids]])).logits[0, -1]
        if prompt not in self.prefixes:
            self.prefixes[prompt] = self.model(torch.tensor([prompt])).logits[0, -1]
        return self.prefixes[prompt].clone()


@pytest.fixture
def fake_vllm(monkeypatch) -> type[FakeLLM]:
    """A module ``vllm`` whose engine is the fake."""
    module = ModuleType("vllm")
    kinds = SimpleNamespace(FINAL_ONLY="final")
    for name, value in {
        "__version__": "0.33.1",
        "LLM": FakeLLM,
        "SamplingParams": lambda **given: SimpleNamespace(**given),
        "sampling_params": SimpleNamespace(RequestOutputKind=kinds),
    }.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "vllm", module)
    for name in ("ENABLE_V1_MULTIPROCESSING", "CPU_OMP_THREADS_BIND", "CPU_KVCACHE_SPACE"):
        monkeypatch.setenv(f"VLLM_{name}", "0")
    return FakeLLM


@pytest.fixture(scope="session")
def widened(idefics_model: Path, text_model: Path, tmp_path_factory):
    """A function that makes a tiny model with heads as wide as vLLM's attention on a CPU wants."""
    import transformers

    def make(kind: str, *, tied: bool = False) -> Path:
        source = {"picture": idefics_model, "text": text_model}[kind]
        folder = tmp_path_factory.mktemp("models") / ("text" if kind == "text" else "wide")
        config = transformers.AutoConfig.from_pretrained(source)
        text = config.get_text_config()
        text.hidden_size, text.head_dim = 64, 32
        config.tie_word_embeddings = text.tie_word_embeddings = tied
        loader = transformers.AutoModelForCausalLM
        if kind == "picture":
            config.vision_config.hidden_size = 64
            loader = transformers.AutoModelForImageTextToText
            transformers.AutoProcessor.from_pretrained(source).save_pretrained(folder)
        else:
            transformers.AutoTokenizer.from_pretrained(source).save_pretrained(folder)
        torch.manual_seed(0)
        loader.from_config(config).save_pretrained(folder)
        return folder

    return make


@dataclass
class Served:
    process: subprocess.Popen[str]
    address: str

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


@pytest.fixture
def serving():
    """The command ``npbench serve-rollouts`` in a process of its own, once it answers."""
    return _serving


@contextmanager
def _serving(model: Path, *, port: int = 0, log: Path) -> Iterator[Served]:
    command = [str(Path(sys.executable).with_name("npbench")), "serve-rollouts"]
    command += ["--model", str(model), "--port", str(port), "--dtype", "float32", "--rows", "64"]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith(f"rollouts of {model} at http://127.0.0.1:"), log.read_text()[-3000:]
        yield Served(process, line.split()[-1])
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0, log.read_text()[-3000:]
            assert process.stdout.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
