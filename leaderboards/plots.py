"""Plots of a reproduction: curves, diversity, acc@k, the SR-QR plane, ablations, reasoning."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluators.diversity import fitted_line, project
from leaderboards.plot_style import Look, as_png, as_svg, direct_labels, figure, look_of
from leaderboards.reproduction import Picture
from leaderboards.reproduction_cells import Results
from leaderboards.reproduction_replies import read_vectors
from leaderboards.reproduction_settings import BASE, Axis, known_arms, load_study
from leaderboards.reproduction_table import (
    CURVE_KS,
    arm_label,
    arms_of,
    by_seed,
    keys_at_end,
    seeds_of,
)
from leaderboards.seed_statistics import Spread, over_seeds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_all"]

FIRST_STEPS = 20
_PANELS = {
    "reward": "reward",
    "sr": "SR of training replies",
    "qr": "QR of training replies",
    "diversity": "diversity of answers in a group",
    "entropy": "entropy, nats a token",
    "length": "length, tokens",
}
_ABLATED = {"acc@1": "acc@1", "pass@4": "pass@4", "qr": "QR", "solution_distance": "diversity"}
_BAND = "band: 95 % interval over seeds"


def draw_all(results: Results, folder: Path) -> list[tuple[Picture, bytes]]:
    """All pictures for which there is data, as SVG, each with the same as PNG.

    Args:
        results: What was found.
        folder: Where it was found: vectors of reasoning are read from there.
    """
    found: list[tuple[Picture, bytes]] = []
    for base in results.manifest.bases:
        looks = look_of(_compared(results))
        drawn: list[tuple[Picture, bytes]] = []
        for draw in (_accuracy, _plane, _learning, _first_steps, _correlation, _ablations):
            drawn += draw(results, base, looks)
        drawn += _reasoning(results, base, looks, folder)
        found += [(replace(picture, base=base), png) for picture, png in drawn]
    return found


def _compared(results: Results) -> list[str]:
    """The arms that plots of all methods show: beside a comparison, no points of ablations."""
    studies = [load_study(name) for name in results.manifest.studies]
    methods = {arm for study in studies if not study.axes for arm in (*study.arms, *study.all)}
    points = {arm for study in studies for axis in study.axes for arm in axis.values}
    left_out = points - methods if methods else set()
    return [arm for arm in arms_of(results) if arm not in left_out]


def _finished(
    made: Any, results: Results, name: str, alt: str, caption: str
) -> tuple[Picture, bytes]:
    marker = results.manifest.marker
    if marker:
        made.suptitle(marker, color="#B00000", fontsize=9)
        caption = f"{marker}. {caption}"
    return Picture(f"{name}.svg", as_svg(made), alt, caption), as_png(made)


Stacked = dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]


def _stacked(results: Results, base: str, measure: str, last: int | None = None) -> Stacked:
    """Of each arm: steps, and one row of values a seed, over the steps that all seeds have."""
    series: dict[str, list[dict[float, float]]] = {}
    for curve in results.curves:
        steps, values = curve.values(measure)
        pairs = [(s, v) for s, v in zip(steps, values, strict=True) if s is not None]
        known = {s: v for s, v in pairs if v is not None and (last is None or s < last)}
        if curve.base == base and known:
            series.setdefault(curve.arm, []).append(known)
    found: Stacked = {}
    for arm in (arm for arm in _compared(results) if arm in series):
        shared = sorted(set.intersection(*(set(one) for one in series[arm])))
        rows = np.array([[one[step] for step in shared] for one in series[arm]])
        found[arm] = (np.array(shared) + 1, rows)
    return found


def _band(axes: "Axes", steps: Any, rows: Any, look: Look, *, window: int) -> tuple[float, float]:
    """A mean and its interval over seeds; returns the line's end."""
    smooth = np.array([_averaged(row, window) for row in rows])
    spreads = [over_seeds(list(column)) for column in smooth.T]
    mean = [one.mean for one in spreads if one]
    axes.plot(steps, mean, color=look["color"], linestyle=look["linestyle"], lw=1.5)
    if len(rows) > 1:
        low = [one.low or 0.0 for one in spreads if one]
        high = [one.high or 0.0 for one in spreads if one]
        axes.fill_between(steps, low, high, color=look["color"], alpha=0.15, lw=0)
    return float(steps[-1]), mean[-1]


