"""DIMACS graphs: colouring (``.col``) and clique (``.clq``) files.

Lines are ``c`` comments, one ``p edge N M`` (or ``p col N M``) and ``e U V`` with vertices from 1.
An edge may stand once, or every edge twice as some copies of the queen and book graphs have it; M
counts the lines, or in a doubled file the distinct edges.

References:
    Johnson and Trick (eds.), Cliques, Coloring, and Satisfiability: Second DIMACS Implementation
    Challenge, 1996.
"""

from collections import Counter
from pathlib import Path

from npbench.errors import InputError
from npbench.graphs import Graph
from npbench.interop.text import SourceLine, at, located, read_lines, whole_number

__all__ = ["read_dimacs"]

MAX_VERTICES = 100_000


def read_dimacs(path: Path) -> Graph:
    """The graph of a DIMACS file, vertices from 0.

    Raises:
        InputError: If a line breaks the format, or the counts of the ``p`` line are wrong; the
            message names the file, the line, the rule and the value.
    """
    lines = read_lines(path)
    problem: SourceLine | None = None
    num_vertices = stated = 0
    listed: Counter[tuple[int, int]] = Counter()
    for line in lines:
        words = line.text.split()
        if not words or words[0] == "c":
            continue
        with located(path, line.number):
            if words[0] == "p":
                if problem is not None:
                    raise InputError(f"the 'p' line of line {problem.number} is repeated")
                problem = line
                num_vertices, stated = _sizes(words)
            elif words[0] == "e":
                if problem is None:
                    raise InputError("an edge must follow the 'p' line")
                listed[_edge(words, num_vertices)] += 1
            else:
                raise InputError(f"a line must start with c, p or e, got {words[0][:40]!r}")
    if problem is None:
        raise at(path, lines[-1].number, "the file has no 'p edge N M' line")
    total = listed.total()
    doubled = bool(listed) and set(listed.values()) == {2}
    if not doubled:
        repeated = next((edge for edge, count in listed.items() if count > 1), None)
        if repeated is not None:
            u, v = repeated[0] + 1, repeated[1] + 1
            rule = f"edge {u}-{v} stands {listed[repeated]} times, and not every edge stands twice"
            raise at(path, lines[-1].number, rule)
    if stated != total and not (doubled and 2 * stated == total):
        rule = f"{stated} edges are stated, but {total} are listed"
        raise at(path, problem.number, f"{rule} (each twice)" if doubled else rule)
    return Graph(num_vertices, tuple(sorted(listed)))


def _sizes(words: list[str]) -> tuple[int, int]:
    """Vertices and edges of a ``p`` line."""
    if len(words) != 4 or words[1] not in ("edge", "col"):
        raise InputError(f"expected 'p edge N M' or 'p col N M', got {' '.join(words)[:60]!r}")
    return (
        whole_number(words[2], "the number of vertices", low=1, high=MAX_VERTICES),
        whole_number(words[3], "the number of edges", low=0),
    )


def _edge(words: list[str], num_vertices: int) -> tuple[int, int]:
    """The ends of an ``e`` line from 0, the smaller first."""
    if len(words) != 3:
        raise InputError(f"expected 'e U V', got {' '.join(words)[:60]!r}")
    u, v = (whole_number(word, "a vertex", low=1, high=num_vertices) for word in words[1:])
    if u == v:
        raise InputError(f"vertex {u} is joined to itself")
    return min(u, v) - 1, max(u, v) - 1
