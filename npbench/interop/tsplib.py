"""TSPLIB files: symmetric travelling-salesman instances and tours.

A keyword may stand with or without a blank before its colon, ``EOF`` may be missing, indented or
followed by blanks, numbers of a matrix may be broken over lines anywhere. Cities count from 1 in
the files, from 0 here. What the format leaves open is refused, not guessed: unknown keywords,
repeated ones, distances that differ in the two directions.

References:
    Reinelt, TSPLIB: A Traveling Salesman Problem Library, ORSA Journal on Computing 3, 1991.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from npbench.errors import InputError, unknown_name
from npbench.interop.text import SourceLine, at, located, read_lines, whole_number
from npbench.interop.tsplib_distances import DISTANCES, Point
from npbench.tasks.tsp import Cities

__all__ = ["read_tour", "read_tsp"]

MAX_CITIES = 5000

_HEADERS = (
    "NAME",
    "TYPE",
    "COMMENT",
    "DIMENSION",
    "EDGE_WEIGHT_TYPE",
    "EDGE_WEIGHT_FORMAT",
    "NODE_COORD_TYPE",
    "DISPLAY_DATA_TYPE",
)
_SECTIONS = ("NODE_COORD_SECTION", "EDGE_WEIGHT_SECTION", "DISPLAY_DATA_SECTION", "TOUR_SECTION")
_KEYWORD = re.compile(r"\s*([A-Z][A-Z0-9_]*)\s*(?::(.*))?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,12}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?")

_LAYOUTS: Mapping[str, Callable[[int, int], range]] = {
    "FULL_MATRIX": lambda row, n: range(n),
    "UPPER_ROW": lambda row, n: range(row + 1, n),
    "LOWER_ROW": lambda row, n: range(row),
    "UPPER_DIAG_ROW": lambda row, n: range(row, n),
    "LOWER_DIAG_ROW": lambda row, n: range(row + 1),
}
"""The columns that each row of a matrix lists, by EDGE_WEIGHT_FORMAT."""


@dataclass(frozen=True, slots=True)
class _Document:
    """A file cut into its specification and its sections."""

    path: Path
    headers: Mapping[str, SourceLine]
    sections: Mapping[str, tuple[SourceLine, ...]]
    starts: Mapping[str, int]
    last: int
    """Number of the last line."""

    def header(self, name: str) -> SourceLine:
        """The value of a keyword that must be there."""
        if name not in self.headers:
            raise at(self.path, self.last, f"the file ends without the keyword {name}")
        return self.headers[name]

    def section(self, name: str) -> tuple[SourceLine, ...]:
        """The lines of a section that must be there."""
        if name not in self.sections:
            raise at(self.path, self.last, f"the file ends without the section {name}")
        return self.sections[name]

    def expect(self, name: str, value: str) -> None:
        """Check that a keyword has the only value that is read here."""
        found = self.header(name)
        if found.text != value:
            raise at(self.path, found.number, f"{name} must be {value}, got {found.text[:40]!r}")

    def dimension(self, low: int) -> int:
        """The number of cities."""
        found = self.header("DIMENSION")
        with located(self.path, found.number):
            return whole_number(found.text, "DIMENSION", low=low, high=MAX_CITIES)


def read_tsp(path: Path) -> Cities:
    """The cities of a ``.tsp`` file; coordinates are kept where they are whole and planar.

    Raises:
        InputError: If the file breaks the format or a rule above; the message names the file, the
            line, the rule and the value.
    """
    document = _read(path)
    document.expect("TYPE", "TSP")
    n = document.dimension(low=3)
    if "TOUR_SECTION" in document.starts:
        raise at(
            path, document.starts["TOUR_SECTION"], "TOUR_SECTION belongs in a file of TYPE TOUR"
        )
    if "DISPLAY_DATA_SECTION" in document.sections:
        _points(document, "DISPLAY_DATA_SECTION", n)
    kind = document.header("EDGE_WEIGHT_TYPE")
    with located(path, kind.number):
        if kind.text not in (*DISTANCES, "EXPLICIT"):
            raise unknown_name("EDGE_WEIGHT_TYPE", kind.text, (*DISTANCES, "EXPLICIT"))
    if kind.text == "EXPLICIT":
        return Cities(_matrix(document, n))
    if "EDGE_WEIGHT_FORMAT" in document.headers:
        document.expect("EDGE_WEIGHT_FORMAT", "FUNCTION")
    if "EDGE_WEIGHT_SECTION" in document.starts:
        line = document.starts["EDGE_WEIGHT_SECTION"]
        raise at(path, line, f"EDGE_WEIGHT_SECTION contradicts EDGE_WEIGHT_TYPE {kind.text}")
    points = _points(document, "NODE_COORD_SECTION", n)
    distance = DISTANCES[kind.text]
    rows = tuple(
        tuple(distance(a, b) if u != v else 0 for v, b in enumerate(points))
        for u, a in enumerate(points)
    )
    whole = all(x.is_integer() and y.is_integer() for x, y in points)
    planar = whole and kind.text != "GEO"
    return Cities(rows, tuple((int(x), int(y)) for x, y in points) if planar else None)


def read_tour(path: Path) -> list[int]:
    """The tour of a ``.tour`` file as our answers write it: from 0, its start again at the end.

    Raises:
        InputError: If the file breaks the format, or a city is missing or repeated.
    """
    document = _read(path)
    document.expect("TYPE", "TOUR")
    n = document.dimension(low=1)
    words = _words(document.section("TOUR_SECTION"))
    tour: dict[int, None] = {}
    for position, (word, line) in enumerate(words):
        with located(path, line):
            if word == "-1":
                if len(tour) != n:
                    raise InputError(f"the tour must hold DIMENSION = {n} cities, got {len(tour)}")
                if position + 1 < len(words):
                    raise InputError("nothing may follow the -1 that ends the tour")
                return [*tour, next(iter(tour))]
            city = whole_number(word, "a city", low=1, high=n) - 1
            if city in tour:
                raise InputError(f"city {word} is visited twice")
            tour[city] = None
    raise at(path, document.last, "the tour must end with -1")


def _read(path: Path) -> _Document:
    """The file cut at its keywords; what follows EOF is no part of it."""
    lines = read_lines(path)
    headers: dict[str, SourceLine] = {}
    sections: dict[str, list[SourceLine]] = {}
    starts: dict[str, int] = {}
    current: list[SourceLine] | None = None
    for line in lines:
        if not line.text.strip():
            continue
        found = _KEYWORD.fullmatch(line.text)
        name = found.group(1) if found else ""
        value = (found.group(2) or "").strip() if found else ""
        if name == "EOF":
            break
        with located(path, line.number):
            if name in _SECTIONS:
                if name in sections:
                    raise InputError(f"{name} is repeated")
                if value:
                    raise InputError(f"the data of {name} must start on a line of its own")
                current = sections.setdefault(name, [])
                starts[name] = line.number
            elif name in _HEADERS and ":" in line.text:
                if name in headers and name != "COMMENT":
                    raise InputError(f"{name} is repeated")
                headers[name] = SourceLine(line.number, value)
            elif current is None or (found and ("_" in name or ":" in line.text)):
                raise unknown_name("TSPLIB keyword", name or line.text[:40], _HEADERS + _SECTIONS)
            else:
                current.append(line)
    return _Document(
        path=path,
        headers=headers,
        sections={name: tuple(rows) for name, rows in sections.items()},
        starts=starts,
        last=lines[-1].number,
    )


def _words(lines: tuple[SourceLine, ...]) -> list[tuple[str, int]]:
    """The words of a section with their line numbers."""
    return [(word, line.number) for line in lines for word in line.text.split()]


def _points(document: _Document, section: str, n: int) -> list[Point]:
    """The coordinates of a section in the order of the cities."""
    path = document.path
    lines = document.section(section)
    points: dict[int, Point] = {}
    for line in lines:
        words = line.text.split()
        with located(path, line.number):
            if len(words) != 3:
                raise InputError(f"a row of {section} must be 'city x y', got {line.text[:60]!r}")
            city = whole_number(words[0], "a city", low=1, high=n)
            if city in points:
                raise InputError(f"city {city} has two places")
            for word in words[1:]:
                if not _DECIMAL.fullmatch(word):
                    raise InputError(f"a coordinate must be a number, got {word[:40]!r}")
            x, y = float(words[1]), float(words[2])
            if max(abs(x), abs(y)) > 1e9:
                raise InputError(f"a coordinate must lie in [-1e9, 1e9], got {max(x, y, key=abs)}")
            points[city] = (x, y)
    if len(points) != n:
        last = lines[-1].number if lines else document.starts[section]
        raise at(path, last, f"{section} must hold DIMENSION = {n} cities, got {len(points)}")
    return [points[city] for city in range(1, n + 1)]


def _matrix(document: _Document, n: int) -> tuple[tuple[int, ...], ...]:
    """The full matrix of an EXPLICIT file."""
    path = document.path
    layout = document.header("EDGE_WEIGHT_FORMAT")
    with located(path, layout.number):
        if layout.text not in _LAYOUTS:
            raise unknown_name("EDGE_WEIGHT_FORMAT", layout.text, _LAYOUTS)
    words = _words(document.section("EDGE_WEIGHT_SECTION"))
    cells = [(u, v) for u in range(n) for v in _LAYOUTS[layout.text](u, n)]
    if len(words) != len(cells):
        extra = words[len(cells) :]
        line = (
            extra[0][1]
            if extra
            else (words or [("", document.starts["EDGE_WEIGHT_SECTION"])])[-1][1]
        )
        size = f"{len(cells)} numbers ({layout.text} of {n} cities)"
        raise at(path, line, f"EDGE_WEIGHT_SECTION must hold {size}, got {len(words)}")
    rows = [[-1] * n for _ in range(n)]
    for u in range(n):
        rows[u][u] = 0
    for (u, v), (word, line) in zip(cells, words, strict=True):
        with located(path, line):
            distance = whole_number(word, f"the distance of cities {u + 1} and {v + 1}", low=0)
            if u == v and distance:
                raise InputError(
                    f"the distance of city {u + 1} to itself must be 0, got {distance}"
                )
            if u != v and rows[v][u] not in (-1, distance):
                raise InputError(
                    f"distances must be symmetric, got {distance} from city {u + 1} to {v + 1} "
                    f"and {rows[v][u]} back"
                )
            rows[u][v] = rows[v][u] = distance
    return tuple(tuple(row) for row in rows)