def _averaged(values: Any, window: int) -> Any:
    """A trailing mean over so many steps, fewer at the start."""
    total = np.cumsum(np.insert(values, 0, 0.0))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (total[ends] - total[starts]) / (ends - starts)


def _limits(axes: "Axes", drawn: Mapping[str, tuple[Any, Any]]) -> None:
    """Limits of the means: a wide band of few seeds would flatten the lines."""
    values = np.concatenate([rows.mean(axis=0) for _, rows in drawn.values()])
    room = max(float(np.ptp(values)) * 0.2, 1e-3)
    axes.set_ylim(float(values.min()) - room, float(values.max()) + room)


def _learning(
    results: Results, base: str, looks: Mapping[str, Look]
) -> Iterator[tuple[Picture, bytes]]:
    shown = {name: _stacked(results, base, name) for name in _PANELS}
    shown = {name: drawn for name, drawn in shown.items() if drawn}
    if not shown:
        return
    window = max(1, results.last_step() // 20)
    with figure(min(3, len(shown)), -(-len(shown) // 3), width=4.6, height=2.9) as (made, panels):
        for axes, (name, drawn) in zip(panels, shown.items(), strict=False):
            axes.set_title(_PANELS[name])
            axes.set_xlabel("step")
            _limits(axes, drawn)
            ends = []
            for arm, (steps, rows) in drawn.items():
                x, y = _band(axes, steps, rows, looks[arm], window=window)
                ends.append((x, y, arm_label(arm), looks[arm]["color"]))
            direct_labels(axes, ends)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        caption = f"Learning curves from {base}, mean of the last {window} steps; {_BAND}."
        alt = f"Training numbers over the steps, one line a method, from {base}."
        yield _finished(made, results, f"curves-{base}", alt, caption)


def _first_steps(
    results: Results, base: str, looks: Mapping[str, Look]
) -> Iterator[tuple[Picture, bytes]]:
    drawn = _stacked(results, base, "diversity", FIRST_STEPS)
    if not drawn:
        return
    with figure(1, 1, width=7.0, height=3.6) as (made, (axes,)):
        ends = []
        _limits(axes, drawn)
        for arm, (steps, rows) in drawn.items():
            x, y = _band(axes, steps, rows, looks[arm], window=1)
            ends.append((x, y, arm_label(arm), looks[arm]["color"]))
        axes.set_title("diversity of answers in a group")
        axes.set_xlabel("step")
        direct_labels(axes, ends)
        caption = f"Diversity over the first {FIRST_STEPS} steps from {base}; {_BAND}."
        alt = f"Mean pairwise distance of a group's answers over the first steps from {base}."
        yield _finished(made, results, f"first-steps-{base}", alt, caption)


def _accuracy(
    results: Results, base: str, looks: Mapping[str, Look]
) -> Iterator[tuple[Picture, bytes]]:
    splits = results.splits()
    if not splits:
        return
    with figure(len(splits), 1, width=4.6, height=3.2) as (made, panels):
        for axes, split in zip(panels, splits, strict=True):
            ends = []
            for arm in _compared(results):
                points = [
                    (k, spread)
                    for k in CURVE_KS
                    if (
                        spread := over_seeds(
                            [*by_seed(results, base, arm, split, f"pass@{k}").values()]
                        )
                    )
                ]
                if not points:
                    continue
                look = looks[arm]
                ks = [k for k, _ in points]
                means = [spread.mean for _, spread in points]
                axes.plot(ks, means, ms=4, **look)
                if all(s.low is not None for _, s in points):
                    low = [s.low or 0.0 for _, s in points]
                    high = [s.high or 0.0 for _, s in points]
                    axes.fill_between(ks, low, high, color=look["color"], alpha=0.12, lw=0)
                ends.append((ks[-1], means[-1], arm_label(arm), look["color"]))
            axes.set_xscale("log", base=2)
            axes.set_xticks(CURVE_KS, [str(k) for k in CURVE_KS])
            axes.set_xlabel("k")
            axes.set_title(f"pass@k, {split}")
            direct_labels(axes, ends)
        caption = f"Chance that one of k samples is optimal, from {base}; {_BAND}."
        alt = f"pass@k over k, one line a method and the base, one panel a split, from {base}."
        yield _finished(made, results, f"acc-at-k-{base}", alt, caption)


def _plane(
    results: Results, base: str, looks: Mapping[str, Look]
) -> Iterator[tuple[Picture, bytes]]:
    splits = [s for s in results.splits() if by_seed(results, base, BASE, s, "qr")]
    if not splits:
        return
    with figure(len(splits), 1, width=4.6, height=3.6) as (made, panels):
        for axes, split in zip(panels, splits, strict=True):
            ends = []
            for arm in _compared(results):
                sr = by_seed(results, base, arm, split, "sr")
                qr = by_seed(results, base, arm, split, "qr")
                if not sr:
                    continue
                look = looks[arm]
                style = {"color": look["color"], "marker": look["marker"], "linestyle": "none"}
                axes.plot([sr[s] for s in sr], [qr[s] for s in sr], ms=3, alpha=0.35, **style)
                x, y = fmean(sr.values()), fmean(qr[s] for s in sr)
                axes.plot([x], [y], ms=8, **style)
                ends.append((x, y, arm_label(arm), look["color"]))
            floors = next(
                (c.floors for k, c in results.cells.items() if (k.base, k.split) == (base, split)),
                {},
            )
            for name in ("random", "greedy"):
                if name in floors:
                    axes.axhline(floors[name], color="#888888", lw=0.8, ls=(0, (4, 3)))
                    axes.annotate(
                        f"{name}, SR 1", (0.01, floors[name]), xycoords=("axes fraction", "data"),
                        xytext=(0, 2), textcoords="offset points", color="#555555", fontsize=7.5,
                    )  # fmt: skip
            axes.set_xlabel("SR")
            axes.set_ylabel("QR")
            axes.set_title(split)
            axes.margins(0.15)
            direct_labels(axes, ends)
        caption = (
            f"Success rate and quality ratio from {base}: small marks are seeds, large ones means; "
            f"lines are what a random feasible and a greedy answer reach."
        )
        alt = f"Each method in the plane of SR and QR, with two floors, from {base}."
        yield _finished(made, results, f"sr-qr-{base}", alt, caption)


def _correlation(
    results: Results, base: str, looks: Mapping[str, Look]
) -> Iterator[tuple[Picture, bytes]]:
    split = next(iter(results.splits()), "")
    xs: list[float] = []
    ys: list[float] = []
    labels: list[tuple[float, float, str, str]] = []
    with figure(1, 1, width=7.0, height=4.0) as (made, (axes,)):
        for arm in _compared(results):
            x = by_seed(results, base, arm, split, "solution_distance")
            y = by_seed(results, base, arm, split, "pass@4")
            shared = sorted(x.keys() & y.keys())
            if not shared:
                continue
            look = looks[arm]
            style = {"color": look["color"], "marker": look["marker"], "linestyle": "none"}
            axes.plot([x[s] for s in shared], [y[s] for s in shared], ms=4, alpha=0.5, **style)
            centre = fmean(x[s] for s in shared), fmean(y[s] for s in shared)
            axes.plot([centre[0]], [centre[1]], ms=9, **style)
            labels.append((*centre, arm_label(arm), look["color"]))
            xs += [x[s] for s in shared]
            ys += [y[s] for s in shared]
        line = fitted_line(xs, ys) if xs else None
        if line is None:
            return
        ends = np.array([min(xs), max(xs)])
        axes.plot(ends, line.intercept + line.slope * ends, color="#333333", lw=1)
        r = "undefined" if line.correlation is None else f"{line.correlation:.2f}"
        axes.set_title(f"{split}: r = {r} over {line.points} points")
        axes.set_xlabel("solution diversity")
        axes.set_ylabel("pass@4")
        axes.margins(0.12)
        direct_labels(axes, labels)
        caption = f"Diversity against pass@4 from {base}: small marks are seeds, large ones means."
        alt = f"pass@4 over solution diversity with a least-squares line, from {base}."
        yield _finished(made, results, f"diversity-acc-{base}", alt, caption)


def _ablations(
    results: Results, base: str, looks: Mapping[str, Look]
) -> Iterator[tuple[Picture, bytes]]:
    split = next(iter(results.splits()), "")
    for study in results.manifest.studies:
        for number, axis in enumerate(load_study(study).axes, start=1):
            known = {arm: set(by_seed(results, base, arm, split, "qr")) for arm in axis.values}
            points = [arm for arm in axis.values if known[arm]]
            if len(points) < 2:
                continue
            seeds = sorted(set.intersection(*(known[arm] for arm in points)))
            if not seeds:
                continue
            with figure(len(_ABLATED), 1, width=3.0, height=2.8) as (made, panels):
                for axes, (measure, title) in zip(panels, _ABLATED.items(), strict=True):
                    _along(axes, results, (base, split, measure), axis, points, seeds)
                    axes.set_title(title)
                    axes.set_xlabel(axis.name)
                names = ", ".join(known_arms()[arm].label for arm in points)
                caption = (
                    f"{load_study(study).title}, from {base}, {split}: {names}; means over the "
                    f"seeds that all of them have ({', '.join(map(str, seeds))}); bars: 95 % "
                    f"interval."
                )
                alt = f"Four measures over {axis.name}, from {base}."
                yield _finished(made, results, f"{study}-{number}-{base}", alt, caption)


def _along(
    axes: "Axes",
    results: Results,
    where: tuple[str, str, str],
    axis: Axis,
    arms: Sequence[str],
    seeds: Sequence[int],
) -> None:
    """A measure with its intervals over the values of an axis, GRPO as a line across."""
    base, split, measure = where

    def spread_of(arm: str) -> Spread | None:
        values = by_seed(results, base, arm, split, measure)
        return over_seeds([values[seed] for seed in seeds if seed in values])

    xs, means, errors = [], [], []
    for arm in arms:
        spread = spread_of(arm)
        if spread is not None:
            xs.append(axis.values[arm])
            means.append(spread.mean)
            errors.append(0.0 if spread.high is None else spread.high - spread.mean)
    if xs:
        axes.errorbar(xs, means, yerr=errors, color="#0072B2", marker="o", capsize=3, lw=1.2)
        axes.set_xticks(xs)
    level = spread_of("grpo")
    if level is not None:
        axes.axhline(level.mean, color="#C4500A", ls="--", lw=1)
        direct_labels(axes, [(max(xs, default=0.0), level.mean, "GRPO", "#C4500A")])


def _reasoning(
    results: Results, base: str, looks: Mapping[str, Look], folder: Path
) -> Iterator[tuple[Picture, bytes]]:
    """The reasoning's vectors in the plane, one panel a question, of the first seed."""
    split = next(iter(results.splits()), "")
    seed = next(iter(seeds_of(results)), 0)
    keys = [
        key
        for key in keys_at_end(results, split)
        if (key.base, key.seed) == (base, seed) and key.arm in looks
    ]
    vectors = read_vectors(folder, keys)
    by_question: dict[str, list[tuple[str, tuple[float, ...]]]] = {}
    for key, rows in vectors.items():
        for question, vector in rows:
            by_question.setdefault(question, []).append((key.arm, vector))
    if not by_question:
        return
    with figure(len(by_question), 1, width=3.2, height=3.2) as (made, panels):
        for number, (axes, rows) in enumerate(
            zip(panels, by_question.values(), strict=True), start=1
        ):
            try:
                points = project(np.array([vector for _, vector in rows]), seed=0)
            except (ImportError, ValueError):
                return
            for arm in _compared(results):
                own = np.array(
                    [p for p, (name, _) in zip(points, rows, strict=True) if name == arm]
                )
                if len(own):
                    style = {key: looks[arm][key] for key in ("color", "marker")}
                    axes.plot(
                        own[:, 0], own[:, 1], ls="none", ms=4, alpha=0.8, label=arm_label(arm),
                        **style,
                    )  # fmt: skip
            axes.set_title(f"question {number}")
            axes.set_xticks([])
            axes.set_yticks([])
        handles, labels = panels[0].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
        caption = (
            f"Reasoning of the sampled replies to {len(by_question)} questions of {split}, seed "
            f"{seed}, from {base}: hidden states of the base, projected by t-SNE question by "
            f"question. Distances between clusters mean nothing."
        )
        alt = f"Points of the replies' reasoning by method, one panel a question, from {base}."
        yield _finished(made, results, f"reasoning-{base}", alt, caption)
