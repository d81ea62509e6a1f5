"""The metric families of the benchmarks' own papers, from the scores of all questions.

A family sees one reply to each question. Greedy replies are one such set; of k sampled replies
there are k sets, and each metric is averaged over them. A sample whose judge failed is unscored:
it is left out of every mean and counted.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from evaluators.grading import State
from evaluators.records import SampleRecord

__all__ = [
    "Family",
    "Mark",
    "Marks",
    "Metrics",
    "Place",
    "hallusion",
    "mean_score",
    "mm_vet",
    "official",
    "shares",
    "we_math",
]


@dataclass(frozen=True, slots=True)
class Place:
    """What a family needs to know of a question."""

    id: str
    instance_id: str
    category: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Mark:
    """What a reply got."""

    score: float
    judged: bool = False


Metrics = dict[str, float | None]
"""Name to value, None where it is undefined."""

Marks = Mapping[str, Mark]
"""Question id to mark; a question that is unscored has none."""

Family = Callable[[Sequence[Place], Marks], Metrics]


def official(
    family: Family, places: Sequence[Place], records: Sequence[SampleRecord]
) -> dict[str, Any]:
    """The family's metrics of the greedy replies and of the sampled ones.

    Args:
        family: The metrics of one set of replies.
        places: All questions; those without any record are not part of the run.
        records: The graded samples.

    Returns:
        ``greedy`` and ``sampled`` where there are such replies, each metrics by name with
        ``unscored``, the number of replies (of all sets) whose judge failed.
    """
    asked = {record.id for record in records}
    present = [place for place in places if place.id in asked]
    sets: dict[str, dict[int, dict[str, Mark]]] = {"greedy": {}, "sampled": {}}
    failed = {"greedy": 0, "sampled": 0}
    for record in records:
        marks = sets[record.decode].setdefault(record.sample, {})
        if record.state is State.JUDGE_FAILED:
            failed[record.decode] += 1
        else:
            marks[record.id] = Mark(record.score, record.grade_stage == "judge")
    result: dict[str, Any] = {}
    for decode, by_sample in sets.items():
        if by_sample:
            each = [family(present, by_sample[sample]) for sample in sorted(by_sample)]
            result[decode] = {**_mean_of(each), "unscored": failed[decode]}
    return result


def mean_score(places: Collection[Place], marks: Marks) -> float | None:
    """The mean score of the places that are scored, None without any."""
    scores = [marks[place.id].score for place in places if place.id in marks]
    return fmean(scores) if scores else None


def shares(*keys: str, each: Collection[str] = (), macro: Collection[str] = ()) -> Family:
    """A family: the mean over all questions, and over those of each value of each key.

    Args:
        keys: Categories to break down by.
        each: Keys whose values are lists (``"ocr,math"``): a question counts with every member.
        macro: Keys whose groups are also averaged with equal weight.
    """

    def family(places: Sequence[Place], marks: Marks) -> Metrics:
        metrics: Metrics = {"accuracy": mean_score(places, marks)}
        for key in keys:
            groups: dict[str, list[Place]] = defaultdict(list)
            for place in places:
                value = place.category[key]
                for name in _members(value) if key in each else (value,):
                    groups[name].append(place)
            means = {name: mean_score(groups[name], marks) for name in sorted(groups)}
            metrics |= {f"{key}={name}": mean for name, mean in means.items()}
            if key in macro:
                metrics[f"macro over {key}"] = _mean(list(means.values()))
        return metrics

    return family


def mm_vet(places: Sequence[Place], marks: Marks) -> Metrics:
    """MM-Vet's total and its score by capability and by combination of capabilities.

    The judge's scores are called ``mmvet``, those of the rule ``mmvet_rule``: they are not
    comparable.
    """
    metrics = shares("capability", "combination", each=("capability",))(places, marks)
    judged = any(mark.judged for mark in marks.values())
    return {("mmvet" if judged else "mmvet_rule"): metrics.pop("accuracy"), **metrics}


def hallusion(places: Sequence[Place], marks: Marks) -> Metrics:
    """HallusionBench: per question, per figure, per question over its figures, and their mean.

    A question's id is ``category/subcategory/visual input/set/figure/question``. Those about figure
    0 of the category VS, which have no picture, belong to no figure.

    References:
        Guan et al., `HallusionBench <https://arxiv.org/abs/2310.14566>`_, 2024.
    """
    figures: dict[tuple[str, ...], list[Place]] = defaultdict(list)
    questions: dict[tuple[str, ...], list[Place]] = defaultdict(list)
    for place in places:
        category, subcategory, _, set_of, figure, question = place.id.split("/")
        if not (category == "VS" and figure == "0"):
            figures[category, subcategory, set_of, figure].append(place)
        questions[category, subcategory, set_of, question].append(place)
    metrics: Metrics = {
        "aAcc": mean_score(places, marks),
        "fAcc": _share_all_right(figures.values(), marks),
        "qAcc": _share_all_right(questions.values(), marks),
    }
    three = list(metrics.values())
    metrics["mean of aAcc, fAcc, qAcc"] = None if None in three else _mean(three)
    metrics |= {"figures": float(len(figures)), "question groups": float(len(questions))}
    return metrics


def we_math(places: Sequence[Place], marks: Marks) -> Metrics:
    """We-Math's four classes over the problems that are whole, strict and loose.

    A problem is mastered (CM) where all steps and the composite question are right; it shows
    inadequate generalisation (IG) where only the composite one is wrong, insufficient knowledge
    (IK) where that and some step are wrong, and rote memorisation (RM) where the composite one is
    right though some step (strict) or every step (loose) is wrong.

    References:
        Qiao et al., `We-Math <https://arxiv.org/abs/2407.01284>`_, 2024.
    """
    problems: dict[str, dict[str, Place]] = defaultdict(dict)
    for place in places:
        problems[place.instance_id][place.category["key"]] = place
    whole = [steps for steps in problems.values() if _is_whole(steps, marks)]
    metrics: Metrics = {"accuracy": mean_score(places, marks)}
    one = [place for place in places if not place.category["key"].endswith("multi")]
    metrics["S1"] = mean_score(one, marks)
    for number in ("2", "3"):
        composite = [p for p in places if p.category["key"] == f"{number}steps_multi"]
        metrics[f"S{number}"] = mean_score(composite, marks)
    metrics["problems"] = float(len(whole))
    metrics["problems left out"] = float(len(problems) - len(whole))
    for name, loose in (("strict", False), ("loose", True)):
        counts = dict.fromkeys(("CM", "IG", "IK", "RM"), 0)
        for steps in whole:
            counts[_we_math_class(steps, marks, loose=loose)] += 1
        known = counts["CM"] + counts["RM"]
        metrics |= {f"{c} {name}": n / len(whole) if whole else None for c, n in counts.items()}
        score = counts["CM"] + 0.5 * counts["IG"]
        metrics[f"score {name}"] = score / len(whole) if whole else None
        metrics[f"RM rate {name}"] = counts["RM"] / known if known else None
    return metrics


def _is_whole(steps: Mapping[str, Place], marks: Marks) -> bool:
    length = next(iter(steps))[0]
    wanted = {f"{length}steps_{step}" for step in [*range(1, int(length) + 1), "multi"]}
    return set(steps) == wanted and all(place.id in marks for place in steps.values())


def _we_math_class(steps: Mapping[str, Place], marks: Marks, *, loose: bool) -> str:
    right = {key: marks[place.id].score == 1 for key, place in steps.items()}
    multi = next(right.pop(key) for key in list(right) if key.endswith("multi"))
    known = any(right.values()) if loose and multi else all(right.values())
    if multi:
        return "CM" if known else "RM"
    return "IG" if known else "IK"


def _share_all_right(groups: Collection[Sequence[Place]], marks: Marks) -> float | None:
    """Share of groups that are all right; one with an unscored and no wrong member is left out."""
    verdicts: list[float] = []
    for group in groups:
        scores = [marks[place.id].score for place in group if place.id in marks]
        if any(score < 1 for score in scores):
            verdicts.append(0.0)
        elif len(scores) == len(group):
            verdicts.append(1.0)
    return fmean(verdicts) if verdicts else None


def _members(value: str) -> list[str]:
    return [name.strip() for name in value.split(",")]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _mean_of(each: Sequence[Metrics]) -> Metrics:
    names = dict.fromkeys(name for metrics in each for name in metrics)
    return {name: _mean([metrics.get(name) for metrics in each]) for name in names}
