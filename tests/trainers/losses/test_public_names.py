import subprocess
import sys
from types import ModuleType

import trainers.losses


def test_the_package_exports_exactly_what_it_imports_from_its_modules() -> None:
    names = {
        name
        for name, value in vars(trainers.losses).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert names == set(trainers.losses.__all__)


def test_losses_import_neither_transformers_nor_any_trainer_library() -> None:
    code = (
        "import sys, trainers.losses;"
        "sys.exit(bool({'transformers', 'trl', 'verl', 'vllm'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
