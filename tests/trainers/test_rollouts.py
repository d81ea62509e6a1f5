"""Sampling: seeds, batches, ends, placeholders."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trainers.loading import load_policy
from trainers.policy import Policy
from trainers.rollouts import Request, TransformersBackend, sample_seed


@pytest.fixture
def policy(text_model: Path, make_config) -> Policy:
    config = make_config(text_model, sampling={"temperature": 0.7})
    return load_policy(str(text_model), config)


def requests_for(policy: Policy, texts: list[str], *, samples: int = 5) -> list[Request]:
    return [
        Request(
            policy.encoder.encode(text), tuple(sample_seed(0, 0, text, i) for i in range(samples))
        )
        for text in texts
    ]


TEXTS = ["Find as few vertices as possible.", "Lines that cross do not meet; think longer here."]


def test_a_reply_does_not_depend_on_what_is_sampled_beside_it(policy: Policy) -> None:
    together = TransformersBackend(policy).generate(requests_for(policy, TEXTS), max_tokens=16)
    alone = [
        TransformersBackend(policy).generate(requests_for(policy, [text]), max_tokens=16)[0]
        for text in TEXTS
    ]
    in_turn = TransformersBackend(policy, rows_at_once=1).generate(
        requests_for(policy, TEXTS), max_tokens=16
    )
    for one, two, three in zip(together, alone, in_turn, strict=True):
        for a, b, c in zip(one, two, three, strict=True):
            assert torch.equal(a.ids, b.ids)
            assert torch.equal(a.ids, c.ids)


@pytest.mark.parametrize("bound", [1, 2, 3, 100])
def test_a_group_larger_than_the_bound_is_drawn_in_parts(policy: Policy, bound: int) -> None:
    rows: list[int] = []

    def note(module: object, args: object, given: dict) -> None:
        rows.append(len(given["input_ids"]))

    requests = requests_for(policy, TEXTS)
    hook = policy.model.register_forward_pre_hook(note, with_kwargs=True)
    found = TransformersBackend(policy, rows_at_once=bound).generate(requests, max_tokens=4)
    hook.remove()
    assert max(rows) <= bound
    seeds = [tuple(reply.seed for reply in replies) for replies in found]
    assert seeds == [request.seeds for request in requests]


def test_the_samplers_log_probabilities_are_the_trainers(policy: Policy) -> None:
    requests = requests_for(policy, TEXTS)
    found = TransformersBackend(policy).generate(requests, max_tokens=16)
    for request, replies in zip(requests, found, strict=True):
        with torch.no_grad():
            logprobs = policy.plain_logprobs(request.prompt, [reply.ids for reply in replies])
        for reply, line in zip(replies, logprobs, strict=True):
            assert torch.allclose(line[: len(reply.ids)], reply.logprobs, atol=1e-4)


def test_samples_of_a_prompt_differ_and_another_run_seed_gives_others(policy: Policy) -> None:
    (first,) = TransformersBackend(policy).generate(requests_for(policy, TEXTS[:1]), max_tokens=16)
    assert len({tuple(reply.ids.tolist()) for reply in first}) == len(first)
    seeds = {sample_seed(run, step, "p", i) for run in (0, 1) for step in (0, 1) for i in (0, 1)}
    assert len(seeds) == 8


def test_a_shared_seed_is_refused(policy: Policy) -> None:
    with pytest.raises(ValueError, match="must all differ"):
        Request(policy.encoder.encode("x"), (1, 1))


def test_any_of_several_end_tokens_ends_a_reply_and_only_the_limit_truncates(
    policy: Policy,
) -> None:
    many = replace(policy, end_ids=tuple(range(0, 406, 2)))
    (replies,) = TransformersBackend(many).generate(
        requests_for(many, TEXTS[:1], samples=40), max_tokens=4
    )
    for reply in replies:
        ended = int(reply.ids[-1]) % 2 == 0
        assert reply.finish_reason == ("stop" if ended else "length")
        assert all(int(token) % 2 for token in reply.ids[:-1])
        assert reply.truncated == (not ended)
    assert {reply.truncated for reply in replies} == {True, False}


def test_placeholders_are_never_sampled(policy: Policy) -> None:
    banned = tuple(range(400))
    allowed = replace(policy, banned_ids=banned)
    (replies,) = TransformersBackend(allowed).generate(
        requests_for(allowed, TEXTS[:1]), max_tokens=8
    )
    assert min(int(reply.ids.min()) for reply in replies) >= 400


def test_greedy_replies_are_all_the_most_likely_tokens(policy: Policy) -> None:
    request = requests_for(policy, TEXTS[:1], samples=2)
    (replies,) = TransformersBackend(policy).generate(request, max_tokens=8, greedy=True)
    assert torch.equal(replies[0].ids, replies[1].ids)
    with torch.no_grad():
        ids = policy.model.generate(
            request[0].prompt.ids_1L, do_sample=False, max_new_tokens=8, pad_token_id=0
        )
    assert ids[0, request[0].prompt.length :].tolist() == replies[0].ids.tolist()


def test_frequencies_follow_the_distribution(policy: Policy) -> None:
    prompt = policy.encoder.encode(TEXTS[0])
    request = Request(prompt, tuple(sample_seed(0, 0, "many", i) for i in range(4000)))
    (replies,) = TransformersBackend(policy, rows_at_once=4000).generate([request], max_tokens=1)
    with torch.no_grad():
        expected = policy.scaled(policy.prefix(prompt).last_logits_V).softmax(-1)
    counts = torch.bincount(torch.tensor([int(r.ids[0]) for r in replies]), minlength=len(expected))
    assert float((counts / 4000 - expected).abs().max()) < 0.03
