"""The ``npbench`` command: lazy subcommands, one-line errors, exit codes.

Exit codes: 0 done, 1 a check failed, 2 wrong usage or bad input, 130 interrupted.
"""

import atexit
import os
import signal
import sys
from importlib import import_module
from importlib.metadata import entry_points, version
from types import FrameType

import click

from npbench.errors import InputError, unknown_name

__all__ = ["main"]

_COMMANDS = {
    "demo": "Build a small split of all tasks, answer it and write a page.",
    "generate": "Build a split of a suite.",
    "inspect": "Show one row of a split.",
    "solve": "Answer a split, cases or an instance with a solver.",
    "parse": "Read the answers of replies.",
    "verify": "Judge replies to instances.",
    "score": "Score the replies to a split.",
    "draw": "Draw the picture of an instance file.",
    "export": "Write a split in the format of another program.",
    "gallery": "Draw a page with every task, level and style.",
    "robustness": "Compare styles, and pictures with text, instance by instance.",
    "perception": "Read pictures: prompts, a decoder's replies, and their scores.",
    "check-overlap": "Prove that two splits share no instance.",
    "tasks": "List tasks, suites, levels and official splits.",
}


class _Commands(click.Group):
    """Subcommands of this package by name, those of others by entry point."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        others = sorted(entry.name for entry in entry_points(group="npbench.commands"))
        return [*_COMMANDS, *others]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            module = import_module(f"npbench.commands.{cmd_name.replace('-', '_')}")
            command: click.Command = module.command
            return command
        for entry in entry_points(group="npbench.commands"):
            if entry.name == cmd_name:
                loaded: click.Command = entry.load()
                return loaded
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            raise unknown_name("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = list(_COMMANDS.items())
        for name in self.list_commands(ctx)[len(rows) :]:
            command = self.get_command(ctx, name)
            rows.append((name, command.get_short_help_str(80) if command else ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=_Commands,
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(version("npbench"), prog_name="npbench")
@click.pass_context
def cli(context: click.Context) -> None:
    """Do reinforcement-learned vision-language models still explore?

    Build benchmark splits of NP-hard tasks, verify and score answers.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> None:
    """Run the command line and exit."""
    code = _run()
    if os.environ.get("WORLD_SIZE", "1") != "1":
        # threads that talked to other processes can abort an interpreter that takes itself apart
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _stop(number: int, frame: FrameType | None) -> None:
    """Treat a polite kill (timeout, Slurm, docker stop) as an interruption."""
    raise KeyboardInterrupt


def _run() -> int:
    signal.signal(signal.SIGTERM, _stop)
    try:
        result = cli.main(standalone_mode=False)
    except InputError as error:
        return _fail(str(error), 2)
    except click.ClickException as error:
        return _fail(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _fail(f"{named}{error.strerror or error}", 2)
    return result if isinstance(result, int) else 0


def _fail(message: str, code: int) -> int:
    click.echo(f"npbench: {' '.join(message.split())}", err=True)
    return code
