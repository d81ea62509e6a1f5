"""The reproduction page of the site: what a study found, in the form in which it is shown.

Whoever reads the files of a study turns them into :class:`Reproduction`; nothing here computes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leaderboards.formats import Sheet

__all__ = ["Finding", "Picture", "Reproduction", "reproduction_page"]

VERDICTS = ("supported", "not supported", "not tested")


@dataclass(frozen=True, slots=True)
class Finding:
    """A hypothesis and what became of it."""

    claim: str
    source: str
    verdict: str
    """One of ``supported``, ``not supported``, ``not tested``."""
    evidence: str

    def __post_init__(self) -> None:
        """Checks the verdict."""
        if self.verdict not in VERDICTS:
            raise ValueError(f"a verdict is one of {', '.join(VERDICTS)}, got {self.verdict!r}")


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot."""

    name: str
    """Of its file, such as ``curves.png``."""
    data: bytes
    alt: str
    """What it shows, for those who do not see it."""
    caption: str


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A study as the site shows it."""

    title: str
    summary: str
    protocol: str
    sheets: tuple[Sheet, ...]
    findings: tuple[Finding, ...] = ()
    pictures: tuple[Picture, ...] = ()
    marker: str = ""
    """Shown above everything, such as ``smoke: not evidence``."""


def reproduction_page(results: Reproduction) -> Mapping[str, Any]:
    """What the template of the page shows.

    Findings that hold and findings that do not stand in one table, in the same size.

    Args:
        results: The study.
    """
    return {
        "title": results.title,
        "marker": results.marker,
        "summary": results.summary,
        "protocol": results.protocol,
        "sheets": results.sheets,
        "findings": [
            {
                "claim": finding.claim,
                "source": finding.source,
                "verdict": finding.verdict,
                "evidence": finding.evidence,
                "mark": {"supported": "yes", "not supported": "no"}.get(finding.verdict, "open"),
            }
            for finding in results.findings
        ],
        "pictures": results.pictures,
    }
