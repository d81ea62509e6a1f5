"""Hypotheses stated as data, and what a reproduction says of each.

The rule: a part holds where the 95 % interval of its mean over seeds excludes 0 in the claimed
direction; a hypothesis is supported where all of its parts hold and its p, the largest of theirs,
survives Holm's correction over all hypotheses that were stated, tested or not.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import fmean
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from leaderboards.reproduction_cells import Results
from leaderboards.reproduction_settings import BASE, known_arms
from leaderboards.reproduction_table import by_seed
from leaderboards.seed_statistics import Spread, holm, over_seeds
from npbench.errors import InputError, unknown_name

__all__ = [
    "Correlation",
    "Hypotheses",
    "Hypothesis",
    "Part",
    "PartResult",
    "Term",
    "Verdict",
    "judge",
    "load_hypotheses",
    "part_values",
    "rule_note",
]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Term(_Frozen):
    """A number of an arm: of its last checkpoint, or of its training curve."""

    arm: str
    measure: str
    weight: float = 1.0
    steps: tuple[int, int] | None = None
    """First and last step, from 0, of the curve's stretch."""


class Correlation(_Frozen):
    """Pearson's correlation of two numbers over arms."""

    x: str
    y: str
    arms: Annotated[tuple[str, ...], Field(min_length=3)]


class Part(_Frozen):
    """A sum, or a correlation, that is claimed to be above or below 0."""

    says: str
    direction: Literal["above", "below"]
    terms: tuple[Term, ...] = ()
    correlation: Correlation | None = None
    plus: float = 0.0

    @model_validator(mode="after")
    def _one_of_both(self) -> "Part":
        if bool(self.terms) == (self.correlation is not None):
            raise ValueError("a part holds terms or a correlation")
        return self

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that it needs."""
        return self.correlation.arms if self.correlation else tuple(t.arm for t in self.terms)


class Hypothesis(_Frozen):
    """A claim of a paper, and how it is tested."""

    id: str
    claim: str
    source: str
    split: str = "in-domain"
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]


class Rule(_Frozen):
    """When a claim counts as supported."""

    level: Annotated[float, Field(gt=0.5, lt=1.0)]
    min_seeds: Annotated[int, Field(ge=2)]
    """Fewer seeds leave a claim untested."""


class Hypotheses(_Frozen):
    """All that were stated."""

    rule: Rule
    hypotheses: tuple[Hypothesis, ...]


@dataclass(frozen=True, slots=True)
class PartResult:
    """What was found of a part."""

    part: Part
    found: Spread | None
    """None where an arm or a measure is missing."""
    missing: tuple[str, ...]

    @property
    def as_claimed(self) -> bool:
        """Whether the mean lies on the claimed side."""
        if self.found is None:
            return False
        return self.found.mean > 0 if self.part.direction == "above" else self.found.mean < 0

    def opposite(self, alpha: float) -> bool:
        """Whether the uncorrected interval at 1 - alpha excludes 0 on the other side."""
        if self.found is None or self.found.p is None or self.found.p > alpha:
            return False
        return not self.as_claimed


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a hypothesis from one base."""

    hypothesis: Hypothesis
    base: str
    verdict: Literal["supported", "not supported", "not tested"]
    reason: str
    parts: tuple[PartResult, ...]
    p: float | None
    adjusted: float | None
    """Holm's."""

    def evidence(self) -> str:
        """Reason and numbers in words."""
        sentences = [self.reason]
        sentences += [f"{one.part.says}: {_words(one.found)}" for one in self.parts if one.found]
        if self.adjusted is not None:
            sentences.append(f"corrected p = {self.adjusted:.2g}")
        return "; ".join(sentences) + "."


def _words(found: Spread | None) -> str:
    if found is None:
        return "missing"
    if found.low is None or found.high is None or found.p is None:
        return f"{found.mean:+.3f} (one seed)"
    interval = f"[{found.low:+.3f}, {found.high:+.3f}]"
    return f"{found.mean:+.3f} {interval}, {found.n} seeds, p = {found.p:.2g}"


def load_hypotheses() -> Hypotheses:
    """The hypotheses that are shipped.

    Raises:
        InputError: If the file holds something else.
    """
    text = (files("leaderboards") / "hypotheses.toml").read_text(encoding="utf-8")
    return read_hypotheses(tomllib.loads(text))


def rule_note() -> str:
    """When a claim counts as supported, in a sentence."""
    stated = load_hypotheses()
    return (
        f"claims were stated before the runs; supported: the {100 * stated.rule.level:.0f} % "
        f"interval of every part, over at least {stated.rule.min_seeds} seeds and paired by seed, "
        f"excludes 0 in the claimed direction after Holm's correction over all "
        f"{len(stated.hypotheses)} claims of a base, tested or not"
    )


def read_hypotheses(values: Mapping[str, Any]) -> Hypotheses:
    """Checked hypotheses.

    Raises:
        InputError: If a name is unknown or a value out of place.
    """
    try:
        stated = Hypotheses.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"hypotheses: {place}: {first['msg'].lower()}") from None
    names = [one.id for one in stated.hypotheses]
    if len(set(names)) != len(names):
        raise InputError("hypotheses: two have the same id")
    known = (BASE, *known_arms())
    for one in stated.hypotheses:
        for arm in (arm for part in one.parts for arm in part.arms):
            if arm not in known:
                raise unknown_name(f"arm of hypothesis {one.id}", arm, known)
    return stated


