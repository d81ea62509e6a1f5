"""Replies from a file: a model whose every word is known, for tests and for foreign replies."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from evaluators.backends.base import Completion, ModelInfo, Reply, Request, complete, failure
from npbench.errors import InputError
from npbench.responses import json_lines

__all__ = ["ScriptedBackend"]

_REPLY_FIELDS = frozenset(entry.name for entry in fields(Reply)) - {"text", "picture_sizes"}
_KNOWN = _REPLY_FIELDS | {"id", "decode", "sample", "reply"}


class ScriptedBackend:
    """Answers with the lines of a responses file.

    A line holds ``id``, ``reply`` and optionally ``sample`` (0 where missing), ``decode``
    (``greedy`` or ``sampled``; both where missing) and the fields of a reply such as
    ``finish_reason``, ``reasoning`` or ``error``. A sample without a line fails.
    """

    name = "scripted"

    def __init__(self, path: Path) -> None:
        """The replies of a file, all of them read and checked.

        Raises:
            InputError: If the file cannot be read, or a line is wrong.
        """
        self._path = path
        self._replies: dict[tuple[str, str, int], Reply] = {}
        for number, line in json_lines(path):
            self._add(line, f"{path} line {number}")

    def _add(self, line: Any, where: str) -> None:
        if not isinstance(line, dict):
            raise InputError(f"{where} is no object")
        unknown = sorted(set(line) - _KNOWN)
        if unknown:
            known = ", ".join(sorted(_KNOWN))
            raise InputError(f"{where} has the unknown field {unknown[0]!r}; known: {known}")
        name, sample, decode = line.get("id"), line.get("sample", 0), line.get("decode")
        if not isinstance(name, str):
            raise InputError(f"{where}: id must be text, got {name!r:.60}")
        if type(sample) is not int or sample < 0:
            raise InputError(f"{where}: sample must be an integer from 0, got {sample!r:.60}")
        if decode not in (None, "greedy", "sampled"):
            raise InputError(f"{where}: decode must be greedy or sampled, got {decode!r:.60}")
        reply = _reply(line, where)
        for one in ("greedy", "sampled") if decode is None else (decode,):
            if (name, one, sample) in self._replies:
                raise InputError(f"{where} repeats {one} sample {sample} of {name}")
            self._replies[name, one, sample] = reply

    def describe(self) -> ModelInfo:
        """The file and its hash."""
        with self._path.open("rb") as file:
            return ModelInfo(str(self._path), hashlib.file_digest(file, "sha256").hexdigest())

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """The scripted replies in the order of the requests."""
        for request in requests:
            yield from complete(request, self._answer)

    def _answer(self, request: Request) -> Sequence[Reply]:
        missing = Reply(text=None, error=f"{self._path} has no line for this sample")
        keys = [(request.id, request.decode, sample) for sample in request.samples]
        return [self._replies.get(key, missing) for key in keys]


def _reply(line: Mapping[str, Any], where: str) -> Reply:
    given = {name: line[name] for name in _REPLY_FIELDS if name in line}
    text = line.get("reply")
    for name, value in {**given, "reply": text}.items():
        kind = int if name == "num_tokens" else str
        if value is not None and type(value) is not kind:
            raise InputError(f"{where}: {name} must be {kind.__name__}, got {value!r:.60}")
    if text is None and given.get("error") is None:
        raise InputError(f"{where} has neither a reply nor an error")
    if text is None:
        return failure(str(given["error"]))
    given.setdefault("finish_reason", "stop")
    return Reply(text=text, **given)
