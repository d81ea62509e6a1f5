"""Splits: what is asked for, the rows in their order, and single rows without building anything."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, overload

from npbench.errors import InputError, unknown_name
from npbench.generation import SPLITS, Drawn, customised, draw_instance, get_level
from npbench.graphs import require_int
from npbench.prompts import Modality, noted
from npbench.rendering.styles import STYLES, get_style
from npbench.rng import digest
from npbench.suites import get_suite, group_of, suite_tasks
from npbench.tasks import TASKS, get_task

__all__ = ["COLUMNS", "INTEGER_COLUMNS", "LazySplit", "Request", "Row", "Unit", "load", "make_rows"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a split; the fields are the columns of its Parquet files."""

    id: str
    instance_id: str
    suite: str
    task: str
    group: str
    level: str
    split: str
    seed: int
    index: int
    family: str
    modality: str
    instance: str
    """JSON text."""
    prompt: str
    image: bytes | None
    """PNG, None for text."""
    layout: str | None
    """JSON text of where everything was drawn, None for text."""
    style: str | None
    reference_objective: int
    reference_solution: str
    """JSON text."""
    reference_status: str
    reference_bound: int
    trivial_objective: int
    random_objective: int
    greedy_objective: int
    heuristic_objective: int
    class_key: str
    version: str


COLUMNS = tuple(Row.__dataclass_fields__)
"""Columns of a split's Parquet files, in order."""
INTEGER_COLUMNS = frozenset({"seed", "index", "reference_bound"}) | {
    name for name in COLUMNS if name.endswith("_objective")
}
"""Columns that hold integers; ``image`` holds a picture and the others text."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One instance to draw: the rows of all its modalities and styles are made together."""

    task: str
    level: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A split as it was asked for; equal requests give equal bytes."""

    suite: str
    split: str
    seed: int
    per_task: int
    levels: tuple[str, ...]
    tasks: tuple[str, ...]
    modalities: tuple[str, ...]
    styles: tuple[str, ...]
    params: Mapping[str, int | tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def make(
        cls,
        *,
        suite: str,
        split: str,
        seed: int,
        per_task: int,
        levels: Sequence[str] = (),
        tasks: Sequence[str] = (),
        modality: str | None = None,
        styles: Sequence[str] = (),
        params: Mapping[str, int | tuple[int, int]] | None = None,
    ) -> "Request":
        """A request from what a user gave, defaults of the suite filled in, everything checked.

        Raises:
            InputError: If a name is unknown or a number out of range.
        """
        chosen = get_suite(suite)
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        require_int(per_task, "per-task", low=1, high=10_000_000)
        require_int(seed, "seed", low=0, high=2**63 - 1)
        names = _unique("task", [get_task(name).name for name in tasks])
        for level in levels:
            if not any(level in task.levels for task in TASKS.values()):
                every = {name: None for task in TASKS.values() for name in task.levels}
                raise unknown_name("level", level, every)
        wanted = _unique("level", list(levels)) or chosen.levels
        names = suite_tasks(chosen, names, wanted)
        for name in names:
            for level in wanted:
                customised(TASKS[name], get_level(TASKS[name], level), params or {})
        shown = chosen.modality.value if modality is None else modality
        if shown not in ("image", "text", "both"):
            raise unknown_name("modality", shown, ("image", "text", "both"))
        for style in styles:
            get_style(style)
        return cls(
            suite=suite,
            split=split,
            seed=seed,
            per_task=per_task,
            levels=wanted,
            tasks=names,
            modalities=("image", "text") if shown == "both" else (shown,),
            styles=_unique("style", list(styles)) or (next(iter(STYLES)),),
            params=dict(params or {}),
        )

    @property
    def rows_per_unit(self) -> int:
        """Rows that one instance gives."""
        return sum(len(self.styles) if shown == "image" else 1 for shown in self.modalities)

    @property
    def num_units(self) -> int:
        """Instances of the split."""
        return self.per_task * len(self.levels) * len(self.tasks)

    def unit(self, position: int) -> Unit:
        """The instance at a position: all tasks and levels of index 0 first, then of index 1, ...

        So the rows of a larger split begin with those of a smaller one.
        """
        index, rest = divmod(position, len(self.levels) * len(self.tasks))
        level, task = divmod(rest, len(self.tasks))
        return Unit(self.tasks[task], self.levels[level], index)

    def as_json(self) -> dict[str, Any]:
        """The request as plain data."""
        return {**asdict(self), "params": {k: _plain(v) for k, v in self.params.items()}}

    def command(self) -> str:
        """The command that makes this split, without its folder and its number of processes."""
        parts = ["npbench generate", f"--suite {self.suite}"]
        parts += [f"--level {level}" for level in self.levels]
        parts += [f"--split {self.split}", f"--seed {self.seed}", f"--per-task {self.per_task}"]
        if self.tasks != get_suite(self.suite).tasks:
            parts += [f"--task {task}" for task in self.tasks]
        both = len(self.modalities) == 2
        parts.append(f"--modality {'both' if both else self.modalities[0]}")
        parts += [f"--style {style}" for style in self.styles]
        for name, value in self.params.items():
            text = value if isinstance(value, int) else f"{value[0]}-{value[1]}"
            parts.append(f"--param {name}={text}")
        return " ".join(parts)


def _plain(value: int | tuple[int, int]) -> int | list[int]:
    return value if isinstance(value, int) else list(value)


def _unique(kind: str, names: Sequence[str]) -> tuple[str, ...]:
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise InputError(f"{kind} {repeated[0]} is asked for twice")
    return tuple(names)


def make_rows(request: Request, unit: Unit) -> list[Row]:
    """All rows of one instance: pictures in every style, then text, as far as asked for.

    Raises:
        GenerationError: If no instance passes the checks.
        PictureError: If the instance cannot be drawn legibly.
    """
    suite = get_suite(request.suite)
    task = TASKS[unit.task]
    level = customised(task, get_level(task, unit.level), request.params)
    drawn = draw_instance(
        task,
        level,
        version=suite.version,
        split=request.split,
        seed=request.seed,
        index=unit.index,
    )
    suffix = f"-{digest(request.as_json()['params'])[:6]}" if request.params else ""
    instance_id = (
        f"{suite.version}-{task.name}-{level.name}-{request.split}-s{request.seed}"
        f"-{unit.index:05d}{suffix}"
    )
    rows: list[Row] = []
    for shown in request.modalities:
        for style in request.styles if shown == "image" else (None,):
            image = layout = None
            asked = task
            if style is not None:
                drawn_as = get_style(style)
                asked = replace(task, wording=noted(task.wording, drawn_as.note))
                picture = task.draw(drawn.instance, drawn_as, level.picture_size)
                image, layout = picture.png, _compact(picture.layout)
            default = style is None or style == next(iter(STYLES))
            rows.append(
                Row(
                    id=f"{instance_id}-{shown}" + ("" if default else f"-{style}"),
                    instance_id=instance_id,
                    suite=request.suite,
                    task=task.name,
                    group=group_of(request.suite, task),
                    level=level.name,
                    split=request.split,
                    seed=request.seed,
                    index=unit.index,
                    family=drawn.family,
                    modality=shown,
                    instance=_compact(task.encode(drawn.instance)),
                    prompt=asked.prompt(
                        drawn.instance, Modality(shown), brief=level.name == "nano"
                    ),
                    image=image,
                    layout=layout,
                    style=style,
                    class_key=drawn.class_key,
                    version=suite.version,
                    **_known(drawn),
                )
            )
    return rows


def _known(drawn: Drawn) -> dict[str, Any]:
    """The columns about the reference and the floors."""
    return {
        "reference_objective": drawn.reference.objective,
        "reference_solution": _compact(drawn.reference.solution),
        "reference_status": drawn.reference.status.value,
        "reference_bound": drawn.reference.bound,
        **{f"{name}_objective": objective for name, objective in drawn.floors.items()},
    }


def _compact(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))


class LazySplit(Sequence[Row]):
    """The rows of a split, each made when it is asked for and never stored."""

    def __init__(self, request: Request) -> None:
        """The split of a request."""
        self.request = request
        self._unit_rows = lru_cache(maxsize=8)(self._make)

    def _make(self, position: int) -> list[Row]:
        return make_rows(self.request, self.request.unit(position))

    def __len__(self) -> int:
        """Number of rows."""
        return self.request.num_units * self.request.rows_per_unit

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        """One row, or the rows of a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of a split of {len(self)} rows")
        position, offset = divmod(index % len(self), self.request.rows_per_unit)
        return self._unit_rows(position)[offset]

    def __iter__(self) -> Iterator[Row]:
        """The rows in order."""
        return (self[i] for i in range(len(self)))


