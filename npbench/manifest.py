"""What a manifest and a dataset card say of a split, tallied row by row."""

import hashlib
from collections import Counter, defaultdict
from typing import Any

from npbench.rng import digest
from npbench.splits import COLUMNS, INTEGER_COLUMNS, Request
from npbench.task import ratio
from npbench.tasks import TASKS

__all__ = ["Tally", "pixel_hash"]


def pixel_hash(png: bytes) -> str:
    """SHA-256 of a picture's size and decoded pixels, which survives other PNG encoders."""
    from io import BytesIO

    from PIL import Image

    with Image.open(BytesIO(png)) as picture:
        plain = picture.convert("RGB")
        return hashlib.sha256(f"{plain.size}".encode() + plain.tobytes()).hexdigest()


class _Cell:
    """Counts of one task at one level."""

    def __init__(self) -> None:
        self.instances = 0
        self.proven = 0
        self.greedy_optimal = 0
        self.families: Counter[str] = Counter()
        self.classes: Counter[str] = Counter()
        self.floors: defaultdict[str, float] = defaultdict(float)


class Tally:
    """Counts over the rows of a split, each instance counted once."""

    def __init__(self) -> None:
        """No rows yet."""
        self.version = ""
        self.rows = 0
        self._cells: defaultdict[tuple[str, str], _Cell] = defaultdict(_Cell)
        self._last_instance = ""
        self._content = hashlib.sha256()

    def add(self, row: dict[str, Any]) -> None:
        """Count one row; the rows of an instance follow each other."""
        self.version = row["version"]
        self.rows += 1
        image = row["image"]["bytes"] if row["image"] is not None else None
        content = (row["id"], row["instance"], row["prompt"], row["reference_objective"])
        shown = pixel_hash(image) if image is not None else ""
        self._content.update(digest(*content, shown).encode())
        if row["instance_id"] == self._last_instance:
            return
        self._last_instance = row["instance_id"]
        cell = self._cells[row["task"], row["level"]]
        cell.instances += 1
        cell.proven += row["reference_status"] == "optimal"
        cell.greedy_optimal += row["greedy_objective"] == row["reference_objective"]
        cell.families[row["family"]] += 1
        cell.classes[row["class_key"]] += 1
        for floor in ("trivial", "random", "greedy", "heuristic"):
            cell.floors[floor] += ratio(
                TASKS[row["task"]].sense,
                objective=row[f"{floor}_objective"],
                reference=row["reference_objective"],
            )

    def content_hash(self) -> str:
        """SHA-256 over ids, instances, prompts, reference objectives and decoded pixels."""
        return self._content.hexdigest()

    def summary(self) -> dict[str, Any]:
        """Rows, instances, proven share, and the counts of every task and level."""
        cells = self._cells.values()
        instances = sum(cell.instances for cell in cells)
        return {
            "rows": self.rows,
            "instances": instances,
            "proven_optimal": sum(cell.proven for cell in cells) / instances,
            "greedy_optimal": sum(cell.greedy_optimal for cell in cells) / instances,
            "repeats": sum(cell.instances - len(cell.classes) for cell in cells),
            "tasks": {
                f"{task}/{level}": {
                    "instances": cell.instances,
                    "repeats": cell.instances - len(cell.classes),
                    "proven_optimal": cell.proven / cell.instances,
                    "greedy_optimal": cell.greedy_optimal / cell.instances,
                    "hard_share": TASKS[task].levels[level].hard_share,
                    "families": dict(sorted(cell.families.items())),
                    "floor_qr": {
                        name: round(total / cell.instances, 6)
                        for name, total in cell.floors.items()
                    },
                }
                for (task, level), cell in self._cells.items()
            },
            "note": (
                "hard_share is the share of indices that take only instances on which greedy "
                "misses the optimum: a selection, not a property of random instances"
            ),
        }

    def card(self, request: Request, manifest: dict[str, Any]) -> str:
        """The dataset card."""
        lines = [
            "---",
            "license: apache-2.0",
            "pretty_name: MM-NP-Bench",
            "language: [en]",
            "task_categories: [visual-question-answering, question-answering]",
            f"size_categories: [{_size_category(self.rows)}]",
            "tags: [combinatorial-optimization, np-hard, benchmark, vision-language]",
            "dataset_info:",
            "  features:",
            *(f"  - name: {name}\n    dtype: {_dtype(name)}" for name in COLUMNS),
            "configs:",
            "- config_name: default",
            "  data_files:",
            f"  - split: {request.split}",
            f"    path: data/{request.split}-*.parquet",
            "---",
            "",
            f"# {self.version}, split {request.split}",
            "",
            f"{manifest['rows']} rows of {manifest['instances']} instances; "
            f"{manifest['proven_optimal']:.1%} of the references are proven optimal; greedy is "
            f"optimal on {manifest['greedy_optimal']:.1%}.",
            "",
            f"Made by `{request.command()}`.",
            "",
            "| task | level | instances | repeats | proven | greedy optimal | QR trivial | random "
            "| greedy | heuristic |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        for (task, level), cell in self._cells.items():
            floors = " | ".join(
                f"{cell.floors[name] / cell.instances:.3f}"
                for name in ("trivial", "random", "greedy", "heuristic")
            )
            lines.append(
                f"| {task} | {level} | {cell.instances} | {cell.instances - len(cell.classes)} | "
                f"{cell.proven / cell.instances:.1%} | "
                f"{cell.greedy_optimal / cell.instances:.1%} | {floors} |"
            )
        lines += [
            "",
            "Columns: `prompt` and `image` are the question; `instance` is its JSON form; "
            "`reference_*` the best known solution and what is proven of it; `*_objective` the "
            "floors. Rows with one `instance_id` show one instance. Score replies with "
            "`npbench score --data DIR --responses FILE.jsonl`.",
            "",
            "Instances are drawn from documented random families and are free of third-party data.",
            "",
            "## Example",
            "",
            "```python",
            "import datasets",
            "",
            f'row = datasets.load_dataset("DIR", split="{request.split}")[0]',
            'row["prompt"], row["image"]  # .convert("RGB") before you make an array of a picture',
            "```",
            "",
            "## Citation",
            "",
            "When you report scores, name the version above and the content hash of the manifest:",
            "",
            "```bibtex",
            "@misc{npbench,",
            f"  title = {{{{MM-NP-Bench}}: {self.version}}},",
            f"  note = {{content hash {manifest['content_hash'][:16]}}},",
            "}",
            "```",
            "",
        ]
        return "\n".join(lines)


def _dtype(column: str) -> str:
    if column == "image":
        return "image"
    return "int64" if column in INTEGER_COLUMNS else "string"


def _size_category(rows: int) -> str:
    """The Hub's name for a number of rows."""
    bounds = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
    return next((name for bound, name in bounds if rows < bound), "100K<n<1M")
