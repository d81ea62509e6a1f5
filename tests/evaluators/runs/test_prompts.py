"""How a question is asked in each format."""

import pytest

from evaluators.prompts import (
    PROMPT_FORMATS,
    build_prompt,
    format_hash,
    image_hash,
    prompt_hash,
)
from npbench.errors import InputError
from npbench.splits import load


def test_a_format_stands_below_the_question():
    assert build_prompt(("Q?",), prompt_format="plain").parts == ("Q?",)
    boxed = build_prompt((b"picture", "Q?"), prompt_format="think-boxed").parts
    assert boxed[0] == b"picture"
    assert boxed[1].startswith("Q?\n\nFirst reason inside <think>")
    assert boxed[1].endswith(r"\boxed{} and write nothing after it.")
    last = build_prompt(("Q", b"picture"), prompt_format="answer-tag").parts
    assert last[:2] == ("Q", b"picture")
    assert "<answer> </answer>" in last[2]


@pytest.mark.parametrize("modality", ["image", "text"])
@pytest.mark.parametrize(("suite", "level"), [("nano", "nano"), ("np-bench", "easy")])
def test_the_format_of_the_np_tasks_gives_way_to_another_one(suite, level, modality):
    row = load(suite, level, "test", 3, per_task=1, tasks=["tsp"], modality=modality)[0]
    own = build_prompt((row.prompt,), prompt_format="answer-line").parts[0]
    assert own == row.prompt
    for name in ("think-boxed", "answer-tag", "plain"):
        text = build_prompt((row.prompt,), prompt_format=name).parts[0]
        assert "Answer:" not in text
        assert "last line" not in text
        assert PROMPT_FORMATS[name] in text
        assert row.prompt[:200] == text[:200]
    assert "Answer: [" not in build_prompt((row.prompt,), prompt_format="plain").parts[0]


@pytest.mark.parametrize(
    "token", ["<image>", "<image1>", "<image 2>", "<image_3>", "<|image_pad|>", "<|vision_start|>"]
)
def test_tokens_that_models_read_as_pictures_are_taken_out_of_the_text(token):
    assert build_prompt((f"{token}Find x.",), prompt_format="plain").parts == ("Find x.",)


def test_pictures_stay_where_they_were_put():
    parts = (b"1", "A", b"2", "<image>", b"3", "B")
    assert build_prompt(parts, prompt_format="plain").parts == (b"1", "A", b"2", b"3", "B")


def test_hashes_tell_what_was_asked():
    one = build_prompt(("Q?", b"1"), prompt_format="plain")
    assert prompt_hash(one) == prompt_hash(build_prompt(("Q?", b"2"), prompt_format="plain"))
    assert image_hash(one) != image_hash(build_prompt(("Q?", b"2"), prompt_format="plain"))
    assert image_hash(build_prompt(("Q?",), prompt_format="plain")) is None
    others = [
        build_prompt((b"1", "Q?"), prompt_format="plain"),
        build_prompt(("Q?", b"1"), prompt_format="answer-line"),
        build_prompt(("Q?", b"1"), prompt_format="plain", system="Be brief."),
    ]
    assert len({prompt_hash(one), *map(prompt_hash, others)}) == 4
    assert len({format_hash(name) for name in PROMPT_FORMATS}) == 4


def test_an_unknown_format_gets_the_nearest_one():
    with pytest.raises(InputError, match="did you mean 'think-boxed'"):
        build_prompt(("Q?",), prompt_format="think-box")
