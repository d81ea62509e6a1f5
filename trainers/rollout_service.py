"""A rollout server's life: the address, the engine, calls until it is told to stop, the end."""

from collections.abc import Callable
from contextlib import ExitStack, closing, suppress

from trainers.loading import located
from trainers.rollout_claims import Claims
from trainers.rollout_http import RolloutHttp
from trainers.rollout_server import RolloutServer
from trainers.rollout_wire import PROTOCOL, About
from trainers.vllm_engine import Launch, import_vllm, launch
from trainers.vllm_weights import model_outline

__all__ = ["serve"]


def serve(http: RolloutHttp, model: str, options: Launch, *, ready: Callable[[str], None]) -> None:
    """Serves until it is interrupted.

    Args:
        http: The address; it is closed at the end.
        model: Folder or name of a checkpoint of the shape that runs train.
        options: How the engine is started.
        ready: Called with the address once it answers.

    Raises:
        InputError: If vLLM is missing or does not start, or there is no such model.
    """
    with ExitStack() as stack:
        stack.enter_context(closing(http))
        version = import_vllm().__version__
        # what a run draws from is what it has pushed, so any seed will do
        folder = stack.enter_context(located(model, 0))
        outline = model_outline(folder)
        engine = launch(folder, options, image_token_id=outline.image_token_id)
        stack.callback(engine.close)
        claims = Claims(outline.shapes)
        stack.callback(claims.close)
        server = RolloutServer(engine, claims)
        http.begin(server, About(protocol=PROTOCOL, vllm=version, model=model))
        # calls end before what they use
        with closing(http), suppress(KeyboardInterrupt):
            ready(http.address)
            server.work()
