"""The one parser: tricky but legitimate replies, hostile ones, round trips and linear time."""

import contextlib
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npbench.answers import MAX_REPLY_CHARS, Shape, parse_answer
from npbench.errors import ParseError
from npbench.tasks import TASKS

FLAT, PATH, NESTED = Shape.FLAT, Shape.PATH, Shape.NESTED

READ = [
    # Brackets, separators and blanks.
    (FLAT, "Answer:[0,3]", [0, 3]),
    (FLAT, "Answer: [ 0 , 3 , ]", [0, 3]),
    (FLAT, "Answer: [0; 3]", [0, 3]),
    (FLAT, "Answer: (0, 3)", [0, 3]),
    (FLAT, "Answer: (3,)", [3]),
    (FLAT, "Answer: ( )", []),
    (FLAT, "Answer:[ ]", []),
    (FLAT, "Answer: the empty set []", []),
    (FLAT, "Answer: [0,\t3\n]", [0, 3]),
    (FLAT, "Answer: [0,\u30003]", [0, 3]),
    (FLAT, "Answer: [0,\u20283]", [0, 3]),
    (FLAT, "Answer: [-1, +2, 007]", [-1, 2, 7]),
    (FLAT, "Answer: [０１，２]", [1, 2]),
    (FLAT, "Answer: 〔0、3〕", [0, 3]),
    # Markers.
    (FLAT, "The answer is: [0, 3].", [0, 3]),
    (FLAT, "Final answer is: [0,3]", [0, 3]),
    (FLAT, "Answers: [0, 3]", [0, 3]),
    (FLAT, "Answer : [0, 3]", [0, 3]),
    (FLAT, "__Answer__: [0, 3]", [0, 3]),
    (FLAT, "_Answer:_ [0, 3]", [0, 3]),
    (FLAT, "***Answer:*** [0, 3]", [0, 3]),
    (FLAT, '"Answer: [0, 3]"', [0, 3]),
    (FLAT, '{"reasoning": "two are enough", "answer": [0, 3]}', [0, 3]),
    (FLAT, "{'answer': [0, 3]}", [0, 3]),
    (FLAT, '```json\n{"answer": [0, 3]}\n```', [0, 3]),
    (FLAT, "最终答案：[0, 3]", [0, 3]),
    (FLAT, "答案是：[0, 3]", [0, 3]),
    (FLAT, "<ANSWER>[0, 3]</ANSWER>", [0, 3]),
    (FLAT, "<answer>[0, 3]", [0, 3]),
    (FLAT, "<answer>\n```json\n[0, 3]\n```\n</answer>", [0, 3]),
    (FLAT, "Answer: [1]\n\n<answer>[0, 3]</answer>", [0, 3]),
    (FLAT, "Final Answer: The final answer is $\\boxed{[0, 3]}$. I hope it is correct.", [0, 3]),
    (FLAT, "\u200bAnswer: [0, 3]", [0, 3]),
    # Mathematics.
    (FLAT, r"\boxed{[0,\ 3]}", [0, 3]),
    (FLAT, r"\boxed{\text{[0, 3]}}", [0, 3]),
    (FLAT, r"$\boxed{\left[0, 3\right]}$", [0, 3]),
    (FLAT, r"\[ \boxed{[0, 3]} \]", [0, 3]),
    (FLAT, r"Answer: \( [0, 3] \)", [0, 3]),
    (FLAT, "Answer: [$v_0$, $v_3$]", [0, 3]),
    (NESTED, r"\[\boxed{\left[[0, 1], [2, 3]\right]}\]", [[0, 1], [2, 3]]),
    # Names and decoration.
    (FLAT, "Answer: [**0**, **3**]", [0, 3]),
    (FLAT, "Answer: [`0`, `3`]", [0, 3]),
    (FLAT, "Answer: [V0, v3]", [0, 3]),
    (FLAT, "Answer: [vertex_0, vertex 3]", [0, 3]),
    (FLAT, "Answer: [Vertex #0, Vertex #3]", [0, 3]),
    (FLAT, "Answer: ['vertex 0', \"node 3\"]", [0, 3]),
    (FLAT, "Answer: [S0, S12]", [0, 12]),
    (FLAT, "Answer: [item 0, item 3]", [0, 3]),
    (FLAT, "Answer: <b>[0, 3]</b>", [0, 3]),
    (FLAT, "Answer: vertices = [0, 3]", [0, 3]),
    (FLAT, "Answer: set([0, 3])", [0, 3]),
    (FLAT, "Answer: (the minimum) [0, 3]", [0, 3]),
    (FLAT, "Answer: [0, 3]; the weights were [0.5, 1]", [0, 3]),
    (FLAT, "Answer: [0, 3]</s>", [0, 3]),
    (FLAT, "Answer: [0, 3]<|endoftext|>", [0, 3]),
    # Thinking.
    (FLAT, "<think>x</think>\n<think>Answer: [1]</think>Answer: [0, 3]", [0, 3]),
    (FLAT, "<think>a<think>b</think>Answer: [1]</think>Answer: [0, 3]", [0, 3]),
    (FLAT, "<think>later I write </think> Answer: [1]</think> Answer: [0, 3]", [0, 3]),
    (FLAT, "<THINK>x</THINK>Answer: [0, 3]", [0, 3]),
    (FLAT, "◁think▷Answer: [1]◁/think▷Answer: [0, 3]", [0, 3]),
    # Tours.
    (PATH, "Answer: 0->2->1->0", [0, 2, 1, 0]),
    (PATH, "Answer: 0 → 2 → 1 → 0 (length 30)", [0, 2, 1, 0]),
    (PATH, "Answer: (0 -> 2 -> 1 -> 0)", [0, 2, 1, 0]),
    (PATH, "Answer: **0 → 2 → 1 → 0**", [0, 2, 1, 0]),
    (PATH, "Answer: `0 -> 2 -> 1 -> 0`.", [0, 2, 1, 0]),
    (PATH, "Answer: 0 =>\n2 -->\n10 ⇒ 0", [0, 2, 10, 0]),
    (PATH, "Answer: Start at 0 -> 2 -> 1 -> 0.", [0, 2, 1, 0]),
    (PATH, "Answer: 10 cities: 0 -> 2 -> 1 -> 0", [0, 2, 1, 0]),
    (PATH, "Answer: City 0 → city 2 → 'City 1' → City 0", [0, 2, 1, 0]),
    (PATH, r"Answer: $0\to2\to1\to0$", [0, 2, 1, 0]),
    (PATH, r"Answer: \(0 \to 2 \to 1 \to 0\)", [0, 2, 1, 0]),
    (PATH, r"Answer: $0 \longrightarrow 2 \longrightarrow 0$", [0, 2, 0]),
    (PATH, "Answer: The tour [0, 2, 1, 0] i.e. 1 -> 2 -> 0", [0, 2, 1, 0]),
    (PATH, "Answer: The tour 0 -> 2 -> 1 -> 0, i.e. [1, 1]", [0, 2, 1, 0]),
    (PATH, "Answer: ['0' -> '2' -> '0']", [0, 2, 0]),
    # Partitions and meetings.
    (NESTED, "Answer: ((0, 1), (2, 3))", [[0, 1], [2, 3]]),
    (NESTED, "Answer: [[0, 1, ], [2, 3], ]", [[0, 1], [2, 3]]),
    (NESTED, "Answer: [ [ 0 , 1 ] ,\n [ ] ]", [[0, 1], []]),
    (NESTED, "Answer: [[0, 1]; [2, 3]]", [[0, 1], [2, 3]]),
    (NESTED, 'Answer: [[Vertex 0, v1], ["2", 3]]', [[0, 1], [2, 3]]),
    (NESTED, "Answer: 【【0，1】，【2】】", [[0, 1], [2]]),
    (NESTED, "Answer: [[Meeting 0, Room 1, 540]]", [[0, 1, 540]]),
    (NESTED, "Answer: [[0, 1], [2, 3]] with a cut of [3]", [[0, 1], [2, 3]]),
    (NESTED, "Answer: []", []),
]


