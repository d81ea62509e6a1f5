import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "trainers",
        "trainers.cli",
        "trainers.rewards",
        "trainers.transforms",
        "trainers.variants",
        "trainers.segments",
        "trainers.dynamic_sampling",
        "trainers.rewrite_files",
        "trainers.serve_command",
        "trainers.named_sets",
        "trainers.sweeps",
    ],
)
def test_what_needs_no_tensors_does_not_import_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
