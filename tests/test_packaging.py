"""What the distribution promises: light imports, one direction, names that are exported."""

import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("npbench", "evaluators", "trainers", "leaderboards")
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py")
)


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_benchmark_and_the_evaluators_loads_no_heavy_library():
    modules = loaded_after("import npbench, evaluators")
    heavy = {
        "torch",
        "transformers",
        "vllm",
        "datasets",
        "ortools",
        "networkx",
        "matplotlib",
        "PIL",
    }
    assert not modules & heavy


def test_the_help_page_loads_no_heavy_library():
    modules = loaded_after(
        "from click.testing import CliRunner\n"
        "from npbench.cli import cli\n"
        "assert CliRunner().invoke(cli, ['--help']).exit_code == 0"
    )
    assert not modules & {
        "torch",
        "transformers",
        "datasets",
        "ortools",
        "networkx",
        "pyarrow",
        "rich",
    }


def test_packages_import_in_one_direction_only():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--config", ROOT / "pyproject.toml"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", MODULES)
def test_every_name_that_a_module_exports_exists(name):
    module = import_module(name)
    exported = getattr(module, "__all__", None)
    assert exported is not None, f"{name} has no __all__"
    assert sorted(set(exported)) == sorted(exported)
    for entry in exported:
        assert hasattr(module, entry), f"{name}.{entry}"


def test_every_command_of_the_entry_points_loads():
    import click

    for entry in entry_points(group="npbench.commands"):
        assert isinstance(entry.load(), click.Command)


def test_the_wheel_names_its_packages_one_by_one():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert config["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == list(PACKAGES)


def test_no_test_folder_is_a_package():
    assert not list((ROOT / "tests").rglob("__init__.py"))