@pytest.mark.parametrize(
    ("shape", "reply", "expected"), [pytest.param(*row, id=repr(row[1])) for row in READ]
)
def test_a_tricky_but_legitimate_reply_is_read(shape, reply, expected):
    assert parse_answer(reply, shape=shape) == expected


LATEX = [
    (PATH, r"Answer: $0 \rightarrow 2 \rightarrow 1 \rightarrow 0$", [0, 2, 1, 0]),
    (PATH, r"\boxed{0 \rightarrow 2 \rightarrow 1 \rightarrow 0}", [0, 2, 1, 0]),
    (PATH, r"Answer: [0 \rightarrow 2 \rightarrow 0]", [0, 2, 0]),
    (PATH, r"Answer: $0 \Rightarrow 2 \Rightarrow 0$", [0, 2, 0]),
    (PATH, r"Answer: \[ 0 \to 2 \to 1 \to 0 \]", [0, 2, 1, 0]),
    (FLAT, r"Answer: \[ [0, 3] \]", [0, 3]),
    (FLAT, "Answer:\n\\[\n[0, 3]\n\\]", [0, 3]),
    (NESTED, r"Answer: \[ [[0, 1], [2, 3]] \]", [[0, 1], [2, 3]]),
]


@pytest.mark.parametrize(
    ("shape", "reply", "expected"), [pytest.param(*row, id=repr(row[1])) for row in LATEX]
)
def test_latex_arrows_and_displayed_formulas_are_decoration(shape, reply, expected):
    assert parse_answer(reply, shape=shape) == expected


