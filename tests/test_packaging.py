"""What the distribution promises: light imports, one direction, names that are exported."""

import subprocess
import sys
import tomllib
import zipfile
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


@pytest.fixture(scope="module")
def unpacked_wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("npbench-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_draws_and_verifies_without_the_checkout(unpacked_wheel, tmp_path):
    code = (
        "import npbench, json\n"
        f"assert npbench.__file__.startswith({str(unpacked_wheel)!r}), npbench.__file__\n"
        "row = npbench.load('nano', 'nano', 'train', 1, tasks=['tsp'])[0]\n"
        "assert row.image.startswith(b'\\x89PNG')\n"
        "from npbench.demo_page import write_page\n"
        "from jinja2 import Environment, PackageLoader\n"
        "Environment(loader=PackageLoader('npbench', 'templates')).get_template('demo.html')\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(unpacked_wheel), "OMP_NUM_THREADS": "1"},
        check=True,
    )


def test_the_wheel_holds_the_four_packages_types_and_licences(unpacked_wheel):
    for package in PACKAGES:
        assert (unpacked_wheel / package / "py.typed").is_file()
    licences = {path.name for path in unpacked_wheel.rglob("*licenses*/**/LICENSE*")}
    assert licences
    assert not (unpacked_wheel / "tests").exists()
