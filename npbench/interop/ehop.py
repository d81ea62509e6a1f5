"""Knapsack ``.in`` files of the EHOP collection.

The number of items, one line ``id value weight`` for each item with ids from 1 in order, and the
capacity; blank lines between them count for nothing.
"""

from pathlib import Path

from npbench.errors import InputError
from npbench.interop.text import at, located, read_lines, whole_number
from npbench.tasks.knapsack import Items

__all__ = ["read_knapsack"]

MAX_ITEMS = 100_000


def read_knapsack(path: Path) -> Items:
    """The items and the capacity of a file, items from 0.

    Raises:
        InputError: If a line breaks the format or the number of items is wrong; the message names
            the file, the line, the rule and the value.
    """
    lines = [line for line in read_lines(path) if line.text.strip()]
    with located(path, lines[0].number):
        word = lines[0].text.strip()
        count = whole_number(word, "the number of items", low=1, high=MAX_ITEMS)
    if len(lines) < count + 2:
        problem = f"{count} items and a capacity must follow, got {len(lines) - 1} lines"
        raise at(path, lines[-1].number, problem)
    values, weights = [], []
    for item, line in enumerate(lines[1 : count + 1], 1):
        words = line.text.split()
        with located(path, line.number):
            if len(words) != 3:
                raise InputError(f"an item must be 'id value weight', got {line.text[:60]!r}")
            if whole_number(words[0], "an item's id", low=1) != item:
                raise InputError(f"the item's id must be {item}, got {words[0]}")
            values.append(whole_number(words[1], "an item's value", low=0))
            weights.append(whole_number(words[2], "an item's weight", low=1))
    last = lines[count + 1]
    with located(path, last.number):
        if len(last.text.split()) != 1:
            raise InputError(
                f"the capacity must follow the {count} stated items, got {last.text[:60]!r}"
            )
        capacity = whole_number(last.text.strip(), "the capacity", low=0)
    if len(lines) > count + 2:
        extra = lines[count + 2]
        raise at(path, extra.number, f"nothing may follow the capacity, got {extra.text[:60]!r}")
    return Items(capacity, tuple(weights), tuple(values))
