"""CPU seconds of the trainer on one core: shared prefix and plain path, memory by G, whole steps.

Run: OMP_NUM_THREADS=1 .venv/bin/python tests/performance/training.py \\
    [pass|memory|step-memory|steps|trl]

The model is of Idefics3's architecture with random weights (0.28 M parameters; ``--width 256
--layers 4`` for the larger one). Both paths run in this process, in turn, on the same replies.
"""

import argparse
import io
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from PIL import Image

from trainers.config import Config, read_config
from trainers.encoding import Prompt
from trainers.loading import load_policy
from trainers.policy import Policy
from trainers.prefix import Shared

REPLY = 16


def build_model(folder: Path, *, width: int, layers: int) -> Path:
    """A random Idefics3 with a byte-level tokenizer, 64 picture tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
        PreTrainedTokenizerFast,
    )

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = ["<|pad|>", "<|end|>", "<image>", "<fake_token_around_image>", "<global-img>"]
    core.train_from_iterator(
        ["Find as few vertices as possible such that every edge has an end. Answer: [0, 2, 3]"],
        trainers.BpeTrainer(
            vocab_size=320,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<|pad|>", eos_token="<|end|>"
    )
    template = (
        "{% for m in messages %}{% for part in m['content'] %}"
        "{{ '<image>' if part['type'] == 'image' else part['text'] }}"
        "{% endfor %}{% endfor %}{{ '\n' }}"
    )
    size = {"longest_edge": 128}
    pictures = Idefics3ImageProcessorPil(size=size, max_image_size=size, do_image_splitting=False)
    processor = Idefics3Processor(pictures, tokenizer, image_seq_len=64, chat_template=template)
    torch.manual_seed(0)
    heads = max(width // 32, 2)
    config = Idefics3Config(
        text_config={
            "model_type": "llama",
            "vocab_size": len(tokenizer),
            "hidden_size": width,
            "intermediate_size": 2 * width,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "max_position_embeddings": 2048,
        },
        vision_config={
            "hidden_size": width,
            "intermediate_size": 2 * width,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "image_size": 128,
            "patch_size": 8,
        },
        scale_factor=2,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=0,
        tie_word_embeddings=False,
    )
    model = Idefics3ForConditionalGeneration(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    processor.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def make_config(model: Path, **changes: object) -> Config:
    """Settings of ``tiny-grpo`` on the model."""
    values: dict[str, object] = {
        "method": "grpo",
        "model": str(model),
        "steps": 10,
        "prompts_per_step": 8,
        "group_size": 16,
        "data": {"suite": "nano", "tasks": ["maximum_independent_set", "vertex_cover"]},
        "sampling": {"max_tokens": 32},
        "optimizer": {"learning_rate": 3e-4, "tokens_at_once": 1_000_000},
        "log_rollouts": False,
    }
    return read_config({**values, **changes})


def plain_pass(policy: Policy, prompt: Prompt, replies: list[torch.Tensor]) -> None:
    """Forward and backward with the prompt before each reply."""
    policy.plain_logprobs(prompt, replies).sum().backward()  # type: ignore[no-untyped-call]


def shared_pass(policy: Policy, prompt: Prompt, replies: list[torch.Tensor]) -> None:
    """The same with the prompt encoded once."""
    shared = Shared(policy.prefix(prompt))
    policy.logprobs(shared.prefix, replies).sum().backward()  # type: ignore[no-untyped-call]
    shared.finish()


def prepare(model: Path, group: int) -> tuple[Policy, Prompt, list[torch.Tensor]]:
    """A policy, a prompt of at least five times the reply, and replies of one length."""
    policy = load_policy(str(model), make_config(model))
    buffer = io.BytesIO()
    Image.effect_noise((256, 256), 60).save(buffer, "PNG")
    text = "Find as few vertices as possible such that every edge has an end. " * 4
    prompt = policy.encoder.encode(text, [buffer.getvalue()])
    return policy, prompt, list(torch.randint(10, 300, (group, REPLY)))


def seconds_of(policy: Policy, work, *arguments: object) -> float:
    started = time.process_time()
    work(policy, *arguments)
    took = time.process_time() - started
    policy.model.zero_grad()
    return took


def measure_pass(model: Path) -> dict[str, float]:
    """Medians of 15 rounds of both paths in turn, after two for warming up."""
    policy, prompt, replies = prepare(model, 16)
    times: dict[str, list[float]] = {"plain": [], "shared": []}
    for round_ in range(17):
        for name, work in (("plain", plain_pass), ("shared", shared_pass)):
            took = seconds_of(policy, work, prompt, replies)
            if round_ > 1:
                times[name].append(took)
    plain, shared = (statistics.median(times[name]) for name in ("plain", "shared"))
    return {
        "parameters": sum(p.numel() for p in policy.model.parameters()),
        "prompt_tokens": prompt.length,
        "reply_tokens": REPLY,
        "group": 16,
        "plain_ms": round(1e3 * plain, 1),
        "shared_ms": round(1e3 * shared, 1),
        "ratio": round(plain / shared, 2),
    }


def measure_peak(model: Path, path: str, group: int, budget: int) -> dict[str, float]:
    """Megabytes that one training pass adds to a fresh process, replies in micro-batches."""
    policy, prompt, replies = prepare(model, group)
    before = _status("VmRSS")
    # 5 sets the high-water mark back to what is resident now
    Path("/proc/self/clear_refs").write_text("5")
    if path == "plain":
        plain_pass(policy, prompt, replies)
    else:
        shared = Shared(policy.prefix(prompt))
        for start in range(0, group, budget):
            part = replies[start : start + budget]
            policy.logprobs(shared.prefix, part).sum().backward()  # type: ignore[no-untyped-call]
        shared.finish()
    return {"peak_megabytes": round((_status("VmHWM") - before) / 1024, 1)}


def measure_step_peak(model: Path, path: str, group: int, budget: int) -> dict[str, float]:
    """Megabytes that a whole step adds to a fresh process: sampling and rewards, then the update.

    Two prompts; ``budget`` replies are decoded or back-propagated at a time whatever G is.
    """
    from trainers.data import questions
    from trainers.groups import collect, reward_terms
    from trainers.learner import load_learner
    from trainers.rollouts import TransformersBackend
    from trainers.updates import learn

    first = make_config(model)
    examples = questions(first.data)[:2]
    width = load_policy(str(model), first).encoder.encode(examples[0].prompt, examples[0].images)
    config = make_config(
        model,
        prompts_per_step=2,
        group_size=group,
        sampling={"max_tokens": REPLY, "rows_at_once": budget},
        optimizer={
            "tokens_at_once": budget * (width.length + REPLY + 2),
            "shared_prefix": path == "shared",
        },
    )
    learner, terms = load_learner(config, config.model), reward_terms(config)
    backend = TransformersBackend(learner.policy, config.sampling.rows_at_once)
    found: dict[str, float] = {"prompt_tokens": width.length}
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    groups = collect(
        examples,
        config=config,
        encoder=learner.policy.encoder,
        backend=backend,
        terms=terms,
        step=0,
    )
    found["sampling_megabytes"] = (_status("VmHWM") - before) / 1024
    learn(learner, groups, step=0)
    found["step_megabytes"] = (_status("VmHWM") - before) / 1024
    return {name: round(value, 1) for name, value in found.items()}


def _status(name: str) -> int:
    """Kilobytes, from /proc."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def measure_steps(model: Path, *, steps: int) -> dict[str, object]:
    """Seconds of whole steps of ``tiny-grpo``: data, sampling, rewards, update, logs."""
    from trainers.logs import read_log
    from trainers.loop import train

    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        started = time.process_time()
        train(make_config(model, steps=steps), run)
        took = time.process_time() - started
        rows = read_log(run / "scalars.jsonl")
    return {
        "steps": steps,
        "cpu_seconds": round(took, 2),
        "cpu_seconds_per_100_steps": round(100 * took / steps, 1),
        "median_wall_step": round(statistics.median(row["seconds"] for row in rows), 3),
        "tokens_per_wall_second": round(statistics.median(r["tokens_per_second"] for r in rows)),
    }


