"""Checkpoint folders: found, checked before anything is loaded, and told apart by a fingerprint."""

import hashlib
import json
import struct
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from evaluators.models import SHIPPED, shipped_model
from npbench.errors import InputError

__all__ = ["Checkpoint", "check_adapter", "find_checkpoint"]

_MAX_HEADER = 100 << 20
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")
_HUB_SECONDS = 10
"""For the Hub to say whether it has a model; a download would try for most of a minute."""
_HUB_FILES = ("*.json", "*.jinja", "*.safetensors", "*.model", "*.txt")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder from which a model can be loaded."""

    name: str
    """As the user gave it."""
    folder: Path
    sees: bool
    """Whether it takes pictures."""
    fingerprint: str
    """Of its files' names, sizes and times of change, and of the texts among them."""
    template_hash: str


def find_checkpoint(name: str) -> Checkpoint:
    """The checkpoint in a folder, of a model that we ship, or of that name on the Hub, checked.

    Raises:
        InputError: If there is none, or something that loading needs is missing or damaged.
    """
    folder = shipped_model(name) or Path(name).expanduser()
    if not name.strip():
        raise InputError("the model's name is empty")
    if not folder.is_dir():
        if folder.exists():
            raise InputError(f"model {name} is a file; give the folder that holds it")
        folder = _from_hub(name)
    config = _config(folder)
    _check_weights(folder)
    if not any((folder / file).is_file() for file in _TOKENIZERS):
        raise InputError(f"{folder} has no tokenizer; copy tokenizer.json from the base model")
    template = _template(folder)
    if template is None:
        raise InputError(
            f"{folder} has no chat template; copy chat_template.jinja from the base model"
        )
    sees = "vision_config" in config
    if sees and not _prepares_pictures(folder):
        raise InputError(
            f"{folder} takes pictures and has no preprocessor_config.json or processor_config.json "
            f"with an image processor; copy it from the base model"
        )
    return Checkpoint(
        name=name,
        folder=folder,
        sees=sees,
        fingerprint=_fingerprint(folder),
        template_hash=hashlib.sha256(template.encode()).hexdigest()[:16],
    )


def check_adapter(folder: Path) -> str:
    """The fingerprint of a LoRA adapter.

    Raises:
        InputError: If the folder holds no adapter or its weights are missing or damaged.
    """
    config = folder / "adapter_config.json"
    if not config.is_file():
        raise InputError(f"{folder} is no LoRA adapter: it has no adapter_config.json")
    _read(config)
    weights = folder / "adapter_model.safetensors"
    if weights.is_file():
        _check_safetensors(weights)
    elif not (folder / "adapter_model.bin").is_file():
        raise InputError(f"{folder} has no adapter_model.safetensors")
    return _fingerprint(folder)


def _from_hub(name: str) -> Path:
    looks_like_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    if looks_like_path:
        raise InputError(f"model {name!r}: there is no such folder")
    try:
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError:
        raise InputError(
            f"there is no folder {name}; to take it from the Hub: pip install 'npbench[train]'"
        ) from None
    answers = True
    try:
        HfApi().model_info(name, timeout=_HUB_SECONDS)
    except (HfHubHTTPError, HFValidationError):
        pass  # an answer, if not the one that was hoped for: the download says it in its words
    except Exception:  # noqa: BLE001 -- each transport has errors of its own
        answers = False
    try:
        found = snapshot_download(
            name, allow_patterns=list(_HUB_FILES), local_files_only=not answers
        )
        return Path(found)
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0][:200] if str(error).strip() else ""
        reason = first if answers else "it cannot be reached, and its cache lacks the model"
        raise InputError(
            f"model {name!r} is no folder and cannot be had from the Hub: {reason}{_meant(name)}"
        ) from None


def _meant(name: str) -> str:
    """A hint at a model of ours whose name is nearly this one."""
    close = get_close_matches(name.lower(), SHIPPED, n=1, cutoff=0.7)
    return f"; did you mean {close[0]!r}?" if close else ""


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if path.is_file():
        return _read(path)
    if (folder / "adapter_config.json").is_file():
        base = _read(folder / "adapter_config.json").get("base_model_name_or_path", "its base")
        raise InputError(
            f"{folder} is a LoRA adapter: give --model {base} --lora {folder}, or merge it first"
        )
    if any(folder.glob("model_world_size_*")) or any(folder.glob("*.distcp")):
        raise InputError(f"{folder} holds sharded training state: merge it into a model first")
    raise InputError(f"{folder} is no checkpoint: it has no config.json")


def _check_weights(folder: Path) -> None:
    for index, single in (
        ("model.safetensors.index.json", "model.safetensors"),
        ("pytorch_model.bin.index.json", "pytorch_model.bin"),
    ):
        if (folder / index).is_file():
            shards = sorted(set(_read(folder / index).get("weight_map", {}).values()))
            missing = [shard for shard in shards if not (folder / shard).is_file()]
            if missing or not shards:
                raise InputError(
                    f"{folder} lacks {len(missing)} of {len(shards)} weight shards"
                    + (f", such as {missing[0]}" if missing else "")
                )
        elif (folder / single).is_file():
            shards = [single]
        else:
            continue
        for shard in shards:
            if shard.endswith(".safetensors"):
                _check_safetensors(folder / shard)
        return
    raise InputError(f"{folder} has no weights: neither model.safetensors nor pytorch_model.bin")


def _check_safetensors(path: Path) -> None:
    """Whether the file is as long as its header says: a cut download or a pointer is not."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else _MAX_HEADER
        if length >= min(_MAX_HEADER, size):
            raise InputError(f"{path} is no safetensors file, or only a pointer to one")
        try:
            header = json.loads(file.read(length))
            ends = [t["data_offsets"][1] for name, t in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise InputError(f"{path} has a damaged header") from None
    expected = 8 + length + max(ends, default=0)
    if size != expected:
        raise InputError(f"{path} has {size} bytes, {expected} expected: the file was cut")


def _template(folder: Path) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    for name in ("chat_template.json", "processor_config.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            template = _read(folder / name).get("chat_template")
            if template:
                return template if isinstance(template, str) else json.dumps(template)
    return None


def _prepares_pictures(folder: Path) -> bool:
    if (folder / "preprocessor_config.json").is_file():
        return True
    path = folder / "processor_config.json"
    return path.is_file() and "image_processor" in _read(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} is no JSON object")
    return data


def _fingerprint(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            continue
        stat = path.stat()
        if path.suffix in (".json", ".jinja") and stat.st_size < _MAX_HEADER:
            whole.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
        elif path.suffix in (".safetensors", ".bin", ".model"):
            whole.update(f"{path.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return whole.hexdigest()[:32]
