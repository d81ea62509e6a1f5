"""Sheets of text as Markdown, CSV and LaTeX, each escaped for where it goes."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["FORMATS", "Sheet", "as_csv", "as_latex", "as_markdown", "plain"]

FORMATS = ("table", "markdown", "csv", "latex", "json")
"""``table`` is for a terminal."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of text with its title and what must be read with it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    """The protocol first."""
    labels: int = 1
    """Leading columns that hold text."""

    def __post_init__(self) -> None:
        """Checks that all rows have all columns."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.title}: {len(row)} cells for {len(self.columns)} columns")


def plain(text: str, *, limit: int = 200) -> str:
    r"""A foreign text in one line without control characters, cut where it is long.

    Example:
        >>> plain("a\x1b[31m\nb")
        'a [31m b'
    """
    known = text[: 4 * limit].encode(errors="replace").decode()
    line = " ".join(_CONTROL.sub(" ", known).split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def as_markdown(sheets: Sequence[Sheet]) -> str:
    """The sheets as Markdown tables with their notes below."""
    return "\n".join(_markdown(sheet) for sheet in sheets)


def _markdown(sheet: Sheet) -> str:
    lines = [f"### {_markdown_text(sheet.title)}", ""]
    for number, row in enumerate((sheet.columns, *sheet.rows)):
        lines.append("| " + " | ".join(_markdown_text(cell) for cell in row) + " |")
        if number == 0:
            sides = ["---" if i < sheet.labels else "---:" for i in range(len(row))]
            lines.append("|" + "|".join(sides) + "|")
    lines += ["", *(f"- {_markdown_text(note)}" for note in sheet.notes), ""]
    return "\n".join(lines)


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", plain(text, limit=4000))


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows as comma-separated values with a header."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return file.getvalue()


def as_latex(sheets: Sequence[Sheet]) -> str:
    """The sheets as LaTeX tables (``booktabs``) with their notes in the caption."""
    return "\n".join(_latex(sheet) for sheet in sheets)


def _latex(sheet: Sheet) -> str:
    sides = "l" * sheet.labels + "r" * (len(sheet.columns) - sheet.labels)
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{sides}}}", r"\toprule"]
    for number, row in enumerate((sheet.columns, *sheet.rows)):
        lines.append(" & ".join(_latex_text(cell) for cell in row) + r" \\")
        if number == 0:
            lines.append(r"\midrule")
    caption = " ".join([f"{sheet.title}.", *sheet.notes])
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\caption{{{_latex_text(caption)}}}", r"\end{table}", ""]
    return "\n".join(lines)


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in plain(text, limit=4000))
