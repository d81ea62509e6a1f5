"""``npbench serve-rollouts``; importing it does not import torch."""

import os

import click

from npbench.launch import must_be_alone

__all__ = ["serve_rollouts_command"]


@click.command(name="serve-rollouts", short_help="Draw rollouts for a trainer elsewhere.")
@click.option("--model", required=True, help="Folder or name of the model that is trained.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Its port; 0 takes a free one.",
)
@click.option("--context", type=click.IntRange(1), help="Longest prompt and reply, in tokens.")
@click.option(
    "--dtype",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
    help="Of the weights; auto is vLLM's choice for the checkpoint.",
)
@click.option(
    "--tensor-parallel",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="GPUs that share the weights.",
)
@click.option(
    "--memory-fraction",
    default=0.9,
    show_default=True,
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    help="Of each GPU, for weights and key-value cache.",
)
@click.option(
    "--rows",
    default=256,
    show_default=True,
    type=click.IntRange(1),
    help="Replies that are decoded together, at most.",
)
def serve_rollouts_command(
    model: str,
    host: str,
    port: int,
    context: int | None,
    dtype: str,
    tensor_parallel: int,
    memory_fraction: float,
    rows: int,
) -> None:
    """Serve a vLLM engine that a run draws from and pushes its weights to.

    The run has --set rollouts.backend=vllm --set rollouts.address=http://HOST:PORT, and holds the
    server until it ends or is silent for 60 seconds; another one is told who holds it. Where the
    environment variable NPBENCH_ROLLOUT_KEY is set, the trainer must have the same; without it only
    this machine can connect. Nothing is encrypted: over a network that is not yours alone, put a
    tunnel or a TLS proxy between.

    One line on stdout says where it answers. SIGINT or SIGTERM ends it.
    """
    must_be_alone("npbench serve-rollouts", "one server draws for all processes of a run")
    # stdout is for the address
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    from trainers.rollout_http import open_http
    from trainers.rollout_service import serve
    from trainers.rollout_wire import shared_key
    from trainers.vllm_engine import Launch

    options = Launch(
        dtype=dtype,
        rows=rows,
        tensor_parallel=tensor_parallel,
        context=context,
        memory_fraction=memory_fraction,
    )
    http = open_http(host, port, key=shared_key())
    serve(http, model, options, ready=lambda at: click.echo(f"rollouts of {model} at {at}"))
