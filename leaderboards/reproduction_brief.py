"""The short form of a reproduction: a table for each base and all verdicts, as Markdown."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from leaderboards.formats import Sheet, as_markdown
from leaderboards.reproduction_table import (
    BASELINE,
    Row,
    arm_label,
    arms_of,
    protocol_note,
    seeds_of,
)
from leaderboards.seed_statistics import Spread
from leaderboards.verdicts import Verdict, load_hypotheses, rule_note
from npbench.errors import InputError

if TYPE_CHECKING:
    from leaderboards.reproduction_report import Report

__all__ = ["BEGIN", "END", "brief", "brief_notes", "brief_table", "marked", "put_brief"]

BEGIN, END = "<!-- reproduction: begin -->", "<!-- reproduction: end -->"
"""What stands around the short form in a file."""

_MAIN = (
    ("sr", "SR", 3), ("qr", "QR", 3), ("acc@1", "acc@1", 3), ("acc@4", "acc@4", 3),
    ("pass@16", "pass@16", 3), ("distinct_feasible", "distinct feasible", 1),
    ("solution_distance", "solution diversity", 3), ("entropy", "entropy", 3),
    ("length", "length", 1),
)  # fmt: skip
_OTHER = (("qr", "QR", 3), ("pass@16", "pass@16", 3))


def brief(report: "Report") -> str:
    """Tables and verdicts as Markdown: the first split whole, two measures of the others.

    The same report gives the same text.
    """
    sheets = [brief_table(report, base) for base in report.results.manifest.bases]
    marker = report.results.manifest.marker
    notes = (*([marker] if marker else []), *brief_notes(report))
    sheets[-1] = replace(sheets[-1], notes=notes)
    return as_markdown([*sheets, _verdicts(report)])


def put_brief(path: Path, report: "Report") -> None:
    """Puts the short form between its two marks in a file, or into a new file.

    Raises:
        InputError: If the file cannot be read, lacks the marks, or has them more than once.
    """
    before, after = marked(path)
    part = path.with_name(f"{path.name}.part")
    part.write_text(f"{before}{BEGIN}\n{brief(report)}{END}{after}", encoding="utf-8")
    part.replace(path)


def marked(path: Path) -> tuple[str, str]:
    """What stands before and behind the short form in a file, or will.

    Raises:
        InputError: If the file cannot be read, lacks the marks, or has them more than once.
    """
    if not path.exists():
        return "", "\n"
    try:
        whole = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if whole.count(BEGIN) != 1 or whole.count(END) != 1 or whole.index(BEGIN) > whole.index(END):
        raise InputError(f"{path} must have the lines {BEGIN} and {END} once, in this order")
    before, _, rest = whole.partition(BEGIN)
    return before, rest.partition(END)[2]


def brief_table(report: "Report", base: str) -> Sheet:
    """The methods from one base at the end of training, first split whole; no notes."""
    results = report.results
    splits = results.splits()
    last = results.last_step()
    place = {
        (r.split, r.arm, r.measure): r for r in report.rows if (r.base, r.step) == (base, last)
    }
    columns = [(splits[0], *one) for one in _MAIN]
    columns += [(split, *one) for split in splits[1:] for one in _OTHER]
    columns = [one for one in columns if any((split, m) == one[:2] for split, _, m in place)]
    names = [name if split == splits[0] else f"{split}: {name}" for split, _, name, _ in columns]
    rows = []
    for arm in arms_of(results):
        found = [place.get((split, arm, measure)) for split, measure, _, _ in columns]
        seeds = max((row.value.n for row in found if row), default=0)
        cells = [_cell(row, one[3], seeds) for row, one in zip(found, columns, strict=True)]
        if seeds:
            rows.append((arm_label(arm), str(seeds), *cells))
    return Sheet(f"From {base}, {splits[0]}", ("method", "seeds", *names), tuple(rows))


def brief_notes(report: "Report") -> tuple[str, ...]:
    """How the table was made, from what code, and how to read it."""
    manifest = report.results.manifest
    calls = dict.fromkeys((call.command, _short(call.commit)) for call in manifest.calls)
    seeds = seeds_of(report.results)
    span = ", ".join(map(str, seeds))
    bases = ", ".join(f"{name} {one.fingerprint[:12]}" for name, one in manifest.bases.items())
    return (
        f"run seeds {span}; mean ± half the width of the 95 % interval (Student's "
        f"t over seeds); ▲ and ▼: above and below {arm_label(BASELINE)}, paired by seed, the "
        f"interval excludes 0, not corrected",
        protocol_note(report.results),
        f"made by {'; '.join(f'{command} at {commit}' for command, commit in calls)}; weights of "
        f"the bases: {bases}",
    )


def _short(commit: str | None) -> str:
    """A commit's first digits, and that the code was changed where it was.

    Example:
        >>> _short("0123456789abcdef-dirty")
        '0123456-dirty'
    """
    if commit is None:
        return "an unknown commit"
    digits, sign, rest = commit.partition("-")
    return f"{digits[:7]}{sign}{rest}"


def _cell(row: Row | None, digits: int, seeds: int) -> str:
    """A mean with its interval; of fewer seeds than the row has where it says so."""
    if row is None:
        return "–"
    fewer = f" (n = {row.value.n})" if row.value.n < seeds else ""
    return f"{_spread(row.value, digits)}{fewer}{_mark(row.difference)}"


def _spread(found: Spread, digits: int, *, signed: bool = False) -> str:
    mean = f"{found.mean:+.{digits}f}" if signed else f"{found.mean:.{digits}f}"
    return mean if found.high is None else f"{mean} ± {found.high - found.mean:.{digits}f}"


def _mark(difference: Spread | None) -> str:
    """Whether the paired difference to GRPO can be told from 0."""
    if difference is None or difference.low is None or difference.high is None:
        return ""
    return " ▲" if difference.low > 0 else " ▼" if difference.high < 0 else ""


def _verdicts(report: "Report") -> Sheet:
    """A claim a row, a base a column."""
    bases = list(report.results.manifest.bases)
    place = {(one.hypothesis.id, one.base): one for one in report.verdicts}
    rows = [
        (
            f"{one.claim} ({one.source})",
            *(_words(place[one.id, base]) for base in bases),
        )
        for one in load_hypotheses().hypotheses
    ]
    notes = (
        rule_note(),
        "in brackets the parts of a claim, mean ± half the width of the uncorrected interval",
    )
    columns = ("claim, with what was published", *(f"from {base}" for base in bases))
    return Sheet("Claims of the papers", columns, tuple(rows), notes, labels=len(columns))


def _words(found: Verdict) -> str:
    if found.verdict == "not tested":
        return f"not tested: {found.reason}"
    parts: Sequence[str] = [
        f"{one.part.says}: {_spread(one.found, 3, signed=True)}" for one in found.parts if one.found
    ]
    return f"{found.verdict}: {found.reason} ({'; '.join(parts)})"
