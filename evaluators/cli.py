"""The commands that this package adds to ``npbench``."""

import json
import os
import shlex
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from evaluators.grading import Gold, Grade, State, grade
from evaluators.models import DEFAULT_MODEL
from evaluators.verdicts import AnswerType
from npbench.console import echo_cases, progress_bar
from npbench.errors import InputError, unknown_name
from npbench.launch import must_be_alone

if TYPE_CHECKING:
    from evaluators.backends import BackendOptions
    from evaluators.backends.base import Backend
    from evaluators.judge import ServerJudge

__all__ = ["compare_command", "eval_command", "grade_command", "grade_pairs"]

_NEEDED = ("reply", "gold", "answer_type")
_FOLDER = click.Path(path_type=Path)
_FORMATS = "answer-line, think-boxed, answer-tag or plain."


@click.command("grade-pairs")
@click.argument("file", type=click.Path(path_type=Path))
def grade_pairs(file: Path) -> None:
    """Grade replies against golds, one JSON object a line of FILE.

    A line holds "id", "reply", "gold", "answer_type" (free, integer, float, list, set, interval,
    expression or option), "precision" with float and "options" with option. Each gives one line
    on standard output; a line that cannot be graded gives an "error", and the exit code is 1.
    """
    try:
        echo_cases(file, _graded, failed={})
    except ImportError as error:
        raise InputError(str(error)) from None


def _graded(entry: dict[str, Any]) -> dict[str, Any]:
    for key in _NEEDED:
        if key not in entry:
            raise InputError(f"the pair has no {key!r}")
        if not isinstance(entry[key], str):
            raise InputError(f"{key} must be text, got {entry[key]!r:.60}")
    return _output(grade(entry["reply"], _gold(entry)))


def _gold(entry: dict[str, Any]) -> Gold:
    kinds = [kind.value for kind in AnswerType]
    if entry["answer_type"] not in kinds:
        raise unknown_name("answer_type", entry["answer_type"], kinds)
    options = entry.get("options")
    options = {} if options is None else options
    if not isinstance(options, dict) or not all(isinstance(t, str) for t in options.values()):
        raise InputError("options must map labels to texts")
    try:
        return Gold(
            entry["gold"],
            AnswerType(entry["answer_type"]),
            _precision(entry.get("precision")),
            options,
        )
    except ValueError as error:
        raise InputError(str(error)) from None


def _precision(value: Any) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise InputError(f"precision must be a number, got {value!r:.60}")


def _output(graded: Grade) -> dict[str, Any]:
    return {
        "extracted": graded.extracted,
        "correct": graded.correct,
        "state": graded.state.value,
        "stage": graded.stage.value,
        "extract_stage": graded.extract_stage.value,
        "reason": graded.reason,
    }


def _from_command_line(ctx: click.Context) -> str:
    """The command with the options that were given, as a line that runs again."""
    parts = ["npbench", str(ctx.info_name)]
    for parameter in ctx.command.params:
        name = str(parameter.name)
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = ctx.params[name]
        flag = parameter.opts[-1]
        if isinstance(value, bool):
            parts.append(flag if value else parameter.secondary_opts[-1])
            continue
        for one in value if isinstance(value, tuple) else (value,):
            parts += [flag, str(one)]
    return shlex.join(parts)


