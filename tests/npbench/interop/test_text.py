"""What all readers of text share: the encoding, and where a fault is."""

import pytest

from npbench.errors import InputError
from npbench.interop.instances import read_instances
from npbench.interop.text import read_lines, whole_number

ENDINGS = (".tsp", ".col", ".clq", ".in", ".json", ".tsv")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("first\nMünchen\n".encode("latin-1"), "line 2: the text must be UTF-8, got byte 0xfc"),
        ("p edge 1 0\n".encode("utf-16"), "line 1: the text must be UTF-8, got byte 0xff"),
        ("c\np edge 1 0\n".encode("utf-16-le"), "line 1: the text must be UTF-8, got a NUL byte"),
    ],
)
def test_another_encoding_is_refused_with_its_line(tmp_path, ending, raw, message):
    path = tmp_path / f"file{ending}"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=message):
        read_instances(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_empty_file_is_refused(tmp_path, ending):
    path = tmp_path / f"file{ending}"
    path.write_text("\n")
    with pytest.raises(InputError, match=r"line [12]: "):
        read_instances(path, task="tsp" if ending == ".json" else None)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_instances(tmp_path / "none.tsp")
    (tmp_path / "folder.col").mkdir()
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_instances(tmp_path / "folder.col")


def test_a_byte_order_mark_and_windows_ends_of_line_are_no_part_of_the_text(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert [(line.number, line.text) for line in read_lines(path)] == [(1, "one"), (2, "two")]


@pytest.mark.parametrize("word", ["1_000", "0x1", "1.0", "\u0663", "", "nan", "9" * 30, "+-1"])
def test_only_digits_are_a_whole_number(word):
    with pytest.raises(InputError, match="the size must be an integer, got"):
        whole_number(word, "the size", low=0)