def part_values(results: Results, base: str, split: str, part: Part) -> dict[int, float]:
    """The part's value on each seed that has everything it needs."""
    if part.correlation is not None:
        return {
            seed: value + part.plus
            for seed, value in _correlations(results, base, split, part.correlation).items()
        }
    columns = [_term_values(results, base, split, term) for term in part.terms]
    shared = set.intersection(*(set(column) for column in columns))
    return {
        seed: part.plus
        + sum(t.weight * column[seed] for t, column in zip(part.terms, columns, strict=True))
        for seed in sorted(shared)
    }


def _term_values(results: Results, base: str, split: str, term: Term) -> dict[int, float]:
    if term.steps is None:
        return by_seed(results, base, term.arm, split, term.measure)
    first, last = term.steps
    found = {}
    for curve in results.curves:
        if (curve.base, curve.arm) != (base, term.arm):
            continue
        steps, values = curve.values(term.measure)
        pairs = zip(steps, values, strict=True)
        known = [v for s, v in pairs if s is not None and v is not None and first <= s <= last]
        if known and max(s for s in steps if s is not None) >= last:
            found[curve.seed] = fmean(known)
    return found


def _correlations(results: Results, base: str, split: str, wanted: Correlation) -> dict[int, float]:
    xs = [by_seed(results, base, arm, split, wanted.x) for arm in wanted.arms]
    ys = [by_seed(results, base, arm, split, wanted.y) for arm in wanted.arms]
    found = {}
    for seed in sorted(set.intersection(*(set(column) for column in (*xs, *ys)))):
        x, y = np.array([c[seed] for c in xs]), np.array([c[seed] for c in ys])
        if np.ptp(x) > 0 and np.ptp(y) > 0:
            found[seed] = float(np.corrcoef(x, y)[0, 1])
    return found


def judge(results: Results, stated: Hypotheses | None = None) -> list[Verdict]:
    """A verdict on each hypothesis from each base, corrected within a base.

    Args:
        results: What was found.
        stated: The hypotheses; those that are shipped where None.
    """
    stated = load_hypotheses() if stated is None else stated
    found = []
    for base in results.manifest.bases:
        parts = {
            one.id: tuple(_part_result(results, base, one.split, p, stated.rule) for p in one.parts)
            for one in stated.hypotheses
        }
        untested = {
            one.id: _why_untested(results, parts[one.id], stated.rule) for one in stated.hypotheses
        }
        p_values = {name: 1.0 if untested[name] else _joint(parts[name]) for name in parts}
        adjusted = holm(p_values)
        found += [
            _verdict(one, base, parts[one.id], untested[one.id], p_values, adjusted, stated)
            for one in stated.hypotheses
        ]
    return found


def _part_result(results: Results, base: str, split: str, part: Part, rule: Rule) -> PartResult:
    values = part_values(results, base, split, part)
    missing = []
    if not values:
        have = {key.arm for key in results.cells if (key.base, key.split) == (base, split)}
        missing = [arm for arm in dict.fromkeys(part.arms) if arm not in have]
    found = over_seeds(list(values.values()), level=rule.level)
    return PartResult(part, found, tuple(missing))


def _why_untested(results: Results, parts: Sequence[PartResult], rule: Rule) -> str:
    """Why nothing can be said; empty where something can."""
    if results.manifest.marker:
        return results.manifest.marker
    missing = dict.fromkeys(arm for one in parts for arm in one.missing)
    if missing:
        return f"not run: {', '.join(missing)}"
    if any(one.found is None for one in parts):
        return "a measure is missing"
    seeds = min(one.found.n for one in parts if one.found)
    return "" if seeds >= rule.min_seeds else f"{seeds} of at least {rule.min_seeds} seeds"


def _joint(parts: Sequence[PartResult]) -> float:
    """The p of all parts together: the largest, and 1 where one points the other way."""
    known = [one.found.p for one in parts if one.found and one.found.p is not None]
    return max(known) if all(one.as_claimed for one in parts) else 1.0


def _verdict(
    one: Hypothesis,
    base: str,
    parts: tuple[PartResult, ...],
    untested: str,
    p_values: Mapping[str, float],
    adjusted: Mapping[str, float],
    stated: Hypotheses,
) -> Verdict:
    if untested:
        return Verdict(one, base, "not tested", untested, parts, None, None)
    alpha = 1.0 - stated.rule.level
    p, corrected = p_values[one.id], adjusted[one.id]
    if corrected <= alpha:
        reason = "as claimed, the interval excludes 0 after correction"
        return Verdict(one, base, "supported", reason, parts, p, corrected)
    if against := [one for one in parts if one.opposite(alpha)]:
        reason = f"the uncorrected interval excludes 0 on the other side{_of(against, parts)}"
    elif other := [one for one in parts if not one.as_claimed]:
        reason = f"the mean is not on the side of the claim{_of(other, parts)}"
    elif p <= alpha:
        reason = "as claimed, but not after the correction for the number of claims"
    else:
        reason = "the interval holds 0"
    return Verdict(one, base, "not supported", reason, parts, p, corrected)


def _of(some: Sequence[PartResult], parts: Sequence[PartResult]) -> str:
    """Names some parts of a claim that has several."""
    return f" ({'; '.join(one.part.says for one in some)})" if len(parts) > 1 else ""
