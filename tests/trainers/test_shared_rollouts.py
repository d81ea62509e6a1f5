"""Several processes draw together: each for itself, or the first for all; a failure stops all."""

import json
from pathlib import Path

from trainers.shared_rollouts import FirstDraws, SharedBackend, draw_groups

FAILURES = """
import json, sys
from trainers.config import load_config
from trainers.distributed import process_group, rank
from trainers.shared_rollouts import draw_groups
from trainers.vllm_rollouts import EngineError

def collect_own(questions):
    if rank() == 1:
        raise EngineError("the engine died")
    return []

with process_group(load_config(json.loads(sys.argv[1])[0][0])):
    try:
        draw_groups([], collect_own)
    except EngineError as error:
        print(type(error).__name__, error)
"""
"""The second process's engine dies."""

EARLY = """
import json, sys
from npbench.errors import InputError
from trainers.config import load_config
from trainers.distributed import first_process, process_group, rank
from trainers.shared_rollouts import FirstDraws, SharedBackend, draw_groups
from trainers.vllm_rollouts import EngineError

class Scripted:
    def generate(self, requests, *, max_tokens, greedy=False):
        return [("reply",) for request in requests]

class Dying:
    def generate(self, requests, *, max_tokens, greedy=False):
        if rank() == 1:
            raise EngineError("the engine died")
        return [("reply",) for request in requests]

served = FirstDraws(Scripted() if first_process() else None)

def draw(failing, when):
    def collect_own(questions):
        if rank() == failing and when == "before":
            raise InputError("a question is wrong")
        drawn = served.generate(list(questions), max_tokens=3)
        if rank() == failing and when == "after":
            raise InputError("a reward is wrong")
        return list(drawn)
    return lambda: draw_groups(["a", "b"], collect_own)

with process_group(load_config(json.loads(sys.argv[1])[0][0])):
    for work in (
        draw(0, "before"), draw(1, "before"), draw(0, "after"), draw(1, "after"),
        lambda: SharedBackend(Dying()).generate(["a", "b"], max_tokens=3),
        lambda: SharedBackend(served).generate(["a", "b"], max_tokens=3),
    ):
        try:
            print(work())
        except InputError as error:
            print(type(error).__name__, error)
"""
"""One of two processes fails before or after it draws from a server, or by its own engine."""

DRAWS = """
import json, sys
import torch
from trainers.config import load_config
from trainers.distributed import first_process, process_group, rank
from trainers.encoding import Prompt
from trainers.rollouts import Reply, Request
from trainers.shared_rollouts import FirstDraws, SharedBackend
from trainers.vllm_rollouts import EngineError

class Echo:
    calls = 0
    def generate(self, requests, *, max_tokens, greedy=False):
        self.calls += 1
        if max_tokens == 99:
            raise EngineError("no reply")
        return [
            tuple(
                Reply(torch.tensor([int(r.prompt.pictures["pixels"].sum()), seed, max_tokens]),
                      torch.tensor([float(greedy)]), 0.0, "stop", seed)
                for seed in r.seeds)
            for r in requests
        ]

def request(place, seeds):
    ids = torch.zeros(1, place + 1, dtype=torch.long)
    return Request(Prompt(ids, {"pixels": torch.full((2, 3), float(place))}), seeds)

def seen(drawn):
    return [[(reply.ids.tolist(), reply.seed) for reply in group] for group in drawn]

with process_group(load_config(json.loads(sys.argv[1])[0][0])):
    echo = Echo() if first_process() else None
    backend = FirstDraws(echo)
    # the second process asks for more prompts than the first, and for other numbers of replies
    mine = [request(1, (10, 11))] if first_process() else [request(2, (20,)), request(3, ())]
    found = {"mine": seen(backend.generate(mine, max_tokens=7, greedy=True))}
    found["none"] = seen(backend.generate([] if first_process() else mine, max_tokens=8))
    requests = [request(place, (place,)) for place in range(3)]
    found["shared"] = seen(SharedBackend(backend).generate(requests, max_tokens=9))
    try:
        backend.generate(mine, max_tokens=99)
    except EngineError as error:
        found["error"] = str(error)
    found["calls"] = echo.calls if echo else None
    print(json.dumps(found))
"""
"""The first process draws for both."""


def test_an_engine_that_dies_in_one_process_stops_all_at_the_same_place(
    text_model: Path, make_config, two_processes
) -> None:
    said = two_processes([(make_config(text_model), Path("unused"), None)], worker=FAILURES)
    assert said == [
        "EngineError process 1 of 2 cannot go on: the engine died",
        "EngineError the engine died",
    ]


def test_a_failure_on_one_process_is_the_same_line_on_all_wherever_it_happens(
    text_model: Path, make_config, two_processes
) -> None:
    said = two_processes([(make_config(text_model), Path("unused"), None)], worker=EARLY)
    mine = [
        "InputError a question is wrong",
        "InputError a question is wrong",
        "InputError a reward is wrong",
        "InputError a reward is wrong",
        "EngineError the engine died",
    ]
    failing = (0, 1, 0, 1, 1)
    for rank, lines in enumerate(line.splitlines() for line in said):
        assert len(lines) == 6
        for line, own, number in zip(lines, mine, failing, strict=False):
            kind, text = own.split(" ", 1)
            other = f"{kind} process {number} of 2 cannot go on: {text}"
            assert line == (own if number == rank else other)
        # what failed before does not disturb what comes after
        assert lines[5] == "[('reply',), ('reply',)]"


def test_the_first_process_draws_what_all_ask_for_and_each_gets_its_own(
    text_model: Path, make_config, two_processes
) -> None:
    said = two_processes([(make_config(text_model), Path("unused"), None)], worker=DRAWS)
    first, second = map(json.loads, said)
    # pixels of a prompt summed, seed, limit
    assert first["mine"] == [[[[6, 10, 7], 10], [[6, 11, 7], 11]]]
    assert second["mine"] == [[[[12, 20, 7], 20]], []]
    assert (first["none"], second["none"]) == ([], [[[[12, 20, 8], 20]], []])
    everything = [[[[6 * place, place, 9], place]] for place in range(3)]
    assert first["shared"] == second["shared"] == everything
    assert first["error"] == "no reply"
    assert second["error"] == "process 0 of 2 cannot go on: no reply"
    # three draws and the failed one, each for both processes at once
    assert (first["calls"], second["calls"]) == (4, None)


def test_one_process_draws_and_fails_without_the_others() -> None:
    class Scripted:
        def generate(self, requests, *, max_tokens, greedy=False):
            return [(request, max_tokens, greedy) for request in requests]

    for backend in (FirstDraws(Scripted()), SharedBackend(Scripted())):
        assert backend.generate([1, 2], max_tokens=3) == [(1, 3, False), (2, 3, False)]
    assert draw_groups(["a", "b"], lambda some: [f"group {one}" for one in some]) == [
        "group a",
        "group b",
    ]
