import pytest

from trainers.segments import reasoning_segment


@pytest.mark.parametrize(
    ("reply", "segment"),
    [
        ("<think>a</think> b \\boxed{1}", "<think>a</think>"),
        ("x <think>a</think> y <think>b</think>", "<think>a</think>"),
        ("<think>line\nline</think>", "<think>line\nline</think>"),
        ("<think>never closed \\boxed{2}", "<think>never closed "),
        ("First a, then b. \\boxed{3} and \\boxed{4}", "First a, then b. "),
        ("no box and no tags", "no box and no tags"),
        ("\\boxed{5}", "\\boxed{5}"),
        ("</think> before <think>", "</think> before <think>"),
        ("", ""),
    ],
)
def test_the_segment_follows_the_rule_table(reply: str, segment: str) -> None:
    assert reasoning_segment(reply) == segment
