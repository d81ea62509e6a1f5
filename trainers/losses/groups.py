"""From rows in any order to whole groups, and back.

P prompts, G replies of a group, B = P * G rows.
"""

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

__all__ = ["rows_by_group", "to_rows"]


def rows_by_group(group_of_row: Sequence[Hashable], *, group_size: int) -> Tensor:
    """Row numbers as an index_PG, groups in order of first appearance.

    ``values_B[index_PG]`` are the values by group; :func:`to_rows` is the way back. Rows may be
    interleaved (P1, P2, P1, P2). A group that is not whole is refused: a softmax or a baseline over
    the members that happen to be in a micro-batch is another loss.

    Example:
        >>> rows_by_group(["p", "q", "p", "q"], group_size=2)
        tensor([[0, 2],
                [1, 3]])

    Raises:
        ValueError: If G < 2, or a group has more or fewer than G rows.
    """
    if group_size < 2:
        raise ValueError(f"group_size must be at least 2, got {group_size}")
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(group_of_row):
        members.setdefault(group, []).append(row)
    for group, rows in members.items():
        if len(rows) != group_size:
            raise ValueError(
                f"group {group!r} must be whole with {group_size} rows, got {len(rows)}: "
                f"a group must not be split"
            )
    return torch.tensor(list(members.values()), dtype=torch.long).reshape(-1, group_size)


def to_rows(values_PG: Tensor, index_PG: Tensor) -> Tensor:
    """Values by group put back at their rows."""
    if values_PG.shape != index_PG.shape:
        raise ValueError(
            f"values must have the index's shape {tuple(index_PG.shape)}, "
            f"got {tuple(values_PG.shape)}"
        )
    flat_B = values_PG.new_empty(values_PG.numel())
    flat_B[index_PG.reshape(-1)] = values_PG.reshape(-1)
    return flat_B
