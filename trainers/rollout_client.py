"""The trainer's way to a rollout server: answers, or one line that says why there is none."""

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from npbench.errors import InputError
from trainers.rollout_wire import (
    CLAIM_HEADER,
    JSON_TYPE,
    PROTOCOL,
    TENSORS_TYPE,
    About,
    Done,
    Message,
    Refusal,
    shared_key,
)
from trainers.vllm_jobs import EngineError

__all__ = ["Line", "check_server", "open_client"]

SILENCE, CONNECT = 60.0, 10.0
"""Seconds without a sign of life from a server, which gives one every 15, and for connecting."""

M = TypeVar("M", bound=Message)


@dataclass(slots=True)
class Line:
    """The way to a server."""

    address: str
    client: Any
    claim: str = ""

    def ask(self, name: str, kind: type[M], call: Message | bytes) -> M:
        """The answer to a call, however long it takes while the server lives.

        Raises:
            EngineError: If there is none.
        """
        answer = self._posted(name, call)
        while answer.status_code == 202:
            answer = self._posted("wait", Done())
        return self.read(answer, kind)

    def _posted(self, name: str, call: Message | bytes) -> Any:
        tensors = isinstance(call, bytes)
        headers = {
            "Content-Type": TENSORS_TYPE if tensors else JSON_TYPE,
            CLAIM_HEADER: self.claim,
        }
        body = call if isinstance(call, bytes) else call.model_dump_json().encode()
        return self.request("POST", f"/{name}", content=body, headers=headers)

    def request(self, method: str, path: str, **given: Any) -> Any:
        """What came back, whatever its status.

        Raises:
            EngineError: If nothing did.
        """
        library = _library()
        try:
            return self.client.request(method, self.address + path, **given)
        except (library.HTTPError, library.InvalidURL) as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise EngineError(
                f"the rollout server {self.address} cannot be reached ({words}); npbench "
                f"serve-rollouts starts one, --set rollouts.address=... names another"
            ) from error

    def read(self, answer: Any, kind: type[M]) -> M:
        """The record of an answer.

        Raises:
            EngineError: If it is a refusal, or no answer of a rollout server.
        """
        try:
            if answer.status_code == 200:
                return kind.model_validate_json(answer.content)
            line = Refusal.model_validate_json(answer.content).error
        except ValidationError:
            line = f"answered HTTP {answer.status_code} as no rollout server does"
        raise EngineError(f"rollout server {self.address}: {line}")


def _library() -> Any:
    try:
        import httpx2
    except ImportError:
        raise InputError("rollouts.address needs: pip install 'npbench[train]' (httpx2)") from None
    return httpx2


def open_client() -> Any:
    """A client that goes straight to the server, with the key if there is one."""
    library, key = _library(), shared_key()
    return library.Client(
        headers={} if key is None else {"Authorization": f"Bearer {key}"},
        timeout=library.Timeout(SILENCE, connect=CONNECT),
        trust_env=False,
    )


def check_server(address: str) -> None:
    """Looks whether a server of this protocol is there, held or not.

    Raises:
        InputError: If not.
    """
    with open_client() as client:
        line = Line(address, client)
        found = line.read(line.request("GET", "/"), About)
    if found.protocol != PROTOCOL:
        raise EngineError(
            f"rollout server {address}: both sides must speak protocol {PROTOCOL}, it speaks "
            f"{found.protocol}: install one version of npbench"
        )
