"""Sums and weighted means that gather over micro-batches."""

import math

__all__ = ["Tally"]


class Tally:
    """Numbers by name.

    Example:
        >>> tally = Tally()
        >>> tally.add("loss", 1.0)
        >>> tally.add("loss", 2.0)
        >>> tally.mean("ratio", 1.0, weight=3)
        >>> tally.mean("ratio", 3.0, weight=1)
        >>> tally.add("square_policy", 16.0)
        >>> tally.numbers()
        {'loss': 3.0, 'norm_policy': 4.0, 'ratio': 1.5}
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self._sums: dict[str, float] = {}
        self._means: dict[str, tuple[float, float]] = {}

    def add(self, name: str, value: float) -> None:
        """Adds to a sum."""
        self._sums[name] = self._sums.get(name, 0.0) + value

    def mean(self, name: str, value: float, *, weight: float) -> None:
        """Adds to a weighted mean."""
        total, weights = self._means.get(name, (0.0, 0.0))
        self._means[name] = (total + weight * value, weights + weight)

    def merge(self, other: "Tally") -> None:
        """Adds another tally's sums and means."""
        for name, value in other._sums.items():
            self.add(name, value)
        for name, (total, weight) in other._means.items():
            if weight:
                self.mean(name, total / weight, weight=weight)

    def numbers(self) -> dict[str, float]:
        """Sums, roots of what is called ``square_...`` as ``norm_...``, and means."""
        found = {}
        for name, value in self._sums.items():
            kind, _, rest = name.partition("_")
            if kind == "square":
                found[f"norm_{rest}"] = math.sqrt(value)
            else:
                found[name] = value
        means = {name: total / w for name, (total, w) in self._means.items() if w}
        return found | means
