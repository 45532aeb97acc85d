"""Arrays as maps of files: valid ones are read, others refused."""

import io
import zipfile

import numpy as np
import pytest

from asgat.errors import AsgatError
from asgat.files.npy import open_npy


@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.zeros((0, 3)), np.asfortranarray(np.eye(3, dtype=">f4"))]
)
def test_arrays_come_back(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    read = open_npy(tmp_path / "a.npy", "write it again")
    assert read.dtype == array.dtype
    assert np.array_equal(read, array)


def test_changes_stay_in_the_process(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    open_npy(tmp_path / "a.npy", "", "c")[:] = 1.0
    assert open_npy(tmp_path / "a.npy", "").tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        open_npy(tmp_path / "a.npy", "")[:] = 1.0


def header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def zipped():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.npy", b"")
    return stream.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        zipped(),
        header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,)}\n"),
        header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}\n"),
        header(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n") + b"cos\nsystem\n(S'true'\ntR.",
        header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,}\n"),
        header(b"__import__('os').abort()\n"),
        header(b"(" * 200),
    ],
)
def test_what_is_not_an_array_is_refused(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(AsgatError, match=r"^\S*a\.npy cannot be read: [^\n]*; write it again\.$"):
        open_npy(tmp_path / "a.npy", "write it again")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(AsgatError, match="No such file"):
        open_npy(tmp_path / "a.npy", "write it")
