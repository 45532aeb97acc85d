"""Files of the user's: read whole, or refused in a sentence."""

import gzip
import os
from pathlib import Path

import pytest

from asgat.errors import AsgatError
from asgat.files.user_file import UserFile, ending_of, is_packed, read_user_file


def test_the_content_is_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,b\n")
    assert read_user_file(tmp_path / "a.csv").content == b"a,b\n"


def test_what_cannot_be_read_is_reported(tmp_path):
    with pytest.raises(AsgatError, match=r"absent\.csv cannot be read: No such file"):
        read_user_file(tmp_path / "absent.csv")
    with pytest.raises(AsgatError, match="is a folder; name the file"):
        read_user_file(tmp_path)
    (tmp_path / "empty.csv").touch()
    with pytest.raises(AsgatError, match="it is empty"):
        read_user_file(tmp_path / "empty.csv")
    with pytest.raises(AsgatError, match=r"not a file name|cannot be read"):
        read_user_file("a\0b")


def test_the_size_is_bounded(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(AsgatError, match="larger than 1 MiB"):
        read_user_file(tmp_path / "large", limit=2**20)
    (tmp_path / "large").write_bytes(b"x" * 2**20)
    assert len(read_user_file(tmp_path / "large", limit=2**20).content) == 2**20


def test_a_failure_is_one_short_line(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    text = str(read_user_file(tmp_path / "a").failure("line\nbreak " + "y" * 1000))
    assert "\n" not in text
    assert len(text) < 500


def test_a_pipe_or_a_device_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    for path in (tmp_path / "a.csv", "/dev/zero"):
        with pytest.raises(AsgatError, match="not a regular file"):
            read_user_file(path)


def test_a_text_needs_ten_times_its_size(tmp_path, free_memory):
    (tmp_path / "a").write_bytes(b"x" * 2**20)
    free_memory(10 * 2**20)
    assert len(read_user_file(tmp_path / "a").text()) == 2**20
    free_memory(9 * 2**20)
    with pytest.raises(AsgatError, match="a needs 10 MiB of memory, and 9 MiB are free"):
        read_user_file(tmp_path / "a").text()


def test_a_file_that_does_not_fit_is_not_read(tmp_path, free_memory):
    (tmp_path / "a").write_bytes(bytes(2**20))
    free_memory(2**19)
    with pytest.raises(AsgatError, match="a needs 1 MiB of memory, and 0 MiB are free"):
        read_user_file(tmp_path / "a")


@pytest.mark.parametrize(("text", "words"), [("{", "it is not JSON"), ("[" * 100_000, "JSON"), ("[1]", "an object")])
def test_json(tmp_path, text, words):
    assert UserFile(tmp_path, b'{"a": [1]}').json_object() == {"a": [1]}
    with pytest.raises(AsgatError, match=words):
        UserFile(tmp_path, text.encode()).json_object()


@pytest.mark.parametrize(
    ("name", "ending", "packed"),
    [
        ("a.csv", ".csv", False),
        ("a.CSV.GZ", ".csv", True),
        ("a.b.tsv.gz", ".tsv", True),
        ("a.npz.gz", ".gz", False),
        (".gz", "", False),
        ("csv.gz", ".gz", False),
    ],
)
def test_the_ending_of_a_packed_text_is_that_of_the_text(name, ending, packed):
    assert (ending_of(name), is_packed(Path(name))) == (ending, packed)


def test_a_packed_text_is_unpacked(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n") + gzip.compress(b"1,2\n"))
    assert read_user_file(path) == UserFile(path, b"a,b\n1,2\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,b\n", "gzip cannot unpack it"),
        (gzip.compress(b"a,b\n" * 100, mtime=0)[:-9], "gzip cannot unpack it"),
        (gzip.compress(b"a,b\n", mtime=0)[:12] + b"\xff" * 20, "gzip cannot unpack it"),
        (gzip.compress(b"", mtime=0), "it is empty"),
        (b"", "it is empty"),
    ],
)
def test_a_text_that_is_not_packed_well_is_refused(tmp_path, content, words):
    (tmp_path / "a.csv.gz").write_bytes(content)
    with pytest.raises(AsgatError, match=rf"a\.csv\.gz cannot be used: .*{words}"):
        read_user_file(tmp_path / "a.csv.gz")


def test_what_a_text_unpacks_to_is_bounded(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"0," * 2**20))
    assert len(read_user_file(path).content) == 2**21
    with pytest.raises(AsgatError, match="unpacks to more than 1 MiB, the most that is read"):
        read_user_file(path, limit=2**20)
