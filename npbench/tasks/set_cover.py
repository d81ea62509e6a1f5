"""Minimum set cover: few subsets whose union holds all elements."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from npbench.answers import Shape
from npbench.canonical import class_key as structure_key
from npbench.covering import greedy_cover, random_cover, solve_cover
from npbench.errors import InputError
from npbench.families import draw_size
from npbench.graphs import member_mask, require_int, require_list, subset_refusal
from npbench.levels import make_levels
from npbench.prompts import Wording
from npbench.references import EARLY_STOP
from npbench.solutions import canonical_set, set_distance
from npbench.task import Budget, Reference, Sense, Task, Verdict

if TYPE_CHECKING:
    from npbench.rendering.picture import Picture
    from npbench.rendering.styles import Style

__all__ = ["TASK", "Cover"]


@dataclass(frozen=True)
class Cover:
    """Subsets of the elements 0 to m-1; entries outside that range count for nothing."""

    num_elements: int
    subsets: tuple[tuple[int, ...], ...]

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """Each subset as a bit mask of the elements."""
        universe = (1 << self.num_elements) - 1
        return tuple(member_mask(subset) & universe for subset in self.subsets)


def verify(instance: Cover, answer: object) -> Verdict:
    """Feasible where the subset numbers are distinct and every element is in a chosen subset."""
    refusal = subset_refusal(answer, len(instance.subsets), "subset")
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    covered = 0
    for j in answer:
        covered |= instance.masks[j]
    missing = ~covered & ((1 << instance.num_elements) - 1)
    if missing:
        element = (missing & -missing).bit_length() - 1
        return Verdict(False, reason=f"element {element} is not covered", rule="uncovered")
    return Verdict(True, objective=len(answer))


def trivial(instance: Cover, _: np.random.Generator) -> list[int]:
    """All subsets."""
    return list(range(len(instance.subsets)))


def random(instance: Cover, rng: np.random.Generator) -> list[int]:
    """Subsets in random order, taken until everything is covered."""
    return random_cover(instance.masks, instance.num_elements, rng)


def greedy(instance: Cover, _: np.random.Generator) -> list[int]:
    """The subset with most new elements first, the lowest number among equals."""
    return greedy_cover(instance.masks, instance.num_elements)


def heuristic(instance: Cover, _: np.random.Generator) -> list[int]:
    """CP-SAT stopped early."""
    return solve_cover(instance.masks, instance.num_elements, EARLY_STOP, hint=False).solution


def reference(instance: Cover, budget: Budget) -> Reference[list[int]]:
    """CP-SAT with one clause per element."""
    return solve_cover(instance.masks, instance.num_elements, budget, hint=True)


def flaw(instance: Cover, best: Reference[list[int]]) -> str | None:
    """One subset is not enough, and most elements lie in two or more subsets."""
    if best.objective < 2:
        return "one subset covers all"
    counts = [sum(mask >> e & 1 for mask in instance.masks) for e in range(instance.num_elements)]
    if 2 * sum(count >= 2 for count in counts) < len(counts):
        return "most elements lie in one subset only"
    return None


def _finished(m: int, subsets: list[set[int]], rng: np.random.Generator) -> Cover:
    """Empty subsets filled, every element covered, all renumbered at random."""
    for subset in subsets:
        if not subset:
            subset.add(int(rng.integers(m)))
    for element in sorted(set(range(m)) - set().union(*subsets)):
        subsets[int(rng.integers(len(subsets)))].add(element)
    names = rng.permutation(m).tolist()
    order = rng.permutation(len(subsets)).tolist()
    return Cover(m, tuple(tuple(sorted(names[e] for e in subsets[j])) for j in order))


def _sizes(params: Mapping[str, Any], rng: np.random.Generator) -> tuple[int, int]:
    return draw_size(params, "num_elements", rng), draw_size(params, "num_subsets", rng)


def _uniform(params: Mapping[str, Any], rng: np.random.Generator) -> Cover:
    m, count = _sizes(params, rng)
    largest = max(2, round(m * params["largest"]))
    subsets = []
    for _ in range(count):
        size = int(rng.integers(min(2, m), largest + 1))
        subsets.append(set(rng.choice(m, size=min(size, m), replace=False).tolist()))
    return _finished(m, subsets, rng)


def _halving(params: Mapping[str, Any], rng: np.random.Generator) -> Cover:
    """Disjoint parts hide a small cover; traps of half, a quarter, ... of each tempt greedy."""
    m, count = _sizes(params, rng)
    parts = 2 if m < 10 or rng.random() < 0.5 else 3
    home = [e % parts for e in range(m)]
    subsets = [{e for e in range(m) if home[e] == part} for part in range(parts)]
    left = list(range(m))
    while len(left) > 2 and len(subsets) < count:
        size = min(len(left), max(2, len(left) // 2 + 1))
        subsets.append(set(left[:size]))
        left = left[size:]
    for part in subsets[:parts]:  # the hidden cover is split, so that no subset is too large
        if len(part) > params["largest"] * m + 1 and len(subsets) < count:
            half = sorted(part)[::2]
            part.difference_update(half)
            subsets.append(set(half))
    while len(subsets) < count:
        size = int(rng.integers(2, max(3, m // 3) + 1))
        subsets.append(set(rng.choice(m, size=min(size, m), replace=False).tolist()))
    return _finished(m, subsets, rng)


def _small_world(params: Mapping[str, Any], rng: np.random.Generator) -> Cover:
    """Intervals on a ring, with a few far members."""
    m, count = _sizes(params, rng)
    largest = max(2, round(m * params["largest"]))
    subsets = []
    for _ in range(count):
        start, size = int(rng.integers(m)), int(rng.integers(2, largest + 1))
        subset = {(start + i) % m for i in range(size)}
        if rng.random() < 0.4:
            subset.add(int(rng.integers(m)))
        subsets.append(subset)
    return _finished(m, subsets, rng)


def encode(instance: Cover) -> dict[str, Any]:
    """The JSON form."""
    subsets = [list(subset) for subset in instance.subsets]
    return {"num_elements": instance.num_elements, "subsets": subsets}


def decode(data: Any) -> Cover:
    """From ``{"num_elements": m, "subsets": [[...], ...]}``.

    Raises:
        InputError: If a key is missing, an entry is no integer, or an element is in no subset.
    """
    if not isinstance(data, dict) or not {"num_elements", "subsets"} <= set(data):
        raise InputError("a set_cover instance needs the keys 'num_elements' and 'subsets'")
    m = require_int(data["num_elements"], "num_elements", low=1, high=100_000)
    subsets = []
    for j, subset in enumerate(require_list(data["subsets"], "subsets", low=1)):
        entries = require_list(subset, f"subsets[{j}]")
        subsets.append(tuple(sorted({require_int(e, f"subsets[{j}]", low=0) for e in entries})))
    missing = sorted(set(range(m)) - {e for subset in subsets for e in subset})
    if missing:
        raise InputError(f"element {missing[0]} is in no subset, so there is no cover")
    return Cover(m, tuple(subsets))


def class_key(instance: Cover) -> str:
    """Equal for renumbered elements and subsets."""
    m = instance.num_elements
    rows: list[dict[int, int]] = [{} for _ in range(m + len(instance.subsets))]
    for j, subset in enumerate(instance.subsets):
        for element in subset:
            if element < m:
                rows[element][m + j] = 1
                rows[m + j][element] = 1
    return structure_key([0] * m + [1] * len(instance.subsets), rows)


def describe(instance: Cover) -> str:
    """The subsets as the text prompt writes them."""
    rows = "\n".join(
        f"Subset {j}: {', '.join(map(str, subset))}" for j, subset in enumerate(instance.subsets)
    )
    return f"Elements: 0 to {instance.num_elements - 1}\n{rows}"


def draw(instance: Cover, style: "Style", size: int) -> "Picture":
    """An incidence matrix: a row for each subset, an x where it holds the element."""
    from npbench.pictures import table_picture
    from npbench.rendering.panels import TablePanel

    m = instance.num_elements
    rows = tuple(
        (f"S{j}", *("x" if mask >> e & 1 else "" for e in range(m)))
        for j, mask in enumerate(instance.masks)
    )
    return table_picture(
        [TablePanel(columns=("", *map(str, range(m))), rows=rows, size=size)], style
    )


def _text(elements: tuple[int, int], subsets: tuple[int, int]) -> dict[str, Any]:
    return {"num_elements": elements, "num_subsets": subsets, "largest": 0.4}


TASK: Task[Cover, list[int]] = Task(
    name="set_cover",
    title="minimum set cover",
    sense=Sense.MIN,
    group="selection",
    category="selection",
    aliases=("set-cover",),
    levels=make_levels(
        {
            "nano": {"num_elements": (5, 8), "num_subsets": (5, 8), "largest": 0.5},
            "l1": {"num_elements": (8, 10), "num_subsets": (8, 10), "largest": 0.45},
            "l2": {"num_elements": (12, 15), "num_subsets": (10, 14), "largest": 0.4},
            "l3": {"num_elements": (16, 20), "num_subsets": (14, 18), "largest": 0.4},
            "easy": _text((10, 20), (8, 10)),
            "medium": _text((20, 25), (10, 15)),
            "hard": _text((25, 30), (15, 25)),
            "bench": _text((30, 40), (20, 30)),
        }
    ),
    limits={"num_elements": (4, 200), "num_subsets": (4, 200)},
    families={"uniform": _uniform, "halving": _halving, "small_world": _small_world},
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    canonical=canonical_set,
    distance=set_distance,
    class_key=class_key,
    encode=encode,
    decode=decode,
    shape=Shape.FLAT,
    wording=Wording(
        title="the minimum set cover problem",
        rules=(
            "Choose as few subsets as possible such that every element is in at least one chosen "
            "subset. Elements and subsets are numbered from 0."
        ),
        picture="The picture shows a table: an x in row Sj, column e: subset j holds element e.",
        output="A list of distinct subset numbers.",
        brief=(
            "Choose as few subsets as possible such that every element is in a chosen one. "
            "Answer with a list of subset numbers."
        ),
        example={"num_elements": 5, "subsets": [[0, 1], [1, 2, 3], [3, 4], [0, 4], [2]]},
        example_answer=[0, 1, 2],
    ),
    describe=describe,
    draw=draw,
    notes={
        "uniform": "subsets of random sizes",
        "halving": "a hidden small cover and the halving traps of greedy",
        "small_world": "intervals on a ring with a few far members",
    },
)
