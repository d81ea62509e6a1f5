"""The table of a reproduction, from its cells alone: means over seeds, intervals, differences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from leaderboards.formats import Sheet, as_csv
from leaderboards.reproduction_cells import Key, Results
from leaderboards.reproduction_settings import BASE, known_arms
from leaderboards.seed_statistics import Spread, over_seeds, paired

__all__ = [
    "BASELINE",
    "CURVE_KS",
    "INTERVALS",
    "MEASURES",
    "Measure",
    "Row",
    "arm_label",
    "arms_of",
    "by_seed",
    "keys_at_end",
    "measures_of",
    "protocol_note",
    "rows_csv",
    "rows_json",
    "seeds_of",
    "table_rows",
    "table_sheets",
]

BASELINE = "grpo"
"""Differences are taken from this arm."""
CURVE_KS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a cell."""

    name: str
    title: str
    digits: int = 3


MEASURES = (
    Measure("sr", "SR"),
    Measure("qr", "QR"),
    Measure("acc@1", "acc@1"),
    Measure("acc@4", "acc@4"),
    Measure("pass@4", "pass@4"),
    Measure("pass@16", "pass@16"),
    Measure("qr@4", "best-of-4 QR"),
    Measure("qr@16", "best-of-16 QR"),
    Measure("distinct_feasible", "distinct feasible", 2),
    Measure("solution_distance", "solution diversity"),
    Measure("reasoning_distance", "reasoning diversity", 4),
    Measure("entropy", "entropy"),
    Measure("length", "length", 1),
    Measure("train_seconds", "training s", 0),
    Measure("train_tokens", "trained tokens", 0),
    Measure("evaluation_seconds", "evaluation s", 0),
)
"""In the order in which tables show them; one that no cell has is left out."""

_OTHERS = ("sr_greedy", "qr_greedy", "truncated", "distinct_replies")
"""In the files only."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measure of one arm."""

    base: str
    split: str
    step: int
    arm: str
    measure: str
    value: Spread
    difference: Spread | None
    """To GRPO on the same seeds; None for GRPO itself and where it is missing."""


def arm_label(arm: str) -> str:
    """How tables and plots call an arm."""
    if arm == BASE:
        return "base, not trained"
    found = known_arms().get(arm)
    return arm if found is None else found.label


def arms_of(results: Results) -> list[str]:
    """The arms that have cells: the base first, then in the order of the list of arms."""
    found = {key.arm for key in results.cells}
    order = [BASE, *known_arms()]
    return [arm for arm in order if arm in found] + sorted(found - set(order))


def by_seed(
    results: Results, base: str, arm: str, split: str, measure: str, step: int | None = None
) -> dict[int, float]:
    """One value a seed, of the last checkpoint where no step is given; nulls are left out."""
    wanted = 0 if arm == BASE else results.last_step() if step is None else step
    found = {}
    for key, cell in results.cells.items():
        if (key.base, key.arm, key.split, key.step) == (base, arm, split, wanted):
            value = cell.metrics.get(measure, cell.cost.get(measure))
            if value is not None:
                found[key.seed] = value
    return found


def measures_of(results: Results) -> list[str]:
    """All numbers that some cell has, those of the table first."""
    held = {name for c in results.cells.values() for name in (*c.metrics, *c.cost)}
    curves = [f"{kind}@{k}" for kind in ("pass", "acc", "qr", "sr", "mean") for k in CURVE_KS]
    order = dict.fromkeys([*(measure.name for measure in MEASURES), *curves, *_OTHERS])
    return [name for name in order if name in held]


def table_rows(results: Results) -> Iterator[Row]:
    """Every measure of every arm, split, checkpoint and base."""
    arms, measures = arms_of(results), measures_of(results)
    steps = sorted({key.step for key in results.cells if key.arm != BASE})
    for base in results.manifest.bases:
        for split in results.splits():
            for step in steps:
                for measure in measures:
                    against = by_seed(results, base, BASELINE, split, measure, step)
                    for arm in arms:
                        own = by_seed(results, base, arm, split, measure, step)
                        spread = over_seeds(list(own.values()))
                        if spread is not None:
                            difference = None if arm == BASELINE else paired(own, against)
                            yield Row(base, split, step, arm, measure, spread, difference)


def _shown(value: float | None, digits: int, *, signed: bool = False) -> str:
    if value is None:
        return "–"
    return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"


def _cell(spread: Spread | None, digits: int, *, signed: bool = False) -> str:
    """A mean and its interval as text."""
    if spread is None:
        return "–"
    mean = _shown(spread.mean, digits, signed=signed)
    if spread.low is None:
        return mean
    low = _shown(spread.low, digits, signed=signed)
    return f"{mean} [{low}, {_shown(spread.high, digits, signed=signed)}]"


def protocol_note(results: Results) -> str:
    """How everything was made, in a sentence."""
    training = results.manifest.protocol["training"]
    evaluation = results.manifest.protocol["evaluation"]
    return (
        f"{training['steps']} steps of {training['prompts_per_step']} prompts with "
        f"G = {training['group_size']}, the same prompts for all methods of a seed; held out: "
        f"one greedy and {evaluation['samples']} sampled replies a question at the training's "
        f"temperature; acc@1 is greedy, acc@k any of the first k samples optimal, pass@k the "
        f"same from all samples (unbiased); mean over questions, then over seeds"
    )


