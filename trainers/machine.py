"""What a machine has: processors, memory, disk, GPUs, and what torch can do with them."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

__all__ = ["Gpu", "Machine", "look_around"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as torch sees it."""

    name: str
    capability: str
    """Compute capability, such as ``9.0``."""
    bytes: int
    free_bytes: int
    bfloat16: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Everything that decides how a run goes here."""

    torch: str | None
    """Its version with its build; None where it is not installed."""
    cuda_build: str | None
    """The CUDA version that torch was built for; None for a CPU build."""
    driver: str | None
    """The NVIDIA driver's version; None where there is none."""
    gpus: tuple[Gpu, ...]
    cores: int
    """Those that this process may use."""
    threads: str | None
    """OMP_NUM_THREADS."""
    cpu_bfloat16: str
    """How the CPU computes in bfloat16: ``AMX``, ``AVX-512`` or ``emulated``."""
    free_bytes: int
    """Main memory that a process can still take."""
    disk: str
    """The folder whose disk is meant."""
    disk_free_bytes: int
    attention: tuple[str, ...]
    """Implementations of attention that a model can be loaded with."""

    @property
    def device(self) -> str:
        """What ``auto`` stands for."""
        return "cuda" if self.gpus else "cpu"

    def room(self, device: str) -> int:
        """Free bytes of a device."""
        if device == "cpu":
            return self.free_bytes
        _, _, number = device.partition(":")
        return self.gpus[int(number or 0)].free_bytes

    def lacks(self, device: str) -> str | None:
        """Why a device cannot be used, in one line; None where it can."""
        kind, _, number = device.partition(":")
        if kind == "cuda" and int(number or 0) >= len(self.gpus):
            return f"device must be among the {len(self.gpus)} GPUs that torch sees, got {device!r}"
        return None


def look_around(folder: Path) -> Machine:
    """The machine, and the disk that a folder lies on; imports torch where it is installed."""
    version, build, gpus, attention = _torch()
    return Machine(
        torch=version,
        cuda_build=build,
        driver=_driver(),
        gpus=gpus,
        cores=_cores(),
        threads=os.environ.get("OMP_NUM_THREADS"),
        cpu_bfloat16=_cpu_bfloat16(),
        free_bytes=_free_memory(),
        disk=str(folder),
        disk_free_bytes=shutil.disk_usage(folder).free,
        attention=attention,
    )


def _torch() -> tuple[str | None, str | None, tuple[Gpu, ...], tuple[str, ...]]:
    if find_spec("torch") is None:
        return None, None, (), ()
    import torch

    gpus = []
    for number in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(number)
        major, minor = torch.cuda.get_device_capability(number)
        gpus.append(
            Gpu(
                name=torch.cuda.get_device_name(number),
                capability=f"{major}.{minor}",
                bytes=total,
                free_bytes=free,
                bfloat16=major >= 8,
            )
        )
    attention = ["sdpa", "eager"]
    # its kernels are for Ampere and later
    if find_spec("flash_attn") is not None and any(gpu.bfloat16 for gpu in gpus):
        attention.append("flash_attention_2")
    return torch.__version__, torch.version.cuda, tuple(gpus), tuple(attention)


def _driver() -> str | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.split()
    return lines[0] if done.returncode == 0 and lines else None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _words(path: str) -> str:
    """A file of the system; empty where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _cpu_bfloat16() -> str:
    flags = _words("/proc/cpuinfo").split("flags", 2)
    known = set(flags[1].split("\n", 1)[0].split()) if len(flags) > 1 else set()
    if "amx_bf16" in known:
        return "AMX"
    return "AVX-512" if "avx512_bf16" in known else "emulated"


def _free_memory() -> int:
    """What the system has to give, or what is left of the container's limit if that is less."""
    rows = [line.split() for line in _words("/proc/meminfo").splitlines()]
    free = next((int(row[1]) * 1024 for row in rows if row and row[0] == "MemAvailable:"), None)
    if free is None:
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, used = (_words(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if limit.isdecimal() and used.isdecimal():
        free = min(free, max(int(limit) - int(used), 0))
    return free
