"""The short form: what stands in the README, and how it gets there."""

from pathlib import Path

import pytest

from leaderboards.reproduction_brief import BEGIN, END, brief, put_brief
from leaderboards.reproduction_report import build_report
from npbench.errors import InputError


def by_arm(arm: str, seed: int, split: str, measure: str) -> float:
    """DMPO is above GRPO in QR on every seed and below it in SR; MUPO on half of the seeds."""
    wobble = 0.01 * (seed % 2)
    apart = {
        ("dmpo", "qr"): 0.1,
        ("dmpo", "sr"): -0.1,
        ("mupo", "qr"): 0.1 * (-1) ** seed,
    }.get((arm, measure), 0.0)
    return 0.5 + wobble + apart


@pytest.fixture
def report(made_up, written):
    return build_report(written(made_up(by_arm, bases=("late", "early"))), pictures=False)


def cells(text: str, row: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {row}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_marks_say_which_differences_to_grpo_exclude_zero(report) -> None:
    text = brief(report)
    names = cells(text, "method")
    dmpo, mupo, grpo = (
        dict(zip(names, cells(text, row), strict=True))
        for row in ("DMPO, λ 0.5", "MUPO, K = 3", "GRPO")
    )
    assert dmpo["QR"] == "0.605 ± 0.004 ▲"
    assert dmpo["SR"] == "0.405 ± 0.004 ▼"
    assert dmpo["acc@1"] == grpo["acc@1"] == "0.505 ± 0.004"
    assert mupo["QR"].startswith("0.505 ±")
    assert not set(mupo["QR"]) & set("▲▼")


def test_every_claim_has_a_verdict_from_every_base(report) -> None:
    text = brief(report)
    assert text.count("### From ") == 2
    assert cells(text, "claim")[1:] == ["from late", "from early"]
    (row,) = (line for line in text.splitlines() if line.startswith("| DMPO raises both"))
    against = "the uncorrected interval excludes 0 on the other side (SR of DMPO minus GRPO's)"
    assert row.count(f"not supported: {against}") == 2
    assert "SR of DMPO minus GRPO's: -0.100 ± 0.000" in row
    (row,) = (line for line in text.splitlines() if line.startswith("| K = 3 groups"))
    assert row.count("not tested: not run: mupo-k1, mupo-k5") == 2
    assert "run seeds 100, 101, 102, 103, 104, 105, 106, 107;" in text
    assert cells(text, "GRPO")[1] == "8"


def test_the_short_form_replaces_itself_between_its_marks(report, tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nmore\n")
    put_brief(path, report)
    first = path.read_text()
    assert first == f"# Title\n\n{BEGIN}\n{brief(report)}{END}\n\nmore\n"
    put_brief(path, report)
    assert path.read_text() == first
    put_brief(tmp_path / "new.md", report)
    assert (tmp_path / "new.md").read_text() == f"{BEGIN}\n{brief(report)}{END}\n"


@pytest.mark.parametrize("text", ["# Title\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{END}\n{END}\n"])
def test_a_file_without_its_marks_is_left_as_it_is(text: str, report, tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(text)
    with pytest.raises(InputError, match="must have the lines"):
        put_brief(path, report)
    assert path.read_text() == text
