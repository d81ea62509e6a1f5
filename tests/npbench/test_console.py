"""Tables on the terminal."""

from npbench.console import print_table


def test_titles_and_columns_are_shown_as_they_are(capsys):
    print_table("run [red]x[/red] [/]", ["[b]", "n"], [["[path]", "1"]])
    shown = capsys.readouterr().out
    assert "run [red]x[/red] [/]" in shown
    assert "[b]" in shown
    assert "[path]" in shown
