"""Learning curves of one run or several: smoothed, with bands over runs of one name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from npbench.errors import InputError
from trainers.logs import read_log

__all__ = ["CURVES", "Curve", "band", "draw_curves", "read_curves", "smoothed"]

CURVES = ("reward", "sr", "qr", "diversity", "distinct", "entropy", "length", "gradient_norm")
"""What is drawn where nothing else is asked for."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """One number of one run over its steps."""

    steps: Array
    values: Array


def read_curves(run: Path, names: Sequence[str]) -> Mapping[str, Curve]:
    """The curves of a run that were logged; steps without a value are left out.

    Raises:
        InputError: If the folder is no run.
    """
    rows = read_log(run / "scalars.jsonl")
    if not rows:
        raise InputError(f"{run} is no run with logged steps: it has no scalars.jsonl")
    found = {}
    for name in names:
        pairs = [(row["step"], row[name]) for row in rows if row.get(name) is not None]
        if pairs:
            steps, values = zip(*pairs, strict=True)
            found[name] = Curve(np.array(steps, dtype=float), np.array(values, dtype=float))
    return found


def smoothed(values: Array, *, weight: float) -> Array:
    """Exponential moving average, without a pull towards the start.

    m_t = sum_i w^(t-i) x_i / sum_i w^(t-i).

    Example:
        >>> smoothed(np.array([1.0, 3.0]), weight=0.5).round(4).tolist()
        [1.0, 2.3333]
    """
    if not 0.0 <= weight < 1.0:
        raise InputError(f"the smoothing weight must lie in [0, 1), got {weight}")
    means = np.empty_like(values)
    total = count = 0.0
    for place, value in enumerate(values):
        total, count = weight * total + value, weight * count + 1.0
        means[place] = total / count
    return means


def band(curves: Sequence[Curve], *, weight: float) -> tuple[Array, Array, Array, Array]:
    """Steps that all curves have, and the mean, lowest and highest smoothed value there."""
    shared = sorted(set.intersection(*(set(curve.steps.tolist()) for curve in curves)))
    rows = []
    for curve in curves:
        places = {step: place for place, step in enumerate(curve.steps.tolist())}
        rows.append(smoothed(curve.values, weight=weight)[[places[step] for step in shared]])
    values = np.array(rows)
    return np.array(shared), values.mean(axis=0), values.min(axis=0), values.max(axis=0)


def draw_curves(
    groups: Mapping[str, Sequence[Path]], out: Path, *, names: Sequence[str], weight: float
) -> None:
    """Writes one picture with a panel for each name and a line for each group of runs.

    Raises:
        InputError: If a folder is no run or nothing was logged under the names.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("plots need: pip install 'npbench[train]'") from error
    read = {label: [read_curves(run, names) for run in runs] for label, runs in groups.items()}
    shown = [name for name in names if any(name in one for runs in read.values() for one in runs)]
    if not shown:
        raise InputError(f"no run has logged any of: {', '.join(names)}")
    columns = min(len(shown), 4)
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(4 * columns, 3 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    for panel, name in zip(panels, shown, strict=False):
        for label, runs in read.items():
            curves = [one[name] for one in runs if name in one]
            if not curves:
                continue
            steps, mean, low, high = band(curves, weight=weight)
            (line,) = panel.plot(steps, mean, label=label)
            if len(curves) > 1:
                panel.fill_between(steps, low, high, color=line.get_color(), alpha=0.2)
        panel.set_title(name)
        panel.set_xlabel("step")
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    panels[0].legend()
    figure.savefig(out, dpi=120)