def load(
    suite: str,
    level: str | Sequence[str],
    split: str,
    seed: int,
    *,
    per_task: int = 100,
    tasks: Sequence[str] = (),
    modality: str | None = None,
    styles: Sequence[str] = (),
    params: Mapping[str, int | tuple[int, int]] | None = None,
) -> LazySplit:
    """A split whose rows are made when they are asked for, equal to those that are built on disk.

    Args:
        suite: ``mm-np-bench``, ``np-bench`` or ``nano``.
        level: A level or several.
        split: ``train``, ``validation`` or ``test``.
        seed: Any non-negative integer; different seeds share no stream.
        per_task: Instances per task and level; a larger number only adds rows at the end.
        tasks: The tasks, all of the suite where empty.
        modality: ``image``, ``text`` or ``both``; the suite's own where None.
        styles: Picture styles, turned or under noise where their names say so, such as
            ``dark-rotate15-noise8``.
        params: Sizes other than the level's, such as ``{"num_vertices": 30}``.

    Raises:
        InputError: If a name is unknown or a number out of range.

    Example:
        >>> row = load("np-bench", "easy", "train", 7, tasks=["knapsack"])[0]
        >>> row.task, row.modality, row.reference_status
        ('knapsack', 'text', 'optimal')
    """
    levels = [level] if isinstance(level, str) else list(level)
    tasks = [tasks] if isinstance(tasks, str) else tasks
    styles = [styles] if isinstance(styles, str) else styles
    return LazySplit(
        Request.make(
            suite=suite,
            split=split,
            seed=seed,
            per_task=per_task,
            levels=levels,
            tasks=tasks,
            modality=modality,
            styles=styles,
            params=params,
        )
    )
