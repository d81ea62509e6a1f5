"""The rollout server's HTTP: one POST for each call, bounded bodies, a shared key, one-line errors.

The standard library's server is enough for one run that waits for each answer, and blocks where
the engine blocks. A call that takes long is answered 202 and asked for again by ``wait``, so both
sides notice when the other one is gone. Bodies with tensors go to a file as they come.
"""

import hmac
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import prod
from socketserver import TCPServer
from threading import BoundedSemaphore, Thread
from typing import Any, NoReturn

from pydantic import ValidationError

from npbench.errors import InputError
from trainers.rollout_bodies import AT_ONCE, Body
from trainers.rollout_claims import Claim, RefusedError, lost
from trainers.rollout_server import RolloutServer
from trainers.rollout_wire import (
    CLAIM_BYTES,
    CLAIM_HEADER,
    DRAW_BYTES,
    JSON_BYTES,
    JSON_TYPE,
    KEY_VARIABLE,
    PART_BYTES,
    About,
    ClaimCall,
    Done,
    Message,
    PushCall,
    Refusal,
    is_loopback,
)

__all__ = ["RolloutHttp", "open_http"]


class RolloutHttp(ThreadingHTTPServer):
    """An address and what is answered there."""

    daemon_threads = True
    request_queue_size = 64

    rollouts: RolloutServer
    about: About
    limits: Mapping[str, int]
    _thread: Thread | None = None

    def __init__(self, place: tuple[str, int], key: str | None) -> None:
        """Takes its address; who connects is refused until ``begin``."""
        self.address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self.key = key
        self._open: set[socket.socket] = set()
        # who only asks for the server does not keep its holder waiting
        self.strangers, self.holders = BoundedSemaphore(AT_ONCE), BoundedSemaphore(AT_ONCE)
        super().__init__(place, _Handler, bind_and_activate=False)
        try:
            self.server_bind()
        except BaseException:
            self.server_close()
            raise

    def server_bind(self) -> None:
        """Binds, and does not ask the network for a name as the parent does."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def begin(self, rollouts: RolloutServer, about: About) -> None:
        """Answers from now on, in a thread of its own."""
        self.rollouts, self.about = rollouts, about
        # float64 is the widest that a checkpoint holds
        largest = 8 * max(prod(shape) for shape in rollouts.claims.shapes.values())
        self.limits = {"draw": DRAW_BYTES, "part": PART_BYTES + largest}
        self.server_activate()
        # the argument is what its end may take, in seconds
        self._thread = Thread(target=self.serve_forever, args=(0.05,), name="npbench-http")
        self._thread.daemon = True
        self._thread.start()

    def close(self) -> None:
        """Answers nobody any more."""
        if self._thread is not None:
            self.shutdown()
            self._thread.join()
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    @property
    def address(self) -> str:
        """Where it can be reached from its own machine."""
        host, port = self.server_address[:2]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers on a connection, in a thread of its own."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Ends a connection."""
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that is gone needs no answer; anything else is a fault of ours to be seen."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def open_http(host: str, port: int, *, key: str | None) -> RolloutHttp:
    """A server at an address that is now nobody else's.

    Raises:
        InputError: If the address is free to all and there is no key, or cannot be had.
    """
    if key is None and not is_loopback(host):
        raise InputError(
            f"--host must be a loopback address without a key, got {host!r}: set {KEY_VARIABLE} "
            f"to the same secret on both sides"
        )
    try:
        return RolloutHttp((host, port), key)
    except (OSError, OverflowError) as error:
        raise InputError(f"{host}:{port} cannot be served: {error}") from None


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60
    server: RolloutHttp

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the parent's name
        """Says nothing."""

    def do_GET(self) -> None:
        """What the server is."""
        self._answer(self._about)

    def do_POST(self) -> None:
        """One call."""
        self._answer(self._called)

    def _answer(self, call: Callable[[], Message | None]) -> None:
        """The boundary at which what is wrong with a call becomes a status and a line."""
        try:
            found = call()
        except RefusedError as error:
            self._refuse(error.status, str(error))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])) or "the body"
            self._refuse(400, f"{place} is malformed: {first['msg']}")
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except FileNotFoundError:
            # a claim's folder goes when the claim does
            self._refuse(lost().status, str(lost()))
        except OSError as error:
            self._refuse(500, f"the server cannot keep the body: {error.strerror or error}")
        else:
            text = "" if found is None else found.model_dump_json()
            self._send(202 if found is None else 200, text)

    def _refuse(self, status: int, line: str) -> None:
        # what is left of the body must not be read as the next call
        self.close_connection = True
        self._send(status, Refusal(error=" ".join(line.split())[:600]).model_dump_json())

    def _send(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", JSON_TYPE)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _about(self) -> Message:
        self._check_key()
        if self.path != "/":
            _unknown(self.path)
        return self.server.about

    def _called(self) -> Message | None:
        self._check_key()
        rollouts, name = self.server.rollouts, self.path.removeprefix("/")
        if name == "claim":
            asked = Body(self.headers, self.rfile, self.server.strangers).json(CLAIM_BYTES)
            return rollouts.claim(ClaimCall.model_validate_json(asked))
        plain: dict[str, Callable[[Claim], Message | None]] = {
            "alive": lambda claim: Done(),
            "load": rollouts.load,
            "reset": rollouts.reset,
            "wait": rollouts.wait,
            "release": rollouts.release,
        }
        filed = {"draw": rollouts.draw, "part": rollouts.part}
        if name not in (*plain, *filed, "push"):
            _unknown(self.path)
        claim = rollouts.claims.held(self.headers.get(CLAIM_HEADER, ""))
        body = Body(self.headers, self.rfile, self.server.holders)
        if name in filed:
            path = body.file(claim.folder, self.server.limits[name])
            try:
                return filed[name](claim, path)
            finally:
                path.unlink(missing_ok=True)
        if name == "push":
            return rollouts.push(claim, PushCall.model_validate_json(body.json(JSON_BYTES)))
        Done.model_validate_json(body.json(JSON_BYTES))
        return plain[name](claim)

    def _check_key(self) -> None:
        key, given = self.server.key, self.headers.get("Authorization", "")
        if key is not None and not hmac.compare_digest(given.encode(), f"Bearer {key}".encode()):
            raise RefusedError(401, f"{KEY_VARIABLE} must be the server's own")


def _unknown(path: str) -> NoReturn:
    raise RefusedError(404, f"there is nothing at {path[:100]}")
