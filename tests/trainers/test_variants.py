import numpy as np
import pytest

from npbench.tasks import TASKS
from trainers.variants import RESTATEMENTS, template_variants


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_every_task_has_restatements() -> None:
    assert set(RESTATEMENTS) == set(TASKS)
    texts = [text for task in RESTATEMENTS.values() for text in task]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("task", TASKS)
def test_variants_keep_the_whole_prompt_and_start_with_the_original(task: str) -> None:
    prompt = f"<image>\nThe {task} question with {len(task)} numbers.\nAnswer: [0, 1]"
    found = template_variants(task, prompt, variants=4, rng=rng())
    assert found[0] == prompt
    assert len(set(found)) == 4
    assert all(text.endswith(prompt) for text in found)


def test_the_largest_number_of_variants_is_exact_and_all_differ() -> None:
    found = template_variants("tsp", "Q", variants=11, rng=rng())
    assert len(set(found)) == 11
    with pytest.raises(ValueError, match=r"variants must lie in \[1, 11\], got 12"):
        template_variants("tsp", "Q", variants=12, rng=rng())
    with pytest.raises(ValueError, match=r"variants must lie in \[1, 11\], got 0"):
        template_variants("tsp", "Q", variants=0, rng=rng())
    assert template_variants("tsp", "Q", variants=1, rng=rng()) == ("Q",)


def test_the_draw_depends_on_the_generator_alone_and_aliases_are_read() -> None:
    first = template_variants("NpTsp", "Q", variants=3, rng=rng(1))
    assert first == template_variants("tsp", "Q", variants=3, rng=rng(1))
    others = {template_variants("tsp", "Q", variants=3, rng=rng(seed)) for seed in range(8)}
    assert len(others) > 4
    with pytest.raises(ValueError, match="unknown task 'tps'"):
        template_variants("tps", "Q", variants=2, rng=rng())


@pytest.mark.parametrize("task", TASKS)
def test_the_answer_of_a_reply_does_not_depend_on_the_variant(task: str) -> None:
    """A restatement must not hold an answer marker that the parser could take for the answer."""
    for text in RESTATEMENTS[task]:
        assert "answer" not in text.lower()
        assert not any(character.isdigit() for character in text)
