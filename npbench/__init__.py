"""MM-NP-Bench: NP-hard optimisation problems as pictures and text, with verdicts to trust."""

from npbench.errors import GenerationError, InputError, NoSolutionError, ParseError, PictureError
from npbench.splits import LazySplit, Row, load
from npbench.task import Budget, Level, Reference, Sense, Status, Task, Verdict, ratio
from npbench.tasks import TASKS, get_task

__all__ = [
    "TASKS",
    "Budget",
    "GenerationError",
    "InputError",
    "LazySplit",
    "Level",
    "NoSolutionError",
    "ParseError",
    "PictureError",
    "Reference",
    "Row",
    "Sense",
    "Status",
    "Task",
    "Verdict",
    "get_task",
    "load",
    "ratio",
]
