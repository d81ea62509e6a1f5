"""Parquet files read so that whatever is wrong with one is a line that names it."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npbench.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_columns"]


def read_columns(
    path: Path,
    needed: Sequence[str],
    *,
    kinds: "pa.Schema | None" = None,
    nullable: Collection[str] = (),
    only: bool = False,
) -> "pa.Table":
    """The table of a file, words in place of dictionaries of words.

    Args:
        path: The file.
        needed: Columns that it must have.
        kinds: A schema whose types those columns must have, where it names them.
        nullable: Those that may hold nulls, of the ones that ``kinds`` names.
        only: Leave out all other columns.

    Raises:
        InputError: If it cannot be read, lacks a column, or holds something else there.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        known = pq.ParquetFile(path).schema_arrow.names
        for name in needed:
            if name not in known:
                raise InputError(f"{path} has no column {name}")
        table = pq.read_table(path, columns=list(needed) if only else None)
        plain = [_without_dictionary(field) for field in table.schema]
        table = table.cast(pa.schema(plain))
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} cannot be read: {reason}") from None
    if kinds is None:
        return table
    for name in [name for name in needed if name in kinds.names]:
        wanted, found = _without_dictionary(kinds.field(name)).type, table.schema.field(name).type
        if found != wanted:
            raise InputError(f"{path}: column {name} must hold {wanted}, got {found}")
        if name not in nullable and table[name].null_count:
            raise InputError(f"{path}: column {name} must hold no null")
    return table


def _without_dictionary(field: "pa.Field") -> "pa.Field":
    import pyarrow as pa

    return field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field