@pytest.mark.parametrize(
    "reply",
    ["Answer: ([0, 1], [2, 3])", "Answer: ([0, 1], (2, 3))", "Answer: ([0, 1], [2, 3],)"],
)
def test_a_tuple_of_lists_is_a_list_of_lists(reply):
    assert parse_answer(reply, shape=NESTED) == [[0, 1], [2, 3]]


REFUSED = [
    (FLAT, "[0, 3]"),
    (FLAT, "Answer: 0, 3"),
    (FLAT, "Answer: 3"),
    (FLAT, "Answer: [0 3]"),
    (FLAT, "Answer: [0, 1 2]"),
    (FLAT, "Answer: [,0]"),
    (FLAT, "Answer: [0,,3]"),
    (FLAT, "Answer: [0, 3"),
    (FLAT, "Answer: [0, 3,"),
    (FLAT, "Answer: 0, 3]"),
    (FLAT, "Answer: [0-3]"),
    (FLAT, "Answer: [0..3]"),
    (FLAT, "Answer: [0:3]"),
    (FLAT, "Answer: [0 and 3]"),
    (FLAT, "Answer: [0 -> 3]"),
    (FLAT, "Answer: [0, 1/2]"),
    (FLAT, "Answer: [.5, 3]"),
    (FLAT, "Answer: [2.5]"),
    (FLAT, "Answer: [3⁄4]"),
    (FLAT, "Answer: [3²]"),
    (FLAT, "Answer: [3**2]"),
    (FLAT, "Answer: [3%]"),
    (FLAT, "Answer: [1e1]"),
    (FLAT, "Answer: [0x1]"),
    (FLAT, "Answer: [1_0]"),
    (FLAT, "Answer: [true, false]"),
    (FLAT, "Answer: [None]"),
    (FLAT, "Answer: [--3]"),
    (FLAT, "Answer: [- 3]"),
    (FLAT, "Answer: [③]"),
    (FLAT, "Answer: [²]"),
    (FLAT, "Answer: ['1''2']"),
    (FLAT, "Answer: [[0, 3]]"),
    (FLAT, "Answer: [0, [3]]"),
    (FLAT, "Answer: [set 3 item 4]"),
    (FLAT, "Answer: [i for i in [0, 3]]"),
    (FLAT, "Answer: [9" + "9" * 18 + "]"),
    (FLAT, "<think>Answer: [0, 3]"),
    (FLAT, "Answer: [0, 3]</think>"),
    (FLAT, "Answer: [0, 3]<think>"),
    (FLAT, "My unanswered question: [0, 3]"),
    (PATH, "Answer: 0 -> 2 -> 1 ->"),
    (PATH, "Answer: 0 -> 2 -> ... -> 0"),
    (PATH, "Answer: 0"),
    (NESTED, "Answer: [0, 1]"),
    (NESTED, "Answer: [[0, 1], 2]"),
    (NESTED, "Answer: [[0, 1] [2, 3]]"),
    (NESTED, "Answer: [[0, 1], [2, 3]"),
    (NESTED, "Answer: [[[0, 1], [2, 3]]]"),
    (NESTED, "Answer: [[0 -> 1], [2]]"),
    (NESTED, "Answer: [[0, 0, 9:00]]"),
    (NESTED, "Answer: [[0, 0, 540.0]]"),
    (NESTED, 'Answer: [{"meeting": 0, "room": 0, "start": 540}]'),
]