@click.command("eval", short_help="Score a model on a benchmark.")
@click.option("--data", type=_FOLDER, help="A split made by npbench generate.")
@click.option("--benchmark", help="A benchmark's name, instead of --data.")
@click.option("--from", "source", type=_FOLDER, help="The benchmark's data; default: the Hub.")
@click.option(
    "--model",
    help="A Hub name or folder; a solver's name; a responses file. Default: npbench-tiny, which "
    "comes with the package.",
)
@click.option(
    "--backend",
    default="transformers",
    show_default=True,
    help="transformers, vllm, openai, policy or scripted.",
)
@click.option("--base-url", multiple=True, help="A server, with openai; repeat for several.")
@click.option("--lora", type=_FOLDER, help="An adapter to put on the model.")
@click.option("-k", "k", type=int, default=4, show_default=True, help="Samples a question.")
@click.option("--greedy/--no-greedy", default=True, help="A greedy reply to each question, too.")
@click.option("--temperature", type=float, default=1.0, show_default=True)
@click.option("--top-p", type=float, default=1.0, show_default=True)
@click.option("--top-k", type=int, default=0, show_default=True, help="0 keeps all tokens.")
@click.option("--min-p", type=float, default=0.0, show_default=True)
@click.option("--repetition-penalty", type=float, default=1.0, show_default=True)
@click.option("--max-tokens", type=int, default=2048, show_default=True, help="Of one reply.")
@click.option("--stop", multiple=True, help="A string that ends a reply; default: none.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--limit", type=int, help="Ask the first so many questions.")
@click.option("--modality", help="Ask the questions of one modality: image or text.")
@click.option("--prompt-format", default="answer-line", show_default=True, help=_FORMATS)
@click.option("--system-prompt", help="Text of the system message; default: none.")
@click.option("--min-pixels", type=int, help="Enlarge smaller pictures to this area.")
@click.option("--max-pixels", type=int, help="Reduce larger pictures to this area.")
@click.option("--rows", type=int, help="Rows to accept instead of the official number.")
@click.option("--embedder", default="none", show_default=True, help="Or sentence:NAME.")
@click.option("--judge-url", help="A judge for benchmarks whose official metric has one.")
@click.option("--judge-model", help="The judge's name on its server.")
@click.option("--batch-size", type=int, default=8, show_default=True, help="Replies at a time.")
@click.option("--device", help="Such as cuda or cpu; default: cuda where there is one.")
@click.option("--dtype", default="auto", show_default=True, help="bfloat16, float16 or float32.")
@click.option("--tensor-parallel", type=int, default=1, show_default=True, help="GPUs, with vllm.")
@click.option("--concurrency", type=int, default=32, show_default=True, help="A server's requests.")
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Of a request, s.")
@click.option("--omit", multiple=True, help="A sampling field that the server does not know.")
@click.option(
    "--engine",
    default="local",
    show_default=True,
    help="Where the model runs: local or ray, a model in every worker of a cluster.",
)
@click.option("--workers", type=int, help="With ray; default: one for each --base-url, or one.")
@click.option(
    "--address",
    help="A running Ray cluster, auto or HOST:PORT; default: a Ray of this machine's own.",
)
@click.option(
    "--worker-seconds",
    type=float,
    help="With ray: replace a worker that takes longer over a batch of questions; default: 3600.",
)
@click.option(
    "--max-failed",
    type=float,
    default=0.05,
    show_default=True,
    help="Exit with 1 where a larger share of samples failed.",
)
@click.option("--out", type=_FOLDER, help="The run's folder; a run in it is finished.")
@click.option("--resume", type=_FOLDER, help="Finish this run with the options of its run.json.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def eval_command(ctx: click.Context, /, **given: Any) -> int | None:
    """Ask a model every question, grade the replies and summarise them.

    Each question gets a greedy reply and k sampled ones. Every finished sample is on disk at
    once: run the command again, or give --resume RUN, and only the rest is made.
    """
    must_be_alone("npbench eval", "--engine ray asks several replicas")
    resume = given.pop("resume")
    if resume is not None:
        with eval_command.make_context("eval", _words_of(resume), parent=ctx.parent) as again:
            # the folder may have been moved since
            again.params["out"] = resume
            result: int | None = eval_command.invoke(again)
        return result
    return _evaluate(given, command=_from_command_line(ctx))


def _words_of(run: Path) -> list[str]:
    """The options with which a run was made."""
    from evaluators.run_folder import read_manifest

    command = read_manifest(run).get("command")
    try:
        program, name, *words = shlex.split(str(command))
    except ValueError:
        program = name = ""
    if program != "npbench" or name.split()[-1:] != ["eval"]:
        raise InputError(f"{run} was not made by npbench eval: its command is {command!r}")
    return words


def _evaluate(given: dict[str, Any], *, command: str) -> int:
    from evaluators.backends import BackendOptions
    from evaluators.backends.base import Sampling
    from evaluators.embedders import get_embedder
    from evaluators.runner import RunSettings
    from evaluators.sessions import choose, evaluate
    from npbench.scoring import Question
    from npbench.storage import open_split

    if given["out"] is None:
        raise InputError("eval needs --out, the folder of the run")
    if given["model"] is None:
        given["model"] = _default_model(given["backend"])
    if (given["data"] is None) == (given["benchmark"] is None):
        raise InputError("eval needs one of --data and --benchmark")
    if given["data"] is not None and given["source"] is not None:
        raise InputError("--from goes with --benchmark, not with --data")
    fields = ("greedy", "k", "temperature", "top_p", "top_k", "min_p", "repetition_penalty",
              "max_tokens", "stop", "seed")  # fmt: skip
    sampling = Sampling(**{name: given[name] for name in fields})
    settings = RunSettings(
        sampling=sampling,
        prompt_format=given["prompt_format"],
        system_prompt=given["system_prompt"],
        min_pixels=given["min_pixels"],
        max_pixels=given["max_pixels"],
        judge=_judged_by(given["judge_model"]),
    )
    if not 0 <= given["max_failed"] <= 1:
        raise InputError(f"max-failed must lie in [0, 1], got {given['max_failed']:g}")
    source = given["data"] or given["source"]
    choice = choose(
        given["benchmark"],
        source=source,
        modality=given["modality"],
        limit=given["limit"],
        rows=given["rows"],
    )
    judge = _judge(given["judge_url"], given["judge_model"])
    embedder = get_embedder(given["embedder"])
    hard = isinstance(choice.benchmark.questions[0].grading, Question)
    solved = given["backend"] == "policy" and hard
    passed = ("lora", "device", "dtype", "batch_size", "tensor_parallel", "concurrency",
              "timeout", "omit", "min_pixels", "max_pixels")  # fmt: skip
    options = BackendOptions(
        model=given["model"],
        sampling=sampling,
        split=open_split(source) if solved else None,
        base_urls=given["base_url"],
        api_key=os.environ.get("OPENAI_API_KEY"),
        **{name: given[name] for name in passed},
    )
    with _backend(given, options) as backend, progress_bar("samples") as progress:
        outcome, summary = evaluate(
            choice,
            backend,
            settings,
            given["out"],
            command=command,
            embedder=embedder,
            judge=judge,
            progress=progress,
            stopping=_say_stopping,
        )
    if summary is None:
        click.echo(
            f"stopped with {outcome.done} of {outcome.total} samples in {given['out']}; "
            f"go on with: npbench eval --resume {given['out']}",
            err=True,
        )
        return 130
    code = _report(summary, as_json=given["as_json"], max_failed=given["max_failed"])
    words = shlex.join(["npbench", "report", str(given["out"])])
    click.echo(f"the tables, charts and replies as a page: {words}", err=True)
    return code


def _backend(given: dict[str, Any], options: "BackendOptions") -> "AbstractContextManager[Backend]":
    """Where replies come from, for as long as the context lasts."""
    if given["engine"] == "ray":
        from evaluators.ray_backend import ray_backend
        from npbench.ray_pool import PATIENCE

        return ray_backend(
            given["backend"],
            options,
            workers=given["workers"],
            address=given["address"],
            notify=partial(click.echo, err=True),
            patience=PATIENCE if given["worker_seconds"] is None else given["worker_seconds"],
        )
    if given["engine"] != "local":
        raise unknown_name("engine", given["engine"], ("local", "ray"))
    for name in ("workers", "address", "worker_seconds"):
        if given[name] is not None:
            raise InputError(f"--{name.replace('_', '-')} goes with --engine ray")
    from evaluators.backends import make_backend

    return nullcontext(make_backend(given["backend"], options))


def _default_model(backend: str) -> str:
    if backend in ("transformers", "vllm"):
        return DEFAULT_MODEL
    wanted = {"policy": "a solver", "scripted": "a responses file"}
    raise InputError(
        f"--backend {backend} needs --model: {wanted.get(backend, 'the name on the server')}"
    )


def _judged_by(model: str | None) -> str | None:
    """What a manifest says of a judge."""
    from evaluators.judge import JUDGE_PROMPTS_VERSION

    return None if model is None else f"{model}, prompts {JUDGE_PROMPTS_VERSION}"


def _judge(url: str | None, model: str | None) -> "ServerJudge | None":
    """The judge at an address, asked once to see that it works."""
    from evaluators.judge import JudgeSettings, ServerJudge

    if url is None and model is None:
        return None
    if url is None or model is None:
        raise InputError("a judge needs --judge-url and --judge-model")
    key = os.environ.get("JUDGE_API_KEY") or os.environ.get("OPENAI_API_KEY")
    judge = ServerJudge(JudgeSettings(url=url, model=model, api_key=key))
    judge.check()
    return judge


def _say_stopping() -> None:
    click.echo("finishing the samples under way; interrupt again to stop at once", err=True)


@click.command("grade", short_help="Grade the replies of a run again.")
@click.argument("run", type=_FOLDER)
@click.option("--data", type=_FOLDER, help="Where the data lies now; default: as in run.json.")
@click.option("--embedder", default="none", show_default=True, help="Or sentence:NAME.")
@click.option("--judge-url", help="A judge for benchmarks whose official metric has one.")
@click.option("--judge-model", help="The judge's name on its server.")
@click.option("--only", help="Grade the samples in one state alone, such as judge_failed.")
@click.option("--max-failed", type=float, default=0.05, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def grade_command(
    run: Path,
    data: Path | None,
    embedder: str,
    judge_url: str | None,
    judge_model: str | None,
    only: str | None,
    max_failed: float,
    as_json: bool,
) -> int:
    """Grade all replies of RUN afresh and write its summary; no model is needed.

    Old verdicts are never read.
    """
    from evaluators.embedders import get_embedder
    from evaluators.sessions import grade_again

    states = [state.value for state in State]
    if only is not None and only not in states:
        raise unknown_name("state", only, states)
    summary = grade_again(
        run,
        source=data,
        embedder=get_embedder(embedder),
        judge=_judge(judge_url, judge_model),
        judged_by=_judged_by(judge_model),
        only=None if only is None else State(only),
    )
    return _report(summary, as_json=as_json, max_failed=max_failed)


@click.command("compare", short_help="Compare two runs question by question.")
@click.argument("first", type=_FOLDER)
@click.argument("second", type=_FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare_command(first: Path, second: Path, as_json: bool) -> None:
    """Subtract the run SECOND from FIRST, paired by question, for every metric that both have."""
    from evaluators.paired import compare_folders
    from evaluators.tables import comparison_table

    result = compare_folders(first, second)
    for difference in result["differing"]:
        click.echo(f"warning: the runs differ in {difference}", err=True)
    if as_json:
        click.echo(json.dumps(result))
    else:
        comparison_table(result)


def _report(summary: dict[str, Any], *, as_json: bool, max_failed: float) -> int:
    """Print a summary and what is to be said of it; the exit code."""
    from evaluators.sessions import failed_share
    from evaluators.tables import summary_table, warnings_of

    if as_json:
        click.echo(json.dumps(summary))
    else:
        summary_table(summary)
    for warning in warnings_of(summary):
        click.echo(f"warning: {warning}", err=True)
    share = failed_share(summary)
    if share > max_failed:
        click.echo(
            f"{share:.1%} of the samples failed, more than the allowed {max_failed:.1%}", err=True
        )
        return 1
    return 0
