import doctest
import pkgutil
from importlib import import_module

import pytest

import trainers.losses

MODULES = [
    "trainers.named_sets",
    "trainers.segments",
    "trainers.sweeps",
    *(
        f"trainers.losses.{module.name}"
        for module in pkgutil.iter_modules(trainers.losses.__path__)
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0


def test_there_are_examples() -> None:
    assert sum(doctest.testmod(import_module(name)).attempted for name in MODULES) >= 15