def measure_trl(model: Path, *, steps: int) -> dict[str, object]:
    """The same steps by TRL's GRPOTrainer: same model, prompts, G, limit, temperature, no KL.

    Needs ``pip install trl accelerate`` in an environment of its own.
    """
    import os

    from datasets import Dataset
    from transformers import AutoModelForImageTextToText, AutoProcessor

    import npbench

    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    from trl import GRPOConfig, GRPOTrainer

    tasks = ["maximum_independent_set", "vertex_cover"]
    rows = [
        {
            "prompt": [{"role": "user", "content": row.prompt}],
            "image": Image.open(io.BytesIO(row.image or b"")).convert("RGB"),
        }
        for row in npbench.load("nano", "nano", "train", 0, per_task=4 * steps, tasks=tasks)
    ]

    def reward(completions: list[list[dict[str, str]]], **_: object) -> list[float]:
        return [float(len(one[0]["content"]) % 7) for one in completions]

    with tempfile.TemporaryDirectory() as folder:
        settings = GRPOConfig(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=128,
            num_generations=16,
            gradient_accumulation_steps=1,
            max_completion_length=32,
            learning_rate=3e-4,
            temperature=1.0,
            beta=0.0,
            loss_type="grpo",
            num_iterations=1,
            report_to=[],
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            model=AutoModelForImageTextToText.from_pretrained(model),
            reward_funcs=reward,
            args=settings,
            train_dataset=Dataset.from_list(rows),
            processing_class=AutoProcessor.from_pretrained(model),
        )
        started = time.process_time()
        trainer.train()
        took = time.process_time() - started
    return {"trl_steps": steps, "trl_cpu_seconds_per_100_steps": round(100 * took / steps, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="all")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        model = build_model(Path(folder) / "model", width=options.width, layers=options.layers)
        if options.peak:
            what, path, group = options.peak
            measure = measure_step_peak if what == "step-memory" else measure_peak
            print(json.dumps(measure(model, path, int(group), 16)))
            return
        if options.what in ("all", "pass"):
            print(json.dumps(measure_pass(model)))
        if options.what in ("all", "steps"):
            print(json.dumps(measure_steps(model, steps=options.steps)))
        if options.what == "trl":
            print(json.dumps(measure_trl(model, steps=options.steps)))
    for what in ("memory", "step-memory"):
        if options.what not in ("all", what):
            continue
        for path in ("plain", "shared"):
            for group in (16, 64, 256):
                command = [sys.executable, __file__, "--peak", what, path, str(group)]
                command += ["--width", str(options.width), "--layers", str(options.layers)]
                found = subprocess.run(command, capture_output=True, text=True, check=True)
                result = json.loads(found.stdout.splitlines()[-1])
                print(json.dumps({"what": what, "path": path, "group": group, **result}))


if __name__ == "__main__":
    main()
