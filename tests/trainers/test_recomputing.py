"""Gradient checkpointing: the same gradients, with a shared prefix and without, in less memory."""

import gc
import io
import weakref
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import nn

from npbench.errors import InputError
from trainers.loading import load_policy
from trainers.policy import Policy
from trainers.prefix import Shared
from trainers.recomputing import recompute_layers

LENGTHS = (5, 1, 7, 3)
MODELS = ["text_model", "idefics_model", "qwen_vl_model"]


@pytest.fixture(params=MODELS)
def pair(request: pytest.FixtureRequest, make_config) -> tuple[Policy, Policy]:
    """A policy without checkpointing and the same one with it."""
    folder: Path = request.getfixturevalue(request.param)
    one, two = (
        load_policy(
            str(folder), make_config(folder, optimizer={"gradient_checkpointing": recomputing})
        )
        for recomputing in (False, True)
    )
    return one, two


def replies() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(10, 300, (length,), generator=generator) for length in LENGTHS]


def picture() -> bytes:
    buffer = io.BytesIO()
    pixels = torch.randint(0, 256, (96, 96, 3), generator=torch.Generator().manual_seed(3))
    Image.fromarray(pixels.to(torch.uint8).numpy()).save(buffer, "PNG")
    return buffer.getvalue()


def shared_gradients(policy: Policy, *, hidden: bool = False) -> dict[str, torch.Tensor]:
    images = [picture()] if policy.encoder.reads_pictures else []
    prompt = policy.encoder.encode("Find as few vertices as possible.", images)
    shared = Shared(policy.prefix(prompt, hidden=hidden))
    for rows in ([0, 1], [2], [3]):
        found = policy.logprobs(shared.prefix, [replies()[row] for row in rows])
        loss = (found * torch.arange(1.0, 1.0 + found.shape[1])).sum()
        if shared.prefix.hidden_1LH is not None:
            loss = loss + shared.prefix.hidden_1LH.square().mean()
        # the learner asks for the gradient of each term before it goes on
        torch.autograd.grad(loss, found, retain_graph=True)
        loss.backward()
    shared.finish()
    return _taken(policy)


def plain_gradients(policy: Policy) -> dict[str, torch.Tensor]:
    images = [picture()] if policy.encoder.reads_pictures else []
    prompt = policy.encoder.encode("Find as few vertices as possible.", images)
    policy.plain_logprobs(prompt, replies()).sum().backward()
    return _taken(policy)


def _taken(policy: Policy) -> dict[str, torch.Tensor]:
    found = {n: p.grad.clone() for n, p in policy.model.named_parameters() if p.grad is not None}
    policy.model.zero_grad()
    return found


@pytest.mark.parametrize("hidden", [False, True])
def test_with_a_shared_prefix_gradients_are_the_same_to_the_bit(
    pair: tuple[Policy, Policy], hidden: bool
) -> None:
    one, two = (shared_gradients(policy, hidden=hidden) for policy in pair)
    assert set(one) == set(two) == {name for name, _ in pair[0].model.named_parameters()}
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_without_it_too(pair: tuple[Policy, Policy]) -> None:
    one, two = map(plain_gradients, pair)
    assert set(one) == set(two)
    assert all(torch.equal(one[name], two[name]) for name in one)


class Saved:
    """Bytes that automatic differentiation keeps for the backward pass."""

    def __init__(self) -> None:
        self.storages: dict[int, int] = {}

    def keep(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        self.storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    def __enter__(self) -> "Saved":
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self.keep, lambda one: one)
        self._hooks.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.__exit__(*error)


def test_far_less_is_kept_for_the_backward_pass(pair: tuple[Policy, Policy]) -> None:
    kept = []
    for policy in pair:
        images = [picture()] if policy.encoder.reads_pictures else []
        prompt = policy.encoder.encode("Find as few vertices as possible. " * 8, images)
        prefix = Shared(policy.prefix(prompt)).prefix
        with Saved() as saved:
            policy.logprobs(prefix, replies() * 4).sum()
        parameters = {p.untyped_storage().data_ptr() for p in policy.model.parameters()}
        kept.append(sum(n for at, n in saved.storages.items() if at not in parameters))
    assert kept[1] < 0.5 * kept[0]


def test_what_is_never_used_is_freed(text_model: Path, make_config) -> None:
    policy = load_policy(
        str(text_model), make_config(text_model, optimizer={"gradient_checkpointing": True})
    )
    prefix = policy.prefix(policy.encoder.encode("Find as few vertices as possible."))
    found = policy.logprobs(prefix, replies())
    watched = [weakref.ref(tensor) for tensor in (*prefix.tensors(), found)]
    del prefix, found
    gc.collect()
    assert [one() for one in watched] == [None] * len(watched)


def test_a_model_without_layers_that_can_be_recomputed_is_refused() -> None:
    with pytest.raises(InputError, match="gradient_checkpointing must be false: Linear has no"):
        recompute_layers(nn.Linear(2, 2))
