"""``python -m trainers.engines.verl_launch``: a recipe run by verl, or its command printed."""

import os
import shlex
from pathlib import Path

import click

from npbench.errors import InputError
from trainers.engines.verl_recipes import VARIABLE, launch, recipe_names

__all__ = ["command"]


@click.command()
@click.option("--recipe", required=True, help=", ".join(recipe_names()))
@click.option(
    "--train", type=click.Path(path_type=Path), required=True, multiple=True, help="Parquet file."
)
@click.option(
    "--val", type=click.Path(path_type=Path), required=True, multiple=True, help="Parquet file."
)
@click.option("--print", "only_print", is_flag=True, help="Print the command; verl is not needed.")
@click.argument("changes", nargs=-1)
def command(
    recipe: str,
    train: tuple[Path, ...],
    val: tuple[Path, ...],
    only_print: bool,
    changes: tuple[str, ...],
) -> None:
    """Train with verl on its own machines. CHANGES are overrides such as trainer.nnodes=4.

    Needs GPUs, verl, and vLLM or SGLang. Files come from: npbench export DIR --format verl
    """
    try:
        found = launch(
            recipe,
            train=[str(path.resolve()) for path in train],
            validation=[str(path.resolve()) for path in val],
            changes=changes,
            modules=os.environ.get(VARIABLE, ""),
        )
        if only_print:
            variables = [f"{key}={shlex.quote(text)}" for key, text in found.environment.items()]
            click.echo(" ".join([*variables, shlex.join(found.arguments)]))
            return
        missing = [str(path) for path in (*train, *val) if not path.is_file()]
        if missing:
            raise InputError(f"there is no file {missing[0]}")
        from trainers.engines.verl import import_verl

        import_verl()
    except InputError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(2) from None
    os.execve(found.arguments[0], found.arguments, {**os.environ, **found.environment})


if __name__ == "__main__":
    command()
