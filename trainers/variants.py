"""Text variants of NP questions from templates: the same instance and answer, other words around.

A variant is the original prompt, unchanged, behind an opening and a restatement of the task; data
and answer format cannot be altered by it. Questions of other data are rewritten by a model
(:mod:`trainers.rewrite`).
"""

from collections.abc import Mapping

import numpy as np

from npbench.errors import InputError

__all__ = ["RESTATEMENTS", "template_variants"]

_OPENINGS = (
    "Here is a combinatorial problem for you.",
    "Solve the following optimisation problem.",
    "Read the problem below closely before you answer.",
    "Consider the problem that is stated below.",
)

RESTATEMENTS: Mapping[str, tuple[str, ...]] = {
    "graph_coloring": (
        "Give each vertex a colour so that no edge joins two vertices of one colour, with as few "
        "colours as you can.",
        "Neighbours must differ in colour; the number of colours in use should be small.",
    ),
    "feedback_vertex_set": (
        "Take out as few vertices as you can so that what is left holds no cycle.",
        "Every cycle has to lose a vertex; choose a small set that achieves this.",
    ),
    "vertex_cover": (
        "Choose as few vertices as you can so that each edge has a chosen end.",
        "No edge may be left with both ends unchosen; keep the choice small.",
    ),
    "dominating_set": (
        "Choose as few vertices as you can so that each other vertex has a chosen neighbour.",
        "Every vertex is to be chosen or to touch a chosen one; keep the choice small.",
    ),
    "minimum_bisection": (
        "Cut the vertices into two halves whose sizes differ by one at most, so that little edge "
        "weight runs between them.",
        "Two sides of equal size, or nearly so, with the least total weight across, are wanted.",
    ),
    "maximum_cut": (
        "Split the vertices into two sides so that much edge weight runs between them.",
        "Place each vertex on one of two sides; edges across count with their weight, the more "
        "the better.",
    ),
    "maximum_clique": (
        "Find as many vertices as you can that are all joined to one another.",
        "Each two of the chosen vertices must share an edge; the larger the choice, the better.",
    ),
    "maximum_independent_set": (
        "Find as many vertices as you can of which no two are joined.",
        "No edge may run inside the chosen set; the larger the set, the better.",
    ),
    "tsp": (
        "Plan a round trip through all cities, each visited once, that is as short as you can "
        "make it.",
        "A closed tour over every city with a small total length is wanted.",
    ),
    "longest_cycle": (
        "Follow edges around a closed walk that repeats no vertex and passes as many as you can.",
        "A simple cycle through a large number of vertices is wanted.",
    ),
    "set_cover": (
        "Pick as few of the subsets as you can that together hold every element.",
        "No element may be left out by the subsets you pick; pick few.",
    ),
    "subset_sum": (
        "Pick positions whose numbers add up to the target exactly, as many as you can.",
        "The chosen numbers must hit the target, no more and no less; use many of them.",
    ),
    "knapsack": (
        "Pack items of large total value without going over the capacity.",
        "The weight of what you pack is bounded; its value should be high.",
    ),
    "meeting_scheduling": (
        "Place meetings into rooms and opening hours so that many attendees are served and "
        "nothing clashes.",
        "No room and no person may be in two meetings at once; schedule much attendance.",
    ),
}
"""Restatements by task: each says the same as the prompt, in other words."""


def template_variants(
    task: str, prompt: str, *, variants: int, rng: np.random.Generator
) -> tuple[str, ...]:
    """The original prompt first, then ``variants - 1`` different rewordings of it.

    The number is exact: the released code of Share-GRPO can lose the original in its random draw,
    and rows without rewrites break the shape of its batch.

    Args:
        task: A task's name or alias.
        prompt: The prompt as built by the task.
        variants: M, the original included.
        rng: Source of the draw.

    Raises:
        InputError: If the task is unknown or has fewer rewordings than asked for.
    """
    from npbench.tasks import get_task

    restatements = RESTATEMENTS[get_task(task).name]
    pool = [f"{a} {b}" for a in _OPENINGS for b in restatements] + list(restatements)
    if not 1 <= variants <= len(pool) + 1:
        raise InputError(f"variants must lie in [1, {len(pool) + 1}], got {variants}")
    chosen = rng.choice(len(pool), size=variants - 1, replace=False)
    return (prompt, *(f"{pool[int(i)]}\n\n{prompt}" for i in chosen))
