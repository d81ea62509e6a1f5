"""Tables in the terminal: names are shown as they are, and none of them can act."""

import pytest

from evaluators.tables import comparison_table


def compared(first: str) -> dict:
    return {"models": [first, "other"], "metrics": {}}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x1b[31m\nb\x00", "a⟦U+001B⟧[31m b⟦U+0000⟧ minus other"),
        ("half \ud800 of it", "half ⟦U+D800⟧ of it minus other"),
        ("turned \u202e round", "turned ⟦U+202E⟧ round minus other"),
        ("m" * 5000, f"{'m' * 160} ⟦4800 characters left out⟧ {'m' * 40} minus other"),
    ],
)
def test_a_models_name_is_one_line_that_can_be_printed(name, shown, capsys):
    comparison_table(compared(name))
    printed = capsys.readouterr().out  # a title wider than its table is wrapped
    assert "".join(shown.split()) in "".join(printed.split())
