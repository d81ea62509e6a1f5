"""A step of TRL's GRPOTrainer, taken apart like ours; ``page.py`` starts it in TRL's environment.

Run: ``.venv-oracles-trl/bin/python tests/performance/trl_steps.py JOB.json``; prints one line of
JSON. The job names a model's folder, prompts with pictures, and the sizes of a step. Rewards are
``npbench.rewards.np_reward``, as good as those of our side.
"""

import base64
import io
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from transformers import (
    AutoImageProcessor,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
    TrainerCallback,
)
from transformers.processing_utils import ProcessorMixin

from npbench.rewards import np_reward

os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"


class PictureProcessor(ProcessorMixin):
    """Qwen's tokenizer and picture processor; the one for videos wants torchvision."""

    def __init__(self, image_processor: Any, tokenizer: Any) -> None:
        super().__init__(image_processor, tokenizer, chat_template=tokenizer.chat_template)
        self.picture_token_id = tokenizer.convert_tokens_to_ids("<|image_pad|>")

    def __call__(self, images: Any = None, text: Any = None, **options: Any) -> Any:
        """Ids with one token for each merged patch, token types, pixels and grids."""
        flat = [one for row in images for one in (row if isinstance(row, list) else [row])]
        seen = dict(self.image_processor(images=flat, return_tensors="pt"))
        counts = [
            int(g.prod()) // self.image_processor.merge_size**2 for g in seen["image_grid_thw"]
        ]
        rows: list[list[int]] = []
        for words in text:
            row: list[int] = []
            for token in self.tokenizer(words, add_special_tokens=False)["input_ids"]:
                row += [token] * (counts.pop(0) if token == self.picture_token_id else 1)
            rows.append(row)
        types = [[int(token == self.picture_token_id) for token in row] for row in rows]
        found: dict[str, Any] = {"input_ids": rows, "mm_token_type_ids": types, **seen}
        if options.get("padding"):
            width, pad = max(map(len, rows)), self.tokenizer.pad_token_id
            found["attention_mask"] = [[0] * (width - len(r)) + [1] * len(r) for r in rows]
            found["input_ids"] = [[pad] * (width - len(r)) + r for r in rows]
            found["mm_token_type_ids"] = [[0] * (width - len(r)) + r for r in types]
        if options.get("return_tensors"):
            return {name: torch.as_tensor(value) for name, value in found.items()}
        return found

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """The text of one conversation, or ids and pictures of several."""
        words = self.tokenizer.apply_chat_template(
            conversation,
            tokenize=False,
            add_generation_prompt=options.get("add_generation_prompt", False),
        )
        if not options.get("tokenize"):
            return words
        pictures = [
            [part["image"] for message in one for part in message["content"] if "image" in part]
            for one in conversation
        ]
        return self(images=pictures, text=words)


def load_processor(folder: str) -> Any:
    """The folder's processor; of Qwen's two parts one that needs no torchvision."""
    if (Path(folder) / "processor_config.json").exists():
        return AutoProcessor.from_pretrained(folder)
    return PictureProcessor(
        AutoImageProcessor.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    )


class Stopwatch(TrainerCallback):
    """Seconds of each step, and of what is inside of it."""

    def __init__(self, *, cuda: bool) -> None:
        self.cuda = cuda
        self.steps: list[dict[str, float]] = []
        self._started = 0.0

    def now(self) -> float:
        """The clock, or the process's own seconds on a CPU."""
        if not self.cuda:
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Opens a step."""
        self.steps.append({"draw": 0.0, "judge": 0.0, "replies": 0.0})
        self._started = self.now()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Closes it."""
        self.steps[-1]["step"] = self.now() - self._started


def measure(job: dict[str, Any]) -> dict[str, float]:
    """Medians over the steps but the first, which warms up."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    cuda = job["device"].startswith("cuda")
    watch = Stopwatch(cuda=cuda)

    class Timed(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            started = watch.now()
            found = super()._generate_and_score_completions(inputs)
            watch.steps[-1]["draw"] += watch.now() - started
            watch.steps[-1]["replies"] += float(found["completion_mask"].sum())
            watch.steps[-1]["prompt"] = float(found["prompt_mask"].sum(-1).float().mean())
            return found

        def _calculate_rewards(self, *given: Any) -> Any:
            started = watch.now()
            found = super()._calculate_rewards(*given)
            watch.steps[-1]["judge"] += watch.now() - started
            return found

    rows = [
        {
            "prompt": [{"role": "user", "content": row["prompt"]}],
            "image": Image.open(io.BytesIO(base64.b64decode(row["image"]))).convert("RGB"),
            **{name: row[name] for name in ("task", "instance", "reference_objective")},
        }
        for row in job["rows"]
    ]
    # no more rows at once than on our side, so that both have the same memory to work with
    at_once = min(job["rows_at_once"], job["prompts"] * job["group"])
    with tempfile.TemporaryDirectory() as folder:
        settings = GRPOConfig(
            output_dir=folder,
            max_steps=job["steps"] + 1,
            per_device_train_batch_size=at_once,
            gradient_accumulation_steps=job["prompts"] * job["group"] // at_once,
            num_generations=job["group"],
            max_completion_length=job["reply"],
            learning_rate=job["learning_rate"],
            temperature=1.0,
            top_p=1.0,
            top_k=0,
            beta=0.0,
            loss_type="grpo",
            num_iterations=1,
            report_to=[],
            use_cpu=not cuda,
            bf16=job["precision"] == "bfloat16",
            gradient_checkpointing=job["recompute"],
            shuffle_dataset=False,
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = Timed(
            model=AutoModelForImageTextToText.from_pretrained(job["model"], dtype=torch.float32),
            reward_funcs=np_reward,
            args=settings,
            train_dataset=Dataset.from_list(rows),
            processing_class=load_processor(job["model"]),
            callbacks=[watch],
        )
        trainer.train()
    kept = watch.steps[1:]
    found = {name: statistics.median(one[name] for one in kept) for name in kept[0]}
    return {
        "seconds": found["step"],
        "generation": found["draw"] - found["judge"],
        "verification": found["judge"],
        "training": found["step"] - found["draw"],
        "reply_tokens": found["replies"],
        "prompt_tokens": found["prompt"],
        "rows": float(job["prompts"] * job["group"]),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(measure(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
