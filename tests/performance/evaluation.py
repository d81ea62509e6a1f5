"""Measures the runner's overhead, the scan of a resumed run and batches against single calls.

Run: ``python tests/performance/evaluation.py [--samples 100000]``. Everything on one core; exits
with 1 where a figure of the issue is missed. The model is a random one that takes pictures.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

from evaluators.backends.base import Completion, ModelInfo, Prompt, Reply, Request, Sampling
from evaluators.benchmarks.np_bench import split_benchmark
from evaluators.records import SampleRecord
from evaluators.run_folder import RunFolder, SampleIndex, scan
from evaluators.runner import RunSettings, make_manifest, run
from npbench.building import build_split
from npbench.splits import Request as SplitRequest

MOST_OVERHEAD = 2e-3
LONGEST_SCAN = 3.0
LEAST_GAIN = 3.0
K = 8


class Instant:
    """Answers at once, so that what remains is the runner."""

    name = "scripted"

    def describe(self) -> ModelInfo:
        return ModelInfo("instant", "0")

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            for sample in request.samples:
                reply = Reply(text="Let me see. Answer: [0, 2]" * 5, finish_reason="stop")
                yield Completion(request, sample, reply)


def overhead(folder: Path) -> float:
    """Seconds a sample of a run without a model, grading included."""
    request = SplitRequest.make(suite="nano", split="test", seed=5, per_task=10)
    build_split(request, folder / "split")
    benchmark = split_benchmark(folder / "split")
    settings = RunSettings(sampling=Sampling(k=K))
    with RunFolder(folder / "run") as made:
        manifest = make_manifest(
            benchmark, Instant().describe(), settings, backend="scripted", command="", commit=None,
            started="", benchmark_notes={}, versions={},
        )  # fmt: skip
        index = made.claim(manifest)
        started = time.perf_counter()
        outcome = run(benchmark, Instant(), settings, made, index)
        seconds = time.perf_counter() - started
    return seconds / outcome.made


def long_run(folder: Path, samples: int) -> tuple[float, SampleIndex]:
    """Seconds to scan the samples of a long run."""
    path = folder / "samples.jsonl"
    with path.open("wb") as file:
        for number in range(samples):
            record = SampleRecord(
                benchmark="b", id=f"question-{number // K}", instance_id="i", decode="sampled",
                sample=number % K, seed=number, reply="word " * 200, prompt_hash="0" * 16,
            )  # fmt: skip
            file.write(record.line())
    started = time.perf_counter()
    index = scan(path)
    return time.perf_counter() - started, index


def peak_memory() -> float:
    """The most memory in MB that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speeds(folder: Path) -> tuple[float, float]:
    """Samples a second in batches, and with one call of ``generate`` a sample."""
    import torch
    from PIL import Image

    from evaluators.backends.local_models import LocalBackend

    torch.set_num_threads(1)
    make_model(folder / "model")
    pictures = []
    for colour in ("red", "lime", "blue", "white"):
        buffer = BytesIO()
        Image.new("RGB", (64, 64), colour).save(buffer, "PNG")
        pictures.append(buffer.getvalue())
    prompt = "What does the picture show? " * 8

    def asked() -> list[Request]:
        return [
            Request(f"q{n}", Prompt((picture, prompt)), "sampled", tuple(range(K)), tuple(range(K)))
            for n, picture in enumerate(pictures)
        ]

    rates = []
    for batch_size in (4 * K, 1):
        sampling = Sampling(k=K, max_tokens=64, greedy=False)
        backend = LocalBackend(str(folder / "model"), sampling, batch_size=batch_size, device="cpu")
        list(backend.generate(asked()[:1]))
        measured = []
        for _ in range(3):
            started = time.perf_counter()
            count = sum(1 for _ in backend.generate(asked()))
            measured.append(count / (time.perf_counter() - started))
        rates.append(statistics.median(measured))
    return rates[0], rates[1]


def make_model(folder: Path) -> None:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
        PreTrainedTokenizerFast,
    )

    special = ["<pad>", "<s>", "</s>", "<image>", "<fake_token_around_image>", "<global-img>"]
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator(["Answer: [0, 1, 2]"], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        additional_special_tokens=[*special[3:], "<end_of_utterance>"],
    )  # fmt: skip
    template = (
        "{% for message in messages %}{{ message['role'] }}: {% for part in message['content'] %}"
        "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
        "{% endfor %}</s>\n{% endfor %}assistant:"
    )
    Idefics3Processor(
        image_processor=Idefics3ImageProcessorPil(
            size={"longest_edge": 64}, max_image_size={"longest_edge": 64},
            do_image_splitting=False,
        ),
        tokenizer=tokenizer, image_seq_len=4, chat_template=template,
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    config = Idefics3Config(
        vision_config={"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
                       "num_attention_heads": 2, "image_size": 64, "patch_size": 16},
        text_config={"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
                     "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
                     "vocab_size": len(tokenizer), "pad_token_id": 0, "bos_token_id": 1,
                     "eos_token_id": 2},
        scale_factor=2, image_token_id=3, pad_token_id=0,
    )  # fmt: skip
    Idefics3ForConditionalGeneration(config).save_pretrained(folder)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--samples", type=int, default=100_000)
    samples = arguments.parse_args().samples
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        each = overhead(folder)
        print(f"runner: {each * 1e3:.2f} ms a sample with grading (target 2)")
        before = peak_memory()
        seconds, index = long_run(folder, samples)
        grown = peak_memory() - before
        print(f"scan of {len(index.entries)} samples: {seconds:.2f} s (target 3), +{grown:.0f} MB")
        batched, single = speeds(folder)
        gain = batched / single
        print(
            f"transformers, k={K}: {batched:.0f} samples/s in batches, {single:.0f} one call a "
            f"sample: {gain:.1f}x (target 3)"
        )
    return 0 if each < MOST_OVERHEAD and seconds < LONGEST_SCAN and gain >= LEAST_GAIN else 1


if __name__ == "__main__":
    sys.exit(main())
