"""Charts of a page: labels that can be read, escaped text, intervals as the summary has them."""

import itertools
import re
import xml.etree.ElementTree as ET

import pytest

from evaluators.question_scores import QuestionScores
from evaluators.reports.charts import (
    Line,
    Mark,
    PlanePoint,
    TaskRow,
    curves_chart,
    plane_chart,
    tasks_chart,
)
from evaluators.reports.measures import curve, interval, known_interval, variant_gaps
from evaluators.reports.svg import SHAPES, Box, Tag, marker, place_tags, spread_out, width_of
from evaluators.reports.text import clipped, script_json, visible
from evaluators.uncertainty import estimate


def boxes(parts):
    """Where the labels of a chart stand, by the room that is kept for each."""
    found = []
    for x, y, anchor, words in re.findall(
        r'<text x="([-\d.]+)" y="([-\d.]+)" text-anchor="(\w+)" class="tag[^>]*>([^<]*)<',
        "".join(parts),
    ):
        wide = width_of(words)
        left = float(x) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        found.append(Box(left, float(y) - 10.5, left + wide, float(y) + 3.5))
    return found


def test_labels_of_near_points_do_not_meet():
    points = [(200 + dx, 200 + dy) for dx in (0, 8) for dy in (0, 8, 16)]
    tags = [Tag(x, y, f"a model of name {i}") for i, (x, y) in enumerate(points)]
    marks = [Box(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    frame = Box(40, 10, 430, 360)
    placed = boxes(place_tags(tags, frame, marks))
    assert len(placed) == 6
    assert all(frame.holds(box) for box in placed)
    assert not any(a.meets(b) for a, b in itertools.combinations(placed, 2))
    assert not any(box.meets(mark) for box in placed for mark in marks)


def test_ends_of_lines_are_spread_and_keep_their_order():
    found = spread_out([50.0, 51.0, 52.0, 299.0, 300.0], gap=14, low=16, high=300)
    assert found == sorted(found)
    assert min(b - a for a, b in itertools.pairwise(found)) >= 14
    assert found[-1] == 300


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_drawn_around_its_point(shape):
    drawn = marker(shape, 10, 20, kind="mark s0")
    assert ET.fromstring(drawn).get("class") == "mark s0"


def charts(label):
    yield plane_chart(
        [
            PlanePoint(label, 0.5, 0.4, 0, (0.4, 0.6), (0.3, 0.5)),
            PlanePoint("greedy rule", 1.0, 1.3, None),
        ],
        title=label,
    )
    yield curves_chart(
        [Line(label, 0, [(1, 0.2, (0.1, 0.3)), (4, 0.6, None)]), Line("b", 1, [(1, 0, None)])],
        title=label,
        axis="acc@k",
    )
    rows = [
        TaskRow(label, [Mark(0, 0.5, (0.4, 0.6)), Mark(1, 0.7, None)], [("random answer", 0.2)])
    ]
    yield tasks_chart(rows, title=label, axis="QR", names=[label, "b"])


def test_charts_are_well_formed_and_escape_labels():
    for svg in charts('<script>"&'):
        root = ET.fromstring(svg)
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert '<script>"&' in texts
        assert root.find("{http://www.w3.org/2000/svg}title").text == '<script>"&'
        assert "<script" not in svg


def test_every_label_lies_within_its_chart():
    for svg in charts("maximum independent set"):
        _, _, width, height = map(float, ET.fromstring(svg).get("viewBox").split())
        for box in boxes([svg]):
            assert box.x0 >= -1
            assert box.x1 <= width + 1
            assert 0 <= box.y0 < box.y1 <= height


def question(number, task, values, *, floors=True, **category):
    return QuestionScores(
        id=f"{task}-{number}-{category}", cluster=f"{task}-{number}",
        category={"group": task, "task": task, **category}, values=values, states={}, rules={},
        errors={}, answered_right=0, num_tokens=0, beats_reference=0, stopped=0,
        floors={"random": 0.5} if floors else {},
    )  # fmt: skip


def test_intervals_are_macro_averaged_for_tasks_and_pooled_for_questions():
    values = [0, 1, 1, 0, 1, 0.5, 0.25, 1]
    tasks = [question(i, "ab"[i % 2], {"qr": v}) for i, v in enumerate(values)]
    low, high = interval(tasks, "qr")
    assert low < sum(values) / 8 < high
    pooled = [question(i, "ab"[i % 2], {"qr": v}, floors=False) for i, v in enumerate(values)]
    found = estimate(values, [row.cluster for row in pooled])
    assert interval(pooled, "qr") == (found.low, found.high)
    assert interval([*tasks, question(9, "a", {"qr": None})], "qr") is None
    assert known_interval([*pooled, question(9, "a", {"qr": None})], "qr") == (
        found.low,
        found.high,
    )
    assert interval([], "qr") is None


def test_a_curve_has_the_summarys_values_and_no_interval_without_questions():
    (first, last) = curve({"4": 0.5, "1": 0.25}, [], "acc@k")
    assert (first.k, first.value, first.interval) == (1, 0.25, None)
    assert last.k == 4


def test_variants_are_paired_by_instance_and_only_shared_ones_count():
    rows = [question(i, "a", {"qr": 0.5}, modality="text") for i in range(4)]
    rows += [
        question(i, "a", {"qr": 0.25 * i}, modality="image", style="dark") for i in range(1, 9)
    ]
    (gap,) = variant_gaps(rows)
    assert (gap.category, gap.variant, gap.base) == ("modality", "image", "text")
    assert gap.metrics["qr"].questions == 3
    assert gap.metrics["qr"].difference == pytest.approx(0.0)
    assert (gap.metrics["qr"].wins, gap.metrics["qr"].losses, gap.metrics["qr"].ties) == (1, 1, 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, täxt, 数学 ✓\n\ttab", "plain, täxt, 数学 ✓\n\ttab"),
        ("line\r\nend\r", "line\nend⟦U+000D⟧"),
        ("\u202e\u2066\u200b\ufeff\x1b", "⟦U+202E⟧⟦U+2066⟧⟦U+200B⟧⟦U+FEFF⟧⟦U+001B⟧"),
        ("half \ud800 tag \U000e0041", "half ⟦U+D800⟧ tag ⟦U+E0041⟧"),
    ],
)
def test_characters_that_cannot_be_seen_are_written_out(text, shown):
    assert visible(text) == shown
    shown.encode()


def test_json_in_a_script_holds_no_end_of_it():
    text = script_json({"a": "</script><!--\u2028&"})
    assert not {"<", ">", "&", "\u2028"} & set(text)
    assert "\\u2028" in text
    with pytest.raises(ValueError, match="JSON compliant"):
        script_json(float("nan"))


def test_long_text_keeps_both_ends():
    assert clipped("x" * 10, head=5, tail=5) == "x" * 10
    assert clipped("a" * 5 + "b" * 90 + "c" * 5, head=5, tail=5) == (
        "aaaaa ⟦90 characters left out⟧ ccccc"
    )
