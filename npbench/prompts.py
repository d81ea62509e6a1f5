"""How a question is asked: the sections of both public benchmarks, the answer on the last line."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

__all__ = ["Modality", "Wording", "brief_prompt", "edge_text", "full_prompt", "noted"]


class Modality(StrEnum):
    """How an instance is shown."""

    IMAGE = "image"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The words of one task."""

    title: str
    """What the solver is an expert for, such as "the maximum clique problem"."""
    rules: str
    """The task: what is given, what is feasible, what is optimised."""
    picture: str
    """What the picture shows."""
    output: str
    """The form of the answer."""
    brief: str
    """The task and the answer's form in two or three short sentences."""
    example: dict[str, Any]
    """A small instance in its JSON form."""
    example_answer: list[Any]
    """A feasible answer to it."""


def noted(wording: Wording, note: str) -> Wording:
    """The words with a sentence more on what the picture shows, such as its angle."""
    return replace(wording, picture=f"{wording.picture} {note}") if note else wording


def full_prompt(wording: Wording, modality: Modality, *, data: str, example: str) -> str:
    """The prompt in Markdown sections; a picture's prompt holds no instance data.

    Args:
        wording: The task's words.
        modality: Whether the instance is in a picture or in the text.
        data: The instance as text.
        example: The wording's example instance as text.
    """
    answer = json.dumps(wording.example_answer)
    expert = f"You are an expert in combinatorial optimisation, here for {wording.title}."
    sections = [("Introduction", expert), ("Task", wording.rules)]
    output = wording.output
    if modality is Modality.TEXT:
        worked = f"Input:\n{example}\n\nA valid last line:\nAnswer: {answer}"
        sections += [("Question", data), ("Example", worked)]
    else:
        sections.append(("Picture", wording.picture))
        output = f"{output} For a small instance it could be {answer}."
    sections += [
        ("Output format", output),
        (
            "Instructions",
            "Think step by step. Stay within your token limit and do not pad the reply.",
        ),
        (
            "Response format",
            "End your reply with one line of this form and write nothing after it:\n"
            "Answer: YOUR ANSWER",
        ),
    ]
    return "\n\n".join(f"## {title}\n{body}" for title, body in sections)


def brief_prompt(wording: Wording, modality: Modality, *, data: str) -> str:
    """The prompt of the nano level: at most 120 words beside the instance's data."""
    shown = data if modality is Modality.TEXT else wording.picture
    answer = json.dumps(wording.example_answer)
    last = f"Think briefly, then end with one line of the form\nAnswer: {answer}"
    return f"{wording.brief}\n{shown}\n{last}"


def edge_text(num_vertices: int, edges: Iterable[tuple[int, ...]]) -> str:
    """A graph as text: ``0-1`` for an edge, ``0-1:7`` for one of weight 7."""
    rows = [f"{edge[0]}-{edge[1]}" + "".join(f":{weight}" for weight in edge[2:]) for edge in edges]
    weighted = " (as u-v:weight)" if rows and ":" in rows[0] else ""
    return f"Vertices: 0 to {num_vertices - 1}\nEdges{weighted}: {', '.join(rows)}"
