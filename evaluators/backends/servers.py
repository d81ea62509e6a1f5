"""Servers with the OpenAI chat interface: many requests under way, faults retried or recorded.

Each sample is a request of its own (``n`` is 1) with its own seed, so single samples can be made
again. All samples of a question go to one server, which has then seen its picture.
"""

import asyncio
import base64
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from typing import Any

from evaluators.backends.base import (
    Completion,
    ModelInfo,
    Reply,
    Request,
    Sampling,
    failure,
)
from evaluators.backends.pictures import as_png
from npbench.errors import InputError, unknown_name
from npbench.rng import digest

__all__ = ["ServerBackend"]

ATTEMPTS = 6
"""Tries of a request that meets a busy, broken or unreachable server."""
_LONGEST_WAIT = 120.0
_OPTIONAL = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "seed": None}
"""Fields that a server may not know, with the value under which they can be left out."""


@dataclass(slots=True)
class _Server:
    """A server and its requests under way."""

    url: str
    busy: int = 0


@dataclass(frozen=True, slots=True)
class _Job:
    """One sample to ask for."""

    request: Request
    sample: int
    body: dict[str, Any]
    sizes: tuple[tuple[int, int], ...] | None
    server: _Server


@dataclass(slots=True)
class _Pause:
    """Seconds to wait between the tries of a request."""

    rng: random.Random
    first: float
    tries: int = 0
    asked: float | None = field(default=None)

    def next(self) -> float:
        """Twice as long each time, spread by chance; at least what the server asked for."""
        self.tries += 1
        wait: float = self.first * 2 ** (self.tries - 1) * (0.5 + self.rng.random())
        return min(max(wait, self.asked or 0.0), _LONGEST_WAIT)


class ServerBackend:
    """A model behind one or several servers."""

    name = "openai"

    def __init__(
        self,
        model: str,
        sampling: Sampling,
        base_urls: tuple[str, ...],
        *,
        api_key: str | None = None,
        concurrency: int = 32,
        timeout: float = 600.0,
        first_wait: float = 1.0,
        omit: tuple[str, ...] = (),
        min_pixels: int | None = None,
        max_pixels: int | None = None,
    ) -> None:
        """Reach every server and find the model on it.

        Args:
            model: Its name on the servers.
            sampling: How replies are drawn; every field is sent.
            base_urls: Such as ``http://node1:8000/v1``.
            api_key: Sent as a bearer token.
            concurrency: Requests under way at each server.
            timeout: Seconds that one request may take.
            first_wait: Seconds before the first retry, doubled each time.
            omit: Fields that the servers do not know: top_k, min_p, repetition_penalty, seed.
            min_pixels: Pictures below this area are enlarged.
            max_pixels: Pictures above this area are reduced.

        Raises:
            InputError: If a server cannot be reached, refuses the key or lacks the model.
        """
        if concurrency < 1 or timeout <= 0:
            raise InputError(
                f"concurrency and timeout must be positive, got {concurrency} and {timeout:g}"
            )
        for name in omit:
            if name not in _OPTIONAL:
                raise unknown_name("field to omit", name, _OPTIONAL)
            if name != "seed" and getattr(sampling, name) != _OPTIONAL[name]:
                raise InputError(f"{name}={getattr(sampling, name):g} cannot be omitted")
        self._model = model
        self._sampling = sampling
        self._concurrency = concurrency
        self._timeout = timeout
        self._first_wait = first_wait
        self._omit = omit
        self._limits = {"min_pixels": min_pixels, "max_pixels": max_pixels}
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._servers = [_Server(url.rstrip("/")) for url in base_urls]
        self._httpx = _library()
        cards = [self._card(server.url) for server in self._servers]
        self._fingerprint = digest(model, cards[0])[:32]

    def describe(self) -> ModelInfo:
        """The model's name and what the first server says of it."""
        return ModelInfo(
            self._model,
            self._fingerprint,
            details={"omitted_fields": " ".join(sorted(self._omit)) or None},
            versions={"httpx2": version("httpx2")},
        )

    def _card(self, url: str) -> dict[str, Any]:
        """What a server says of the model; empty where it does not list its models."""
        try:
            answer = self._httpx.get(f"{url}/models", headers=self._headers, timeout=30.0)
        except (self._httpx.HTTPError, self._httpx.InvalidURL) as error:
            raise InputError(f"server {url} cannot be reached: {_words(error)}") from None
        if answer.status_code in (401, 403):
            raise InputError(
                f"server {url} refuses access ({answer.status_code}): set OPENAI_API_KEY"
            )
        try:
            listed = {str(card["id"]): dict(card) for card in answer.json()["data"]}
        except (ValueError, KeyError, TypeError):
            return {}
        if listed and self._model not in listed:
            raise unknown_name(f"model at {url}", self._model, listed)
        card = listed.get(self._model, {})
        return {name: card[name] for name in ("id", "root", "max_model_len") if name in card}

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """The completions as they come in; new requests are drawn as others finish."""
        room = self._concurrency * len(self._servers)
        jobs = self._jobs(requests)
        pending: set[asyncio.Task[Completion]] = set()
        with asyncio.Runner() as runner:
            client = self._httpx.AsyncClient(
                headers=self._headers,
                timeout=self._timeout,
                limits=self._httpx.Limits(max_connections=room, max_keepalive_connections=room),
            )
            loop = runner.get_loop()
            try:
                while True:
                    for job in islice(jobs, room - len(pending)):
                        if isinstance(job, Completion):
                            yield job
                        else:
                            job.server.busy += 1
                            pending.add(loop.create_task(self._complete(client, job)))
                    if not pending:
                        break
                    done, pending = runner.run(_first_of(pending))
                    for task in done:
                        yield task.result()
            finally:
                runner.run(_closed(client, pending))

    def _jobs(self, requests: Iterable[Request]) -> Iterator[_Job | Completion]:
        """One job a sample; a question that cannot be put into words gives failures."""
        home: tuple[str, _Server] | None = None
        for request in requests:
            if home is None or home[0] != request.id:
                home = (request.id, min(self._servers, key=lambda server: server.busy))
            try:
                messages, sizes = self._messages(request)
            except Exception as error:  # noqa: BLE001 -- the boundary at which failures become records
                for sample in request.samples:
                    yield Completion(request, sample, failure(error))
                continue
            for sample, seed in zip(request.samples, request.seeds, strict=True):
                body = self._body(messages, seed=None if request.decode == "greedy" else seed)
                yield _Job(request, sample, body, sizes, home[1])

    def _messages(
        self, request: Request
    ) -> tuple[list[dict[str, Any]], tuple[tuple[int, int], ...] | None]:
        content: list[dict[str, Any]] = []
        sizes = []
        for part in request.prompt.parts:
            if isinstance(part, str):
                content.append({"type": "text", "text": part})
                continue
            png, size = as_png(part, **self._limits)
            url = "data:image/png;base64," + base64.b64encode(png).decode()
            content.append({"type": "image_url", "image_url": {"url": url}})
            sizes.append(size)
        system = request.prompt.system
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if system is not None:
            messages.insert(0, {"role": "system", "content": system})
        return messages, tuple(sizes) or None

    def _body(self, messages: list[dict[str, Any]], *, seed: int | None) -> dict[str, Any]:
        """A request with every sampling field, so that no server fills one in."""
        drawn = self._sampling
        greedy = seed is None
        body = {
            "model": self._model,
            "messages": messages,
            "n": 1,
            "stream": False,
            "seed": seed,
            "temperature": 0.0 if greedy else drawn.temperature,
            "top_p": 1.0 if greedy else drawn.top_p,
            # Servers agree on -1, and not on 0, for no limit.
            "top_k": -1 if greedy or not drawn.top_k else drawn.top_k,
            "min_p": 0.0 if greedy else drawn.min_p,
            "repetition_penalty": 1.0 if greedy else drawn.repetition_penalty,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "max_tokens": drawn.max_tokens,
            "stop": list(drawn.stop) or None,
        }
        return {name: value for name, value in body.items() if name not in self._omit}

    async def _complete(self, client: Any, job: _Job) -> Completion:
        seed = job.body.get("seed") or 0
        pause = _Pause(random.Random(seed), self._first_wait)
        server = job.server
        last = ""
        try:
            while True:
                reply, last, pause.asked = await self._ask(client, server, job)
                if reply is not None:
                    return Completion(job.request, job.sample, reply)
                if pause.tries + 1 >= ATTEMPTS:
                    reason = f"{server.url} after {ATTEMPTS} tries: {last}"
                    return Completion(job.request, job.sample, failure(reason))
                await asyncio.sleep(pause.next())
                server.busy -= 1
                server = self._other(server)
                server.busy += 1
        finally:
            server.busy -= 1

    def _other(self, server: _Server) -> _Server:
        """The least busy of the other servers, the same one where it is alone."""
        others = [other for other in self._servers if other is not server] or [server]
        return min(others, key=lambda other: other.busy)

    async def _ask(
        self, client: Any, server: _Server, job: _Job
    ) -> tuple[Reply | None, str, float | None]:
        """A reply or a final failure; or None, why to try again, and after how many seconds."""
        try:
            answer = await client.post(f"{server.url}/chat/completions", json=job.body)
        except self._httpx.TransportError as error:
            return None, _words(error), None
        if answer.status_code == 429 or answer.status_code >= 500:
            return None, f"status {answer.status_code}", _seconds(answer.headers)
        if answer.status_code >= 400:
            reason = f"status {answer.status_code}: {_stated(answer)}"
            return failure(reason), reason, None
        try:
            return _reply(answer.json(), job.sizes), "", None
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            return None, f"an unreadable answer ({_words(error)})", None