INTERVALS = (
    "In brackets: 95 % interval, Student's t over seeds; a difference is paired by seed, and only "
    "one whose interval excludes 0 can be told from chance, before any correction for the many"
)


def table_sheets(
    results: Results, rows: Sequence[Row] | None = None, *, bases: Sequence[str] | None = None
) -> list[Sheet]:
    """For each base and split: the values, the differences to GRPO, and pass@k over k.

    Args:
        results: What was found.
        rows: Those of :func:`table_rows`, where they are at hand.
        bases: Only of these.
    """
    rows = list(table_rows(results)) if rows is None else rows
    last = results.last_step()
    place = {(r.base, r.split, r.arm, r.measure): r for r in rows if r.step == last}
    marker = [results.manifest.marker] if results.manifest.marker else []
    notes = (*marker, protocol_note(results), INTERVALS)
    arms = arms_of(results)
    sheets = []
    for base in results.manifest.bases if bases is None else bases:
        for split in results.splits():
            here = [m for m in MEASURES if any((base, split, a, m.name) in place for a in arms)]
            if not here:
                continue
            shown = [a for a in arms if any((base, split, a, m.name) in place for m in here)]
            title = f"{base}, {split}"
            sheets.append(_values(title, place, (base, split), shown, here, notes))
            sheets.append(_differences(title, place, (base, split), shown, here, notes))
            sheets += _curve_sheet(title, place, (base, split), shown, notes)
    return sheets


_Place = Mapping[tuple[str, str, str, str], Row]


def _seeds(place: _Place, where: tuple[str, str], arm: str) -> str:
    counts = {row.value.n for (b, s, a, _), row in place.items() if (b, s, a) == (*where, arm)}
    return str(max(counts, default=0))


def _values(
    title: str,
    place: _Place,
    where: tuple[str, str],
    arms: Sequence[str],
    measures: Sequence[Measure],
    notes: tuple[str, ...],
) -> Sheet:
    rows = []
    for arm in arms:
        found = [place.get((*where, arm, m.name)) for m in measures]
        cells = [
            _cell(row.value if row else None, m.digits)
            for row, m in zip(found, measures, strict=True)
        ]
        rows.append((arm_label(arm), _seeds(place, where, arm), *cells))
    columns = ("method", "seeds", *(m.title for m in measures))
    return Sheet(title, columns, tuple(rows), notes)


def _differences(
    title: str,
    place: _Place,
    where: tuple[str, str],
    arms: Sequence[str],
    measures: Sequence[Measure],
    notes: tuple[str, ...],
) -> Sheet:
    rows = []
    for arm in arms:
        if arm == BASELINE:
            continue
        found = [place.get((*where, arm, m.name)) for m in measures]
        cells = [
            _cell(row.difference if row else None, m.digits, signed=True)
            for row, m in zip(found, measures, strict=True)
        ]
        rows.append((arm_label(arm), *cells))
    columns = ("method", *(m.title for m in measures))
    return Sheet(f"{title}: minus {arm_label(BASELINE)}", columns, tuple(rows), notes)


def _curve_sheet(
    title: str,
    place: _Place,
    where: tuple[str, str],
    arms: Sequence[str],
    notes: tuple[str, ...],
) -> list[Sheet]:
    ks = [k for k in CURVE_KS if any((*where, arm, f"pass@{k}") in place for arm in arms)]
    if not ks:
        return []
    rows = []
    for arm in arms:
        found = [place.get((*where, arm, f"pass@{k}")) for k in ks]
        rows.append((arm_label(arm), *(_cell(row.value if row else None, 3) for row in found)))
    columns = ("method", *(f"pass@{k}" for k in ks))
    return [Sheet(f"{title}: pass@k", columns, tuple(rows), notes)]


_CSV = (
    "base", "split", "step", "arm", "measure", "seeds", "mean", "low", "high",
    "difference", "difference_low", "difference_high", "difference_p", "marker",
)  # fmt: skip


def rows_csv(rows: Sequence[Row], *, marker: str = "") -> str:
    """All rows as comma-separated values, one measure a line, each with the preset's marker."""
    lines = []
    for row in rows:
        apart = row.difference
        numbers = [row.value.mean, row.value.low, row.value.high]
        numbers += [apart.mean, apart.low, apart.high, apart.p] if apart else [None] * 4
        texts = ["" if number is None else f"{number:.6g}" for number in numbers]
        where = [row.base, row.split, str(row.step), row.arm, row.measure, str(row.value.n)]
        lines.append([*where, *texts, marker])
    return as_csv(_CSV, lines)


def rows_json(results: Results, rows: Sequence[Row]) -> dict[str, Any]:
    """All rows as plain data."""
    return {
        "schema": 1,
        "marker": results.manifest.marker,
        "preset": results.manifest.preset,
        "protocol": results.manifest.protocol_hash,
        "rows": [asdict(row) for row in rows],
    }


def seeds_of(results: Results) -> list[int]:
    """All seeds that have a cell."""
    return sorted({key.seed for key in results.cells})


def keys_at_end(results: Results, split: str) -> list[Key]:
    """The cells of last checkpoints, and of the base, on a split."""
    last = results.last_step()
    return [
        key
        for key in results.cells
        if key.split == split and key.step == (last, 0)[key.arm == BASE]
    ]
