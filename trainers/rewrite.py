"""Rewording questions with a model behind an OpenAI-compatible server, checked before it is kept.

Standard library only: blocking requests in a pool of threads.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from npbench.errors import InputError

__all__ = ["ChatServer", "Rewritten", "fault_of", "reword", "reword_all"]

INSTRUCTION = (
    "Reword the question between the markers so that it asks for exactly the same thing in other "
    "words. Keep every number, name, formula, option and placeholder such as <image> as it is. Do "
    "not answer it. Reply with the reworded question alone.\n\n[question]\n{question}\n[/question]"
)
"""Our own wording: the paper's rewriting prompt is not published."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_THINKING = re.compile(r"\A.*</think>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServer:
    """Where and how to ask."""

    base_url: str
    """Up to and without ``/chat/completions``, such as ``http://localhost:8000/v1``."""
    model: str
    api_key: str = ""
    temperature: float = 0.7
    max_tokens: int = 1024
    timeout: float = 120.0
    """Seconds for one request."""
    pause: float = 1.0
    """Seconds before the second try of a request; doubled each time."""
    tries: int = 4
    """Requests for one reply where the server is busy or away."""

    def __post_init__(self) -> None:
        """Refuses what is no HTTP address."""
        if not self.base_url.startswith(("http://", "https://")):
            raise InputError(f"base-url must start with http:// or https://, got {self.base_url!r}")

    def ask(self, prompt: str, *, seed: int) -> str:
        """The reply to one user message.

        Raises:
            InputError: If the server refuses the request, does not answer in all tries, or answers
                in another form.
        """
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": seed,
        }
        headers = {"Content-Type": "application/json"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        url = f"{self.base_url.rstrip('/')}/chat/completions"
        problem = ""
        for attempt in range(self.tries):
            if attempt:
                time.sleep(self.pause * 2 ** (attempt - 1))
            request = Request(url, json.dumps(body).encode(), headers)
            try:
                with urlopen(request, timeout=self.timeout) as response:
                    return _content(json.loads(response.read()))
            except HTTPError as error:
                problem = f"HTTP {error.code}"
                error.close()
                if error.code != 429 and error.code < 500:
                    break
            except (URLError, TimeoutError, HTTPException, ConnectionError) as error:
                problem = str(error)
            except (KeyError, IndexError, TypeError, ValueError) as error:
                problem = f"not a chat completion ({type(error).__name__}: {error})"
                break
        raise InputError(f"{url} must answer a chat completion, got: {problem}")


def _content(answer: Any) -> str:
    """The text of the first choice; '' where it was cut off, which no rewording survives."""
    choice = answer["choices"][0]
    if choice.get("finish_reason") == "length":
        return ""
    content = choice["message"]["content"]
    if not isinstance(content, str):
        raise TypeError(f"content is {type(content).__name__}")
    return content


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The variants of one question."""

    key: str
    variants: tuple[str, ...] | None
    """The original first; None where the model gave too few acceptable ones."""
    asked: int
    """Replies that were asked for."""
    faults: tuple[str, ...]
    """Why replies were refused."""


def fault_of(original: str, candidate: str, known: Iterable[str]) -> str | None:
    """Why a rewording cannot be kept, or None.

    It must hold the same numbers, equally often, and the same picture placeholders; must differ
    from those there are; and must be neither empty nor more than four times as long.
    """
    if not candidate.strip():
        return "empty"
    folded = " ".join(candidate.split()).lower()
    if folded in {" ".join(text.split()).lower() for text in known}:
        return "repeats a variant"
    if len(candidate) > 4 * len(original) + 200:
        return "too long"
    if candidate.count("<image>") != original.count("<image>"):
        return "changes the placeholders of pictures"
    if Counter(_NUMBER.findall(candidate)) != Counter(_NUMBER.findall(original)):
        return "changes the numbers"
    return None


def reword(
    ask: Callable[[str, int], str],
    key: str,
    question: str,
    *,
    variants: int,
    seed: int,
    attempts: int,
) -> Rewritten:
    """The question and ``variants - 1`` acceptable rewordings of it.

    Args:
        ask: Reply to (prompt, seed).
        key: Identifies the question in the result.
        question: The original.
        variants: M, the original included.
        seed: Seed of the first reply; each further one adds 1.
        attempts: Replies to ask for, at most, for each rewording.
    """
    kept, faults = [question], []
    asked = 0
    prompt = INSTRUCTION.format(question=question)
    while len(kept) < variants and asked < attempts * (variants - 1):
        candidate = _THINKING.sub("", ask(prompt, seed + asked)).strip()
        asked += 1
        fault = fault_of(question, candidate, kept)
        if fault is None:
            kept.append(candidate)
        else:
            faults.append(fault)
    whole = tuple(kept) if len(kept) == variants else None
    return Rewritten(key, whole, asked, tuple(faults))


def reword_all(
    ask: Callable[[str, int], str],
    questions: Iterable[tuple[str, str, int]],
    *,
    variants: int,
    attempts: int = 3,
    workers: int = 8,
) -> Iterator[Rewritten]:
    """Rewords (key, question, seed) triples with several requests under way, as they finish."""
    with ThreadPoolExecutor(max_workers=workers) as pool:
        running = [
            pool.submit(reword, ask, key, text, variants=variants, seed=seed, attempts=attempts)
            for key, text, seed in questions
        ]
        try:
            for future in as_completed(running):
                yield future.result()
        finally:
            for future in running:
                future.cancel()
