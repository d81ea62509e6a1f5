"""Tables on the terminal."""

from npbench.console import print_table


def test_titles_and_columns_are_shown_as_they_are(capsys):
    print_table("[red]x [/]", ["[b]", "n"], [["[path]", "1"]])
    shown = capsys.readouterr().out
    assert "[red]x [/]" in shown
    assert "[b]" in shown
    assert "[path]" in shown
