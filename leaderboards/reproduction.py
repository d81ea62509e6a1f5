"""The reproduction page of the site: what a study found, in the form in which it is shown.

Whoever reads the files of a study turns them into :class:`Reproduction`; nothing here computes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leaderboards.formats import Sheet

__all__ = ["VERDICTS", "Finding", "Picture", "Reproduction", "Said", "Section", "reproduction_page"]

VERDICTS = ("supported", "not supported", "not tested")


@dataclass(frozen=True, slots=True)
class Said:
    """What became of a claim from one base."""

    base: str
    verdict: str
    """One of ``supported``, ``not supported``, ``not tested``."""
    evidence: str

    def __post_init__(self) -> None:
        """Checks the verdict."""
        if self.verdict not in VERDICTS:
            raise ValueError(f"a verdict is one of {', '.join(VERDICTS)}, got {self.verdict!r}")


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim of a paper and what became of it, from each base."""

    claim: str
    source: str
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot."""

    name: str
    """Of its file, such as ``curves.png``."""
    data: bytes
    alt: str
    """What it shows, for those who do not see it."""
    caption: str
    base: str = ""
    """From which the methods of the plot were trained."""


@dataclass(frozen=True, slots=True)
class Section:
    """What was found from one base."""

    title: str
    table: Sheet
    """The one to read first."""
    pictures: tuple[Picture, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    """Every measure, for those who look for one."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A study as the site shows it."""

    title: str
    summary: str
    notes: tuple[str, ...]
    """How it was made and how to read it."""
    sections: tuple[Section, ...]
    findings: tuple[Finding, ...] = ()
    marker: str = ""
    """Shown above everything, such as ``smoke: not evidence``."""


def reproduction_page(results: Reproduction) -> Mapping[str, Any]:
    """What the template of the page shows.

    Claims that hold and claims that do not stand in one table, in the same size.

    Args:
        results: The study.
    """
    return {
        "title": results.title,
        "marker": results.marker,
        "summary": results.summary,
        "notes": results.notes,
        "sections": results.sections,
        "findings": results.findings,
        "bases": list(dict.fromkeys(one.base for f in results.findings for one in f.said)),
        "marks": {"supported": "yes", "not supported": "no", "not tested": "open"},
    }
