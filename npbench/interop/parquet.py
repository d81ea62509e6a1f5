"""Rows for reinforcement-learning frameworks and lmms-eval, and Parquet files of them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from npbench.errors import InputError
from npbench.scoring import SCORE_COLUMNS

__all__ = ["LAYOUTS", "Layout", "ground_truth", "write_parquet"]

BATCH_ROWS = 100

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The rows that a framework wants."""

    convert: Callable[[Row], Row]
    """From a row of a split and its ``position`` in the file."""
    columns: Mapping[str, Any]
    """The kind of each column: text, integer, flag, messages, picture, pictures, or a mapping."""
    typed: bool
    """Whether the file tells ``datasets`` the features, so that pictures are decoded. verl and
    EasyR1 read the bytes, with versions of ``datasets`` that do not share one name for lists."""
    mixed: bool = True
    """Whether text and picture rows may stand in one file."""


def ground_truth(row: Row) -> str:
    """What a reward needs of a row, as JSON text.

    Nested columns would need one schema for all tasks, which their instances do not have.
    """
    known = {name: row[name] for name in ("id", "reference_objective", "reference_status")}
    return json.dumps({"task": row["task"], "instance": json.loads(row["instance"]), **known})


def _picture(row: Row) -> Row | None:
    if row["image"] is None:
        return None
    return {"bytes": row["image"], "path": f"{row['id']}.png"}


def _pictures(row: Row) -> list[Row]:
    picture = _picture(row)
    return [] if picture is None else [picture]


def _marked(row: Row) -> str:
    """The prompt with the mark at which verl and EasyR1 insert the picture."""
    prompt: str = row["prompt"]
    if "<image>" in prompt:
        raise InputError(f"the prompt of {row['id']} holds the text '<image>'")
    return prompt if row["image"] is None else f"<image>{prompt}"


_EXTRA = ("id", "instance_id", "index", "split", "task", "level")


def _verl(row: Row) -> Row:
    return {
        "data_source": f"npbench/{row['task']}",
        "prompt": [{"role": "user", "content": _marked(row)}],
        "images": _pictures(row),
        "ability": row["group"],
        "reward_model": {"style": "rule", "ground_truth": ground_truth(row)},
        "extra_info": {
            **{name: row[name] for name in _EXTRA},
            "index": row["position"],
            "need_tools_kwargs": False,
        },
    }


def _easyr1(row: Row) -> Row:
    return {
        "problem": _marked(row),
        "answer": ground_truth(row),
        "images": _pictures(row),
        **{name: row[name] for name in _EXTRA},
    }


def _trl(row: Row) -> Row:
    return {
        "prompt": [{"role": "user", "content": row["prompt"]}],
        "image": _picture(row),
        **{name: row[name] for name in (*_EXTRA, *_REWARD)},
    }


def _lmms_eval(row: Row) -> Row:
    return {
        "prompt": row["prompt"],
        "image": _picture(row),
        **{name: row[name] for name in ("level", *SCORE_COLUMNS)},
    }


_REWARD = ("instance", "reference_objective", "reference_status")
_KINDS = {name: "integer" if name == "index" else "text" for name in _EXTRA}

LAYOUTS: Mapping[str, Layout] = {
    "verl": Layout(
        convert=_verl,
        columns={
            "data_source": "text",
            "prompt": "messages",
            "images": "pictures",
            "ability": "text",
            "reward_model": {"style": "text", "ground_truth": "text"},
            "extra_info": {**_KINDS, "need_tools_kwargs": "flag"},
        },
        typed=False,
    ),
    "easyr1": Layout(
        convert=_easyr1,
        columns={"problem": "text", "answer": "text", "images": "pictures", **_KINDS},
        typed=False,
        mixed=False,
    ),
    "trl": Layout(
        convert=_trl,
        columns={
            "prompt": "messages",
            "image": "picture",
            **_KINDS,
            **{name: "integer" if name == "reference_objective" else "text" for name in _REWARD},
        },
        typed=True,
    ),
    "lmms-eval": Layout(
        convert=_lmms_eval,
        columns={
            "prompt": "text",
            "image": "picture",
            "level": "text",
            **{n: "integer" if n.endswith("_objective") else "text" for n in SCORE_COLUMNS},
        },
        typed=True,
    ),
}
"""The layout of each format whose rows are a Parquet file."""


def write_parquet(rows: Iterable[Row], path: Path, layout: Layout, *, modalities: set[str]) -> None:
    """Write rows of a split as a framework wants them; text alone gets no column for pictures.

    Args:
        rows: Rows of a split.
        path: The file.
        layout: The framework's.
        modalities: The modalities of the rows.

    Raises:
        InputError: If pictures and text are mixed, which EasyR1 alone cannot take.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if len(modalities) > 1 and not layout.mixed:
        raise InputError(
            "EasyR1 takes pictures or text, not both in one file; export a split of one modality"
        )
    columns = {
        name: kind
        for name, kind in layout.columns.items()
        if kind not in ("picture", "pictures") or "image" in modalities
    }
    fields = [pa.field(name, _arrow(kind)) for name, kind in columns.items()]
    features = {name: _feature(kind) for name, kind in columns.items()} if layout.typed else None
    card = {"huggingface": json.dumps({"info": {"features": features}})} if features else None
    schema = pa.schema(fields, metadata=card)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        numbered = ({**row, "position": position} for position, row in enumerate(rows))
        for batch in _batches(numbered):
            converted = [{name: layout.convert(row)[name] for name in columns} for row in batch]
            writer.write_table(pa.Table.from_pylist(converted, schema=schema))


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    stream = iter(rows)
    while batch := list(islice(stream, BATCH_ROWS)):
        yield batch


def _arrow(kind: Any) -> Any:
    """The Arrow type of a kind of column."""
    import pyarrow as pa

    if isinstance(kind, Mapping):
        return pa.struct([(name, _arrow(inner)) for name, inner in kind.items()])
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    message = pa.struct([("role", pa.string()), ("content", pa.string())])
    return {
        "text": pa.string(),
        "integer": pa.int64(),
        "flag": pa.bool_(),
        "messages": pa.list_(message),
        "picture": picture,
        "pictures": pa.list_(picture),
    }[kind]


def _feature(kind: str) -> Any:
    """The feature of a kind of column, in the spelling that all versions of ``datasets`` read."""
    text = {"dtype": "string", "_type": "Value"}
    return {
        "text": text,
        "integer": {"dtype": "int64", "_type": "Value"},
        "messages": [{"role": text, "content": text}],
        "picture": {"_type": "Image"},
    }[kind]
