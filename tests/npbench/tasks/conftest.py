"""Fixtures for the tests of the tasks: the oracles and a pool of small instances per task."""

import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest

from npbench.task import Budget
from npbench.tasks import TASKS


def _module(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def oracles():
    return _module("oracles")


@pytest.fixture(scope="session")
def drawn(oracles):
    """Per task: hand-made instances, random ones and draws of every nano family, all as JSON."""
    instances = _module("instances")
    drawn = {}
    for name, task in TASKS.items():
        rng = random.Random(f"pool of {name}")
        pool = [*instances.hand_made(name), *(instances.scattered(name, rng) for _ in range(30))]
        generator = np.random.default_rng(rng.randrange(10**9))
        sizes = task.levels["nano"].params
        for family in task.families.values():
            count = 20 // len(task.families) + 1
            pool.extend(task.encode(family(sizes, generator)) for _ in range(count))
        drawn[name] = [(data, oracles.optimum(name, data)) for data in pool]
    return drawn


@pytest.fixture(scope="session")
def hopeless(drawn):
    """Per task: the instances without any feasible answer."""
    return {name: [data for data, best in pool if best is None] for name, pool in drawn.items()}


@pytest.fixture(scope="session")
def pools(drawn):
    """Per task: (instance as JSON, optimum) of the instances that have a feasible answer."""
    return {name: [row for row in pool if row[1] is not None] for name, pool in drawn.items()}


@pytest.fixture(scope="session")
def references(pools):
    """Per task: the references of the pool, in its order."""
    return {
        name: [task.reference(task.decode(data), Budget()) for data, _ in pools[name]]
        for name, task in TASKS.items()
    }
