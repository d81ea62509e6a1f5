"""A second exact method for cliques, independent of CP-SAT: bit-set branch and bound."""

from npbench.graphs import Graph

__all__ = ["CliqueSearch", "maximum_clique"]


class CliqueSearch:
    """The state of one search; ``proven`` is False where the node limit ended it."""

    def __init__(self, graph: Graph, *, node_limit: int) -> None:
        """Prepares a search that visits at most ``node_limit`` nodes."""
        order = sorted(range(graph.num_vertices), key=lambda v: -len(graph.neighbours[v]))
        position = {vertex: rank for rank, vertex in enumerate(order)}
        self._order = order
        self._masks = [
            sum(1 << position[other] for other in graph.neighbours[vertex]) for vertex in order
        ]
        self._best: list[int] = [0] if order else []
        self._nodes_left = node_limit
        self.proven = True

    def run(self) -> list[int]:
        """The largest clique found, in increasing order."""
        self._expand([], (1 << len(self._order)) - 1)
        return sorted(self._order[rank] for rank in self._best)

    def _expand(self, clique: list[int], candidates: int) -> None:
        if self._nodes_left <= 0:
            self.proven = False
            return
        self._nodes_left -= 1
        if not candidates:
            if len(clique) > len(self._best):
                self._best = clique
            return
        ranked, bounds = self._colour_bound(candidates)
        for i in range(len(ranked) - 1, -1, -1):
            if len(clique) + bounds[i] <= len(self._best):
                return
            vertex = ranked[i]
            self._expand([*clique, vertex], candidates & self._masks[vertex])
            candidates &= ~(1 << vertex)

    def _colour_bound(self, candidates: int) -> tuple[list[int], list[int]]:
        """Candidates in the order of greedy colour classes, and the classes needed up to each."""
        ranked: list[int] = []
        bounds: list[int] = []
        colour = 0
        while candidates:
            colour += 1
            free = candidates
            while free:
                low = free & -free
                vertex = low.bit_length() - 1
                candidates ^= low
                free &= ~(low | self._masks[vertex])
                ranked.append(vertex)
                bounds.append(colour)
        return ranked, bounds


def maximum_clique(graph: Graph, *, node_limit: int) -> tuple[list[int], bool]:
    """A largest clique, and whether it is proven to be one within ``node_limit`` nodes.

    References:
        Tomita and Seki, An efficient branch-and-bound algorithm for finding a maximum clique,
        2003.
    """
    search = CliqueSearch(graph, node_limit=node_limit)
    clique = search.run()
    return clique, search.proven
