"""A journal survives a writer killed in the middle of a line, and a full disk."""

import errno
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.tuning.journal import Journal

LINES = [{"op_code": i, "text": "x" * i} for i in range(5)]


def read(journal):
    return list(journal.read_logs(0))


@given(st.integers(0, 200))
def test_half_a_line_is_cut_off_before_the_next_one(tmp_path_factory, length):
    path = tmp_path_factory.mktemp("journal") / "j"
    Journal(path).append_logs(LINES)
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    lines = whole[:length].count(b"\n")
    assert read(Journal(path)) == LINES[:lines]
    Journal(path).append_logs([{"op_code": 9}])
    assert read(Journal(path)) == [*LINES[:lines], {"op_code": 9}]


def test_half_a_line_longer_than_a_block(tmp_path):
    journal = Journal(tmp_path / "j")
    journal.append_logs([{"op_code": 1}])
    with (tmp_path / "j").open("ab") as file:
        file.write(b"x" * 200_000)
    journal.append_logs([{"op_code": 2}])
    assert [json.loads(line)["op_code"] for line in (tmp_path / "j").read_text().splitlines()] == [1, 2]


def test_a_full_disk_is_an_error_and_adds_nothing(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "j")
    journal.append_logs(LINES)

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(AsgatError, match=r"No space left on device\. Free some space"):
            journal.append_logs([{"op_code": 7}])
    assert read(Journal(tmp_path / "j")) == LINES
    journal.append_logs([{"op_code": 8}])
    assert read(Journal(tmp_path / "j")) == [*LINES, {"op_code": 8}]