@pytest.mark.parametrize(
    ("shape", "reply"), [pytest.param(*row, id=repr(row[1])) for row in REFUSED]
)
def test_a_reply_without_a_readable_answer_is_refused_with_a_reason(shape, reply):
    with pytest.raises(ParseError, match=r"\S"):
        parse_answer(reply, shape=shape)


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: 0 -> 2 -> 1 -> 0.5",
        "Answer: 0 -> 2 -> 1.5 -> 0",
        "Answer: 1.0 -> 2 -> 1 -> 0",
        "Answer: 0 -> 2 -> 1 -> 0/1",
        "Answer: 0 -> 2 -> 1 -> 0x5",
        "Answer: 0 -> 2 -> 1 -> 0½",
        "Answer: ½0 -> 2 -> 1 -> 0",
        "Answer: 10000000000000000000 -> 2 -> 1 -> 0",
        "Answer: 0 -> 2 -> 1 -> 00000000000000000005",
        "Answer: 0 -> -2 -> 1 -> 0",
        "Answer: 0 -> ? -> 1 -> 2 -> 3 -> 1",
        "Answer: 3 -> x1 -> 0 -> 2 -> 1 -> 0",
    ],
)
def test_a_chain_with_a_stop_that_is_no_integer_is_refused_and_never_cut(reply):
    """Else a part of the chain is read as the whole: another tour than the one that was given."""
    with pytest.raises(ParseError):
        parse_answer(reply, shape=PATH)


@pytest.mark.parametrize(
    ("shape", "reply"),
    [
        (FLAT, "Answer: [0, 3)"),
        (FLAT, "Answer: (0, 3]"),
        (NESTED, "Answer: [[0, 1), (2, 3]]"),
        (NESTED, "Answer: [(0, 1], [2, 3])"),
    ],
)
def test_brackets_that_do_not_match_are_no_list(shape, reply):
    with pytest.raises(ParseError):
        parse_answer(reply, shape=shape)


@pytest.mark.parametrize("entry", ["vertex-3", "Node-3", "v-3"])
def test_a_hyphen_behind_a_name_is_not_read_as_a_minus(entry):
    try:
        answer = parse_answer(f"Answer: [0, {entry}]", shape=FLAT)
    except ParseError:
        return
    assert answer == [0, 3]


@pytest.mark.parametrize("reply", [None, 5, b"Answer: [0]", ["Answer: [0]"], float("nan")])
def test_what_is_not_text_is_refused(reply):
    with pytest.raises(ParseError, match="text"):
        parse_answer(reply, shape=FLAT)


def test_a_mebibyte_is_read_and_one_more_character_is_refused():
    answer = "Answer: [0, 3]"
    longest = " " * (MAX_REPLY_CHARS - len(answer)) + answer
    assert MAX_REPLY_CHARS == 2**20
    assert parse_answer(longest, shape=FLAT) == [0, 3]
    with pytest.raises(ParseError, match="too long"):
        parse_answer(" " + longest, shape=FLAT)


def test_a_long_answer_is_read_whole():
    numbers = list(range(100_000))
    assert parse_answer(f"Answer: {numbers}", shape=FLAT) == numbers
    rows = [[m, m % 7, 540 + m] for m in range(30_000)]
    assert parse_answer(f"Answer: {rows}", shape=NESTED) == rows
    arrows = " -> ".join(map(str, numbers))
    assert parse_answer(f"Answer: {arrows}", shape=PATH) == numbers


PIECES = [
    *"[](){}<>,;:.-+*`$'\"_#/\\ \n\t0123456789vnxE½⅓∞√，、［］（）：０９",
    "Answer:",
    "answer",
    "**Answer**:",
    "答案：",
    "<answer>",
    "</answer>",
    "\\boxed{",
    "<think>",
    "</think>",
    "◁think▷",
    "◁/think▷",
    "->",
    "→",
    "\\to",
    "\\rightarrow",
    "\\left[",
    "\\right]",
    "[0, 1]",
    "[[0, 1], [2]]",
    "0 -> 1",
    "City 3",
    "Vertex_7",
    "meeting",
    "NaN",
    "True",
    "...",
    "99999999999999999999",
    "\x00",
    "\ud800",
    "\u200b",
    "```json\n",
    "<|im_end|>",
]


