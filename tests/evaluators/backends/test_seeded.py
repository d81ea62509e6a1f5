"""Each row is drawn from its own seed, and from the right distribution."""

import pytest

from evaluators.backends.base import Sampling
from evaluators.runner import sample_seed

torch = pytest.importorskip("torch")

LOGITS = [2.0, 1.0, 0.0, -1.0, float("-inf")]
ROWS = 6000


@pytest.fixture(scope="module")
def draw():
    """Shares of each token over many rows, at the second of two steps."""
    from evaluators.backends.seeded import seeded_processor

    def shares(**sampling):
        seeds = [sample_seed(0, "question", row) for row in range(ROWS)]
        processor = seeded_processor(seeds, Sampling(**sampling), max_tokens=2)
        scores = torch.tensor(LOGITS).repeat(ROWS, 1)
        prompt = torch.full((ROWS, 1), 3)
        first = processor(prompt, scores).argmax(-1)
        second = processor(torch.cat([prompt, first[:, None]], dim=1), scores)
        assert (torch.isfinite(second).sum(-1) == 1).all()
        return torch.bincount(second.argmax(-1), minlength=5).double() / ROWS

    return shares


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ({}, torch.tensor(LOGITS).softmax(-1)),
        ({"temperature": 0.5}, (torch.tensor(LOGITS) / 0.5).softmax(-1)),
        ({"temperature": 3.0}, (torch.tensor(LOGITS) / 3.0).softmax(-1)),
        ({"top_k": 2}, torch.tensor([2.0, 1.0]).softmax(-1)),
        ({"top_p": 0.7}, torch.tensor([2.0, 1.0]).softmax(-1)),
        ({"min_p": 0.2}, torch.tensor([2.0, 1.0]).softmax(-1)),
        ({"repetition_penalty": 2.0}, None),
    ],
)
def test_shares_are_those_of_the_cut_and_tempered_softmax(sampling, expected, draw):
    found = draw(**sampling)
    assert found[4] == 0
    if expected is None:
        assert found[3] < draw()[3]
        return
    wanted = torch.zeros(5, dtype=torch.double)
    wanted[: len(expected)] = expected.double()
    bound = 4.5 * (wanted * (1 - wanted) / ROWS).sqrt()
    assert ((found - wanted).abs() <= bound).all(), (found, wanted)


def test_rows_without_a_seed_take_the_likeliest_token():
    from evaluators.backends.seeded import seeded_processor

    processor = seeded_processor([None, 1, None], Sampling(temperature=50.0), max_tokens=64)
    drawn = []
    for _ in range(64):
        scores = torch.tensor(LOGITS).repeat(3, 1)
        drawn.append(processor(torch.zeros(3, 1, dtype=torch.long), scores).argmax(-1).tolist())
    assert {(row[0], row[2]) for row in drawn} == {(0, 0)}
    assert len({row[1] for row in drawn}) == 4
