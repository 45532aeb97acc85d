"""Files of the user's: read whole, or refused in a sentence."""

import pytest

from asgat.errors import AsgatError
from asgat.files.user_file import read_user_file


def test_the_content_is_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,b\n")
    assert read_user_file(tmp_path / "a.csv").content == b"a,b\n"


def test_what_cannot_be_read_is_told(tmp_path):
    with pytest.raises(AsgatError, match=r"absent\.csv cannot be read: No such file"):
        read_user_file(tmp_path / "absent.csv")
    with pytest.raises(AsgatError, match="is a folder; name the file"):
        read_user_file(tmp_path)
    (tmp_path / "empty.csv").touch()
    with pytest.raises(AsgatError, match="it is empty"):
        read_user_file(tmp_path / "empty.csv")
    with pytest.raises(AsgatError, match=r"no name of a file|cannot be read"):
        read_user_file("a\0b")


def test_the_size_is_bounded(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(AsgatError, match="more than the 1 MiB"):
        read_user_file(tmp_path / "large", limit=2**20)
    (tmp_path / "large").write_bytes(b"x" * 2**20)
    assert len(read_user_file(tmp_path / "large", limit=2**20).content) == 2**20


def test_a_failure_is_one_short_line(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    text = str(read_user_file(tmp_path / "a").failure("line\nbreak " + "y" * 1000))
    assert "\n" not in text
    assert len(text) < 500