def _library() -> Any:
    try:
        import httpx2
    except ImportError:
        raise InputError("the openai backend needs: pip install 'npbench[eval]' (httpx2)") from None
    return httpx2


async def _first_of(
    pending: set[asyncio.Task[Completion]],
) -> tuple[set[asyncio.Task[Completion]], set[asyncio.Task[Completion]]]:
    return await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)


async def _closed(client: Any, pending: set[asyncio.Task[Completion]]) -> None:
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    await client.aclose()


def _reply(answer: dict[str, Any], sizes: tuple[tuple[int, int], ...] | None) -> Reply:
    choice = answer["choices"][0]
    message = choice["message"]
    content = message["content"]
    reasoning = message.get("reasoning") or message.get("reasoning_content")
    if not isinstance(content, str | None) or not isinstance(reasoning, str | None):
        raise TypeError("content and reasoning are text")
    stopped = choice.get("stop_reason")
    tokens = (answer.get("usage") or {}).get("completion_tokens")
    return Reply(
        text=content or "",
        reasoning=reasoning,
        finish_reason=str(choice["finish_reason"]),
        stop_reason=stopped if isinstance(stopped, str) else None,
        num_tokens=tokens if isinstance(tokens, int) else None,
        picture_sizes=sizes,
    )


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__


def _stated(answer: Any) -> str:
    """What the server says of an error."""
    try:
        data = answer.json()
        stated = data.get("error", data)
        text = stated.get("message", stated) if isinstance(stated, dict) else stated
    except (ValueError, AttributeError):
        text = answer.text
    return " ".join(str(text).split())[:300]


def _seconds(headers: Any) -> float | None:
    try:
        return max(0.0, float(headers.get("retry-after")))
    except (TypeError, ValueError):
        return None
