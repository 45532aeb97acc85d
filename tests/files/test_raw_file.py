import os
from pathlib import Path

import pytest

from asgat.errors import AsgatError
from asgat.files.raw_file import RawFile


def test_guard_names_the_file():
    raw = RawFile(Path("a.file"), b"")
    with pytest.raises(AsgatError, match=r"a\.file is damaged: KeyError: 'x'"), raw.guard():
        raise KeyError("x")
    with pytest.raises(AsgatError, match=r"a\.file: wrong"), raw.guard():
        raise AsgatError("wrong")
    with pytest.raises(AsgatError, match=r"^a\.file is damaged: y\. Delete"), raw.guard():
        raise raw.failure("y")
    assert len(str(raw.failure("long " * 1000))) < 500


def test_reading_is_bounded(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 100)
    assert RawFile.read(tmp_path / "a", 100) == RawFile(tmp_path / "a", b"x" * 100)
    with pytest.raises(AsgatError, match="a is damaged: it is larger than 0 MiB"):
        RawFile.read(tmp_path / "a", 99)
    with pytest.raises(AsgatError, match="b cannot be read: No such file or directory; check its name"):
        RawFile.read(tmp_path / "b", 9)
    with pytest.raises(AsgatError, match="is a folder"):
        RawFile.read(tmp_path, 9)


def test_pipes_and_devices_are_refused_without_being_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(AsgatError, match="not a regular file"):
            RawFile.read(path, 9)
