"""Questions of a published training set, from the Hub or from a folder with a copy of its files.

Every row is looked at when the set is opened. One that cannot be trained on is left out and
counted with its reason, so that nothing is missed a thousand steps later; pictures stay the bytes
that the set holds.
"""

import io
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, overload

from evaluators.loading import Origin, Table, find_columns, open_table, resolve
from npbench.errors import InputError
from trainers.data import Question
from trainers.named_sets import (
    NamedSet,
    UnusableRowError,
    answer_of,
    checked_split,
    named_set,
    prompt_of,
)

__all__ = ["NamedQuestions", "open_named"]

_PLACE = "<image>"


class _Pictures:
    """The files that rows name by path: below a folder, or in a zip file."""

    def __init__(self, folder: Path | None, archive: Path | None) -> None:
        self._folder = None if folder is None else folder.resolve()
        self._archive = archive if archive is not None and archive.is_file() else None

    @cached_property
    def _zip(self) -> zipfile.ZipFile | None:
        try:
            return None if self._archive is None else zipfile.ZipFile(self._archive)
        except zipfile.BadZipFile:
            raise InputError(f"{self._archive} is no zip file") from None

    @cached_property
    def _members(self) -> frozenset[str]:
        return frozenset() if self._zip is None else frozenset(self._zip.namelist())

    def _file(self, path: str) -> Path | None:
        """The file of a path; None where there is none below the folder."""
        if self._folder is None:
            return None
        try:
            file = (self._folder / path).resolve()
            return file if file.is_relative_to(self._folder) and file.is_file() else None
        except (OSError, ValueError):  # no file can have such a name
            return None

    def __contains__(self, path: str) -> bool:
        return self._file(path) is not None or path in self._members

    def read(self, path: str) -> bytes:
        """The encoded picture of a path that is in here."""
        file = self._file(path)
        if file is not None:
            return file.read_bytes()
        assert self._zip is not None
        try:
            return self._zip.read(path)
        except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as error:
            raise InputError(f"{path} in {self._archive} cannot be read: {error}") from None


class NamedQuestions(Sequence[Question]):
    """The usable rows of a published set, in its order."""

    def __init__(
        self, name: str, table: Table, columns: Mapping[str, str], pictures: _Pictures
    ) -> None:
        """Looks at every row once.

        Raises:
            InputError: If no row is usable.
        """
        self.name = name
        self._table = table
        self._columns = columns
        self._pictures = pictures
        self._numbers: list[int] = []
        self._ids: list[str] = []
        self.left_out: Counter[str] = Counter()
        """Reasons for which rows were left out -> their number."""
        seen: set[str] = set()
        for number in range(len(table)):
            cells = self._cells(number)
            try:
                prompt, found = prompt_of(cells["prompt"]), self._found(cells)
                answer_of(cells["answer"])
                _check_places(prompt, len(found))
            except UnusableRowError as error:
                self.left_out[str(error)] += 1
                continue
            own = _id_of(cells.get("id"))
            unique = own if own and own not in seen else str(number)
            seen.add(unique)
            self._numbers.append(number)
            self._ids.append(f"{name}-{unique}")
        if not self._numbers:
            raise InputError(f"{self.sentence()}: there is nothing to train on")

    def sentence(self) -> str:
        """The set, where it comes from, and how many rows were left out for which reasons."""
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.left_out.items()))
        left = f", {self.left_out.total()} rows left out ({reasons})" if reasons else ""
        return f"data set {self.name} from {self._table.where}: {len(self)} questions{left}"

    def _cells(self, number: int) -> dict[str, Any]:
        """A row under our names; columns that we have no name for keep theirs."""
        row = self._table[number]
        own = set(self._columns.values())
        rest = {name: cell for name, cell in row.items() if name not in own}
        return rest | {name: row[column] for name, column in self._columns.items()}

    def _found(self, cells: Mapping[str, Any]) -> list[bytes | str]:
        """A row's pictures: encoded, or the path of one that is there."""
        value = cells.get("images")
        members = value if isinstance(value, list) else [value]
        found: list[bytes | str] = []
        for member in members:
            one = member
            if isinstance(one, Mapping):
                one = one.get("bytes") or one.get("path")
            if not one:
                continue
            if not isinstance(one, str | bytes):
                raise UnusableRowError("with a picture of an unknown form")
            if isinstance(one, str) and one not in self._pictures:
                raise UnusableRowError("with a picture that is not there")
            found.append(one)
        return found

    def __len__(self) -> int:
        """Number of questions."""
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Question: ...
    @overload
    def __getitem__(self, index: slice) -> list[Question]: ...
    def __getitem__(self, index: int | slice) -> Question | list[Question]:
        """One question, or those of a slice.

        Raises:
            InputError: If a picture cannot be read.
        """
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = self._numbers[index]
        cells = self._cells(number)
        images = tuple(
            self._pictures.read(one) if isinstance(one, str) else one for one in self._found(cells)
        )
        for image in images:
            _check_picture(image, f"row {number} of {self._table.where}")
        gold = answer_of(cells["answer"])
        row = {name: cell for name, cell in cells.items() if name not in ("images", "prompt")}
        row |= {"answer": gold, "gold": gold}
        if "target" in row:
            row["target"] = _text_of(row["target"])
        return Question(self._ids[index], prompt_of(cells["prompt"]), images, row)