def assert_integers(answer, shape):
    assert type(answer) is list
    rows = answer if shape is NESTED else [answer]
    for row in rows:
        assert type(row) is list
        assert all(type(number) is int and abs(number) < 10**18 for number in row)


def test_ten_thousand_random_texts_raise_nothing_but_parse_errors():
    rng = random.Random(20240511)
    read, reasons = 0, []
    for _ in range(10_000):
        pieces = rng.choices(PIECES, k=rng.randint(0, 30))
        if rng.random() < 0.5:
            pieces.insert(0, "Answer: [")
        reply = "".join(pieces)
        for shape in Shape:
            try:
                answer = parse_answer(reply, shape=shape)
            except ParseError as error:
                reasons.append(str(error))
                continue
            read += 1
            assert_integers(answer, shape)
    assert read >= 100, "the random texts hold no readable answer"
    assert all(0 < len(reason.strip()) < 200 for reason in reasons)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(reply=st.text(max_size=80), shape=st.sampled_from(Shape), lead=st.sampled_from(PIECES))
def test_any_unicode_text_raises_nothing_but_parse_errors(reply, shape, lead):
    try:
        answer = parse_answer(lead + reply, shape=shape)
    except ParseError:
        return
    assert_integers(answer, shape)


SIZE = 200_000
ADVERSARIAL = {
    "opening_brackets": "Answer: " + "[" * SIZE,
    "opening_parentheses": "Answer: " + "(" * SIZE,
    "empty_lists": "Answer: [" + "[]," * (SIZE // 3),
    "wide_brackets": "Answer：" + "［" * SIZE,
    "markers": "Answer:" * (SIZE // 7),
    "marker_words": "answer is " * (SIZE // 10),
    "boxes": "\\boxed{" * (SIZE // 7),
    "box_and_blanks": ("\\boxed" + " " * 60) * (SIZE // 66),
    "bold_markers": "Answer" + "*" * SIZE + ":",
    "chain_cut_off": "Answer: " + "0->" * (SIZE // 3),
    "broken_chains": "Answer: " + "0 -> 1 -> x " * (SIZE // 12),
    "dashes": "Answer: 0" + "-" * SIZE,
    "equals": "Answer: 0" + "=" * SIZE,
    "backslashes": "Answer: 0" + "\\" * SIZE,
    "latex_arrows": "Answer: 0" + "\\to" * (SIZE // 3),
    "blanks": "Answer: 0" + " " * SIZE + "x",
    "numbers_and_blanks": "Answer: " + ("9" * 18 + " " * 30) * (SIZE // 48),
    "one_number_in_a_list": "Answer: [" + "9" * SIZE,
    "one_number": "Answer: " + "9" * SIZE,
    "quotes": "Answer: [" + '"' * SIZE,
    "names": "Answer: " + "vertex " * (SIZE // 7),
    "letters": "Answer: [" + "v" * SIZE,
    "numbers_without_commas": "Answer: [" + "1 " * (SIZE // 2) + "]",
    "unfinished_list": "Answer: [" + "1," * (SIZE // 2),
    "unfinished_lists": "Answer: " + "[1," * (SIZE // 3),
    "thinking_opens": "<think>" * (SIZE // 7),
    "thinking_closes": "</think>" * (SIZE // 8),
    "thinking_blocks": "<think>x</think>" * (SIZE // 16),
    "angle_brackets": "<" * SIZE,
    "tokens": "Answer: [" + "<|" * (SIZE // 2),
    "dollars": "Answer: " + "$" * SIZE,
    "newlines": "Answer:" + "\n" * SIZE + "[0",
}


def seconds(reply, shape):
    start = time.process_time()
    with contextlib.suppress(ParseError):
        parse_answer(reply, shape=shape)
    return time.process_time() - start


@pytest.mark.parametrize("kind", list(ADVERSARIAL))
def test_an_adversarial_reply_takes_time_in_proportion_to_its_length(kind):
    """A quadratic step would take minutes at this length, a linear one well under a second."""
    for shape in Shape:
        assert seconds(ADVERSARIAL[kind], shape) < 20.0


PROSE = st.text(alphabet="abdefghijklmopqtuwxyz .,!?\n", max_size=30)
MARKERS = st.sampled_from(
    [
        "Answer: ",
        "answer:",
        "ANSWER:\n",
        "**Answer:** ",
        "**Answer**: ",
        "### Final Answer:\n\n",
        "> Answer: ",
        "The answer is: ",
        "Answer：",
        "答案：",
        "<answer>",
        "<think>Answer: [7]</think>Answer: ",
        "Answer: [5, 5]\nNo. Answer: ",
        "Answer: \\boxed{",
        "$\\boxed{",
    ]
)
NUMBERS = st.integers(-(10**16), 10**16)
WRITTEN = st.sampled_from(
    ["{}", " {} ", '"{}"', "'{}'", "**{}**", "`{}`", "${}$", "\n{}", "v{}", "Node {}", "Vertex {}"]
)
COMMAS = st.sampled_from([", ", ",", " , ", ",\n ", "，", "、", "; ", ",\u00a0"])
BRACKETS = st.sampled_from(
    [("[", "]"), ("［", "］"), ("【", "】"), ("[ ", " ]"), ("\\left[", "\\right]")]
)
TUPLES = st.sampled_from([("[", "]"), ("(", ")"), ("【", "】"), ("[\n", "\n]")])
AFTER = st.sampled_from(
    [
        "",
        ".",
        "**",
        "</answer>",
        "}$",
        "\n```",
        " (2 vertices)",
        " of size [2].",
        "<|im_end|>",
        "\x00",
    ]
)
ARROWS = st.sampled_from(["->", " -> ", " → ", " => ", "\n--> ", " \\to ", " ⇒ "])


@st.composite
def decorated_lists(draw):
    numbers = draw(st.lists(NUMBERS, max_size=8))
    template = draw(WRITTEN)
    if not template.strip().startswith("{"):
        numbers = [abs(number) for number in numbers]
    items = [template.format(number) for number in numbers]
    opening, closing = draw(BRACKETS)
    text = opening + draw(COMMAS).join(items) + closing
    return draw(PROSE) + "\n" + draw(MARKERS) + draw(PROSE) + text + draw(AFTER), numbers


@st.composite
def decorated_chains(draw):
    numbers = draw(st.lists(st.integers(0, 10**17), min_size=2, max_size=8))
    template = draw(st.sampled_from(["{}", "City {}", "v{}", '"{}"', "**{}**"]))
    chain = draw(ARROWS).join(template.format(number) for number in numbers)
    opening, closing = draw(st.sampled_from([("", ""), ("[", "]"), ("(", ")"), ("$", "$")]))
    text = opening + chain + closing
    return draw(PROSE) + "\n" + draw(MARKERS) + text + draw(AFTER), numbers


@st.composite
def decorated_rows(draw):
    rows = draw(st.lists(st.lists(NUMBERS, max_size=4), max_size=4))
    opening, closing = draw(BRACKETS)
    left, right = draw(TUPLES)
    comma = draw(COMMAS)
    inner = [left + comma.join(map(str, row)) + right for row in rows]
    text = opening + draw(COMMAS).join(inner) + closing
    return draw(PROSE) + "\n" + draw(MARKERS) + text + draw(AFTER), rows


ROUND_TRIP = settings(max_examples=300, deadline=None, derandomize=True, database=None)


@ROUND_TRIP
@given(case=decorated_lists(), shape=st.sampled_from([FLAT, PATH]))
def test_a_decorated_list_is_read_back(case, shape):
    reply, numbers = case
    assert parse_answer(reply, shape=shape) == numbers


@ROUND_TRIP
@given(case=decorated_chains())
def test_a_decorated_chain_of_arrows_is_read_back(case):
    reply, numbers = case
    assert parse_answer(reply, shape=PATH) == numbers


@ROUND_TRIP
@given(case=decorated_rows())
def test_decorated_lists_of_lists_are_read_back(case):
    reply, rows = case
    assert parse_answer(reply, shape=NESTED) == rows


@pytest.mark.parametrize("name", list(TASKS))
def test_every_task_reads_its_answers_in_the_shape_that_it_asks_for(name):
    nested = name in {"minimum_bisection", "maximum_cut", "meeting_scheduling"}
    path = name in {"tsp", "longest_cycle"}
    assert TASKS[name].shape is (NESTED if nested else PATH if path else FLAT)
    text, answer = ("[[0, 1], [2]]", [[0, 1], [2]]) if nested else ("[0, 1, 2]", [0, 1, 2])
    assert TASKS[name].parse(f"Answer: {text}") == answer
