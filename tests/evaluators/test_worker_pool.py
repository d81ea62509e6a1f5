import os
import signal
import sys
import threading
import time

import pytest

from evaluators.worker_pool import AlgebraPool

READY = "import json, sys, time, os\nprint(json.dumps({'id': 0, 'verdict': 'ready'}), flush=True)\n"


def pool_of(program, **settings):
    return AlgebraPool(command=(sys.executable, "-c", READY + program), **settings)


def test_expressions_and_equations_are_compared(pool):
    assert pool.equal("(x+1)^2", "x^2+2x+1").verdict == "equal"
    assert pool.equal(r"\sqrt{x^2}", "x").verdict == "different"
    assert pool.equal("x + y = 5", "2x + 2y = 10").verdict == "equal"
    assert pool.equal("x + y = 5", "x + y = 6").verdict == "different"
    assert pool.equal(r"\sin^2 x + \cos^2 x", "1").verdict == "equal"
    assert pool.equal("10^{-30}", r"2 \cdot 10^{-30}").verdict == "different"
    assert pool.equal(r"\pi", "3.141592653589793").verdict == "different"
    assert pool.equal("3 + 4i", "4i + 3").verdict == "equal"


def test_what_cannot_be_parsed_is_named_by_side(pool):
    assert pool.equal("2x+)", "2x").verdict == "gold_unparsed"
    assert pool.equal("2x", "2x+)").verdict == "answer_unparsed"


def test_a_value_is_a_real_number_or_nothing(pool):
    assert pool.value(r"\sqrt{2}").value == pytest.approx(2**0.5, abs=1e-15)
    assert pool.value("x").verdict == "answer_unparsed"
    assert pool.value("i").verdict == "answer_unparsed"


def test_a_question_without_end_is_cut_at_the_deadline_and_the_next_one_is_served():
    pool = AlgebraPool(deadline=60.0)
    assert pool.equal("1", "2").verdict == "different"
    before = pool.processes()
    pool.deadline = 1.0
    started = time.monotonic()
    assert pool.equal("9^{9^{9^{9}}}", "1").verdict == "timeout"
    assert time.monotonic() - started < 30
    pool.deadline = 60.0
    assert pool.equal("1", "2").verdict == "different"
    assert pool.processes() != before
    pool.close()


def test_memory_is_bounded_and_the_caller_survives():
    program = (
        "import resource\n"
        "limit = int(os.environ['NPBENCH_WORKER_MEMORY'])\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "for line in sys.stdin:\n"
        "    hog = bytearray(1 << 30)\n"
    )
    pool = pool_of(program, memory=300 << 20)
    answer = pool.equal("1", "2")
    assert (answer.verdict, answer.reason) == ("error", "the worker ended without a verdict")
    pool.close()


def test_the_worker_limits_its_own_address_space():
    pool = AlgebraPool(memory=700 << 20, deadline=60.0)
    assert pool.equal("1", "2").verdict == "different"
    (process,) = pool.processes()
    with open(f"/proc/{process}/limits", encoding="utf-8") as file:  # noqa: PTH123
        limits = {line[:17].strip(): line[26:].split()[0] for line in file}
    assert limits["Max address space"] == str(700 << 20)
    assert limits["Max cpu time"] != "unlimited"
    pool.close()


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("sys.exit(3)", "error"),
        ("sys.stdin.readline(); sys.exit(3)", "error"),
        ("sys.stdin.readline(); print('garbage', flush=True); time.sleep(9)", "error"),
        ("sys.stdin.readline(); print('[1]', flush=True); time.sleep(9)", "error"),
        ('sys.stdin.readline(); print(\'{"id": 7, "verdict": "equal"}\', flush=True)', "error"),
        ('sys.stdin.readline(); print(\'{"id": 1, "verdict": "right"}\', flush=True)', "error"),
        ("sys.stdin.readline(); sys.stdout.write('x' * 10**6); sys.stdout.flush()", "error"),
        ("sys.stdin.readline(); sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()", "error"),
        ("sys.stdin.readline(); time.sleep(60)", "timeout"),
    ],
)
def test_the_caller_survives_a_worker_that_misbehaves(program, verdict):
    pool = pool_of(program, deadline=1.5 if verdict == "timeout" else 60.0)
    for _ in range(2):
        assert pool.equal("1", "1").verdict == verdict
    assert pool.processes() == ()
    pool.close()


def test_a_worker_that_was_killed_from_outside_is_replaced():
    pool = AlgebraPool(deadline=60.0)
    pool.equal("1", "2")
    (process,) = pool.processes()
    os.kill(process, signal.SIGKILL)
    time.sleep(0.2)
    assert pool.equal("1", "2").verdict == "different"
    pool.close()


def test_a_missing_library_is_an_error_with_a_hint():
    program = 'print(\'{"id": 0, "verdict": "missing", "reason": "no sympy"}\', flush=True)'
    pool = AlgebraPool(command=(sys.executable, "-c", program))
    with pytest.raises(ImportError, match=r"npbench\[eval\]"):
        pool.equal("1", "2")
    broken = AlgebraPool(command=(sys.executable, "-c", "pass"))
    with pytest.raises(RuntimeError, match="did not start"):
        broken.equal("1", "2")


def test_it_works_off_the_main_thread_and_from_several_threads(pool):
    verdicts = []

    def ask(number):
        verdicts.append(pool.equal(f"x + {number}", f"{number} + x").verdict)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == ["equal"] * 6


def test_an_alarm_of_the_caller_still_rings(pool):
    rung = []
    previous = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        pool.equal("x", "y")
        time.sleep(0.5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert rung == [True]


@pytest.mark.parametrize("settings", [{"workers": 0}, {"deadline": 0}, {"memory": -1}])
def test_bounds_must_be_positive(settings):
    with pytest.raises(ValueError, match="must be positive"):
        AlgebraPool(**settings)