def _check_places(prompt: str, pictures: int) -> None:
    """Refuses a prompt whose places differ from its pictures; without places all stand first."""
    places = prompt.count(_PLACE)
    if places == pictures or places == 0:
        return
    reason = "with fewer pictures than places" if places > pictures else "with too many pictures"
    raise UnusableRowError(reason if pictures else "without its picture")


def _check_picture(image: bytes, where: str) -> None:
    """Reads the head of a picture: a broken one would otherwise stop the run with a traceback."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(image)):
            pass
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError):
        raise InputError(f"{where} has a picture that cannot be read") from None


def _id_of(cell: Any) -> str:
    """The id of a cell; a record's is its index."""
    if isinstance(cell, Mapping):
        cell = cell.get("index")
    return "" if cell is None else str(cell)


def _text_of(cell: Any) -> Any:
    """A reply that is written as a conversation, as its last turn's text."""
    if isinstance(cell, list) and cell and isinstance(cell[-1], Mapping):
        return cell[-1].get("content")
    return cell


def open_named(
    name: str,
    *,
    split: str = "train",
    folder: str | None = None,
    revision: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> NamedQuestions:
    """The questions of a published set; one that was opened before is not read again.

    Args:
        name: A name of ``NAMED_SETS``.
        split: One of its splits.
        folder: A copy of the set's files, or a folder of ``datasets``; None takes the Hub.
        revision: Branch, tag or commit on the Hub.
        columns: Our name of a column -> its name in this copy, where it is none of the known ones.

    Raises:
        InputError: If the name or split is unknown, or the data cannot be loaded or lacks columns.
    """
    return _opened(name, split, folder, revision, tuple(sorted((columns or {}).items())))


@lru_cache(maxsize=4)
def _opened(
    name: str,
    split: str,
    folder: str | None,
    revision: str | None,
    columns: tuple[tuple[str, str], ...],
) -> NamedQuestions:
    known = named_set(name)
    checked_split(name, split)
    if folder is None:
        table, pictures = _from_hub(name, known, split, revision)
    else:
        table, pictures = _from_folder(Path(folder), known, split)
    given = {ours: (theirs,) for ours, theirs in columns}
    needed = {**known.columns, **given}
    found = find_columns(table.columns, known.optional)
    return NamedQuestions(
        name, table, {**found, **resolve(table.where, table.columns, needed)}, pictures
    )


def _from_hub(
    name: str, known: NamedSet, split: str, revision: str | None
) -> tuple[Table, _Pictures]:
    try:
        import datasets
        from huggingface_hub import hf_hub_download
        from huggingface_hub.utils import logging as hub_logging
    except ImportError as error:
        raise InputError("data sets from the Hub need: pip install 'npbench[eval]'") from error
    logging: Any = hub_logging
    before = logging.get_verbosity()
    # five retries would be reported line by line above the one line that says it all
    logging.set_verbosity_error()
    archive = None
    options = {} if known.file is None else {"data_files": known.file}
    try:
        rows = datasets.load_dataset(known.hub, split=split, revision=revision, **options)
        if known.archive is not None:
            archive = Path(
                hf_hub_download(known.hub, known.archive, repo_type="dataset", revision=revision)
            )
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"data set {name!r} cannot be loaded from the Hub ({known.hub}), give data.folder, a "
            f"folder with a copy of its files: {reason}"
        ) from None
    finally:
        logging.set_verbosity(before)
    return Table(known.hub, None, [rows]), _Pictures(None, archive)


def _from_folder(folder: Path, known: NamedSet, split: str) -> tuple[Table, _Pictures]:
    pictures = _Pictures(folder, folder / known.archive if known.archive else None)
    if not (folder / "state.json").exists():
        return open_table(Origin(known.hub, (split,)), source=folder), pictures
    import datasets

    try:
        rows = datasets.load_from_disk(str(folder))
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{folder} cannot be read as a data set: {reason}") from None
    return Table(str(folder), folder, [rows]), pictures
