"""Chunked log-softmax: equal to torch's in value and gradient, repeatable, bounded in memory."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from trainers.token_logprobs import PART, token_logprobs

SHAPE = (3, 5, 11)
PARTS = (1, 11, 23, 60, 10_000)


def inputs(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(SHAPE, generator=generator, dtype=torch.float64)
    tokens = torch.randint(0, 9, SHAPE[:2], generator=generator)
    return logits.to(dtype).requires_grad_(), tokens


def plain(logits: torch.Tensor, temperature: float, banned: tuple[int, ...]) -> torch.Tensor:
    """Over the tokens that are left, the first ones, as autograd's rules do not know 0 log 0."""
    return (logits[..., : logits.shape[-1] - len(banned)] / temperature).log_softmax(-1)


@pytest.mark.parametrize("banned", [(), (9, 10)])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("part", PARTS)
def test_values_and_gradients_are_those_of_log_softmax(
    part: int, temperature: float, banned: tuple[int, ...]
) -> None:
    logits, tokens = inputs()
    weights = torch.randn(SHAPE[:2], generator=torch.Generator().manual_seed(1)).double()
    log = plain(logits, temperature, banned)
    chosen = log.gather(-1, tokens[..., None]).squeeze(-1)
    found = token_logprobs(logits, tokens, temperature=temperature, banned_ids=banned, part=part)
    torch.testing.assert_close(found, chosen, rtol=1e-12, atol=1e-12)
    one, two = (torch.autograd.grad((v * weights).sum(), logits)[0] for v in (chosen, found))
    torch.testing.assert_close(two, one, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("part", PARTS)
def test_gradcheck(part: int) -> None:
    logits, tokens = inputs()
    settings = {"temperature": 0.7, "banned_ids": (10,), "part": part}
    assert torch.autograd.gradcheck(lambda x: token_logprobs(x, tokens, **settings), (logits,))


def test_a_banned_token_has_probability_zero_and_no_gradient() -> None:
    logits, tokens = inputs()
    found = token_logprobs(logits, torch.full_like(tokens, 10), banned_ids=(10,), part=11)
    assert bool((found == -torch.inf).all())
    probs = token_logprobs(logits, tokens, banned_ids=(10,), part=11)
    (gradient,) = torch.autograd.grad(probs.sum(), logits)
    assert float(gradient[..., 10].abs().max()) == 0.0


def test_views_and_two_dimensions_are_taken_as_they_are() -> None:
    logits, tokens = inputs()
    whole = token_logprobs(logits, tokens, part=11)
    view = token_logprobs(logits[:, :-1], tokens[:, :-1], part=11)
    assert torch.equal(view, whole[:, :-1])
    assert torch.equal(token_logprobs(logits[1], tokens[1], part=11), whole[1])
    expanded = logits[0, 0].expand(5, -1)
    (gradient,) = torch.autograd.grad(token_logprobs(expanded, tokens[0], part=11).sum(), logits)
    assert torch.equal(gradient[1:], torch.zeros_like(gradient[1:]))


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_bits_repeat_and_depend_on_no_part(kind: torch.dtype) -> None:
    logits, tokens = inputs(kind)
    found = []
    for part in (*PARTS[:-1], *PARTS[:-1]):
        values = token_logprobs(logits, tokens, temperature=0.7, part=part)
        assert values.dtype == torch.float32
        (gradient,) = torch.autograd.grad(values.sum(), logits)
        assert gradient.dtype == kind
        found.append((values, gradient))
    assert all(torch.equal(values, found[0][0]) for values, _ in found)
    assert all(torch.equal(gradient, found[0][1]) for _, gradient in found)
    # below the bound the plain formula is used: the same values to the bit
    assert torch.equal(token_logprobs(logits, tokens, temperature=0.7), found[0][0])


class Largest(TorchDispatchMode):
    """The largest float32 tensor that any operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for one in found if isinstance(found, tuple | list) else [found]:
            if isinstance(one, torch.Tensor) and one.dtype == torch.float32:
                self.elements = max(self.elements, one.numel())
        return found


def test_no_whole_float32_matrix_is_held_in_either_pass() -> None:
    rows, steps, words = 4, 64, 5_000
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, steps, words, generator=generator).bfloat16().requires_grad_()
    tokens = torch.randint(0, words, (rows, steps), generator=generator)
    part = 20 * words
    with Largest() as chunked:
        token_logprobs(logits, tokens, part=part).sum().backward()
    with Largest() as whole:
        token_logprobs(logits, tokens).sum().backward()
    assert part // 2 < chunked.elements <= part
    assert whole.elements == rows * steps * words


def test_the_bound_is_that_of_a_real_vocabulary() -> None:
    # 2,048 tokens of a vocabulary of 152k are above it, the tiny models below
    assert 152_064 * 2_048 > PART > 16 * 64 * 2_048
