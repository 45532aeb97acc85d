import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from asgat.errors import AsgatError
from asgat.files.npz import open_npy, read_npz


def zipped(method=zipfile.ZIP_DEFLATED, **members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("dtype", ["?", "u1", "<i8", ">i4", "f4", "f8"])
def test_arrays_come_back(raw, npz, dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    read = read_npz(raw(npz(a=array, b=np.asfortranarray(array), c=array[:0], d=array[0, 0])), ["b", "a", "c", "d"])
    assert list(read) == ["b", "a", "c", "d"]
    assert read["a"].dtype == array.dtype
    for name, value in {"a": array, "b": array, "c": array[:0], "d": array[0, 0]}.items():
        assert np.array_equal(read[name], value)


class Trap:
    fired = False

    def __reduce__(self):
        return setattr, (Trap, "fired", True)


@pytest.mark.parametrize("array", [np.array([Trap()], dtype=object), np.array(["text"]), np.array([1j])])
def test_objects_and_text_are_refused(raw, npz, array):
    with pytest.raises(AsgatError, match=r"some\.file is damaged: a\.npy holds .*not plain numbers"):
        read_npz(raw(npz(a=array)), ["a"])
    assert not Trap.fired


def test_a_zip_bomb_is_refused_before_it_is_unpacked(raw, free_memory, monkeypatch):
    bomb = zipped(a=npy(np.zeros(2**20)))
    assert len(bomb) < 2**20 / 50
    read_npz(raw(bomb), ["a"])
    free_memory(2**23 - 1)
    monkeypatch.setattr(np, "empty", lambda *_, **__: pytest.fail("it was unpacked"))
    with pytest.raises(AsgatError, match=r"some\.file needs 8 MiB of memory, and 8 MiB are free"):
        read_npz(raw(bomb), ["a"])
    free_memory(2**24 - 1)
    with pytest.raises(AsgatError, match="needs 16 MiB of memory, and 16 MiB are free"):
        read_npz(raw(bomb), ["a"], number_bytes=8)


def test_a_tiny_archive_that_promises_terabytes_is_refused(raw, free_memory):
    header = npy(np.zeros(2)).replace(b"(2,), }" + b" " * 11, b"(137438953472,), }")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", header)
        archive.infolist()[0].file_size = 2**40 + 128  # in the directory, too
    free_memory(2**30)
    with pytest.raises(AsgatError, match="needs 1,048,576 MiB of memory, and 1,024 MiB are free"):
        read_npz(raw(stream.getvalue()), ["a"])


def test_reading_takes_what_is_counted(raw, npz):
    """Nothing is held twice, however well the array is packed."""
    content = npz(a=np.zeros(2**21))
    tracemalloc.start()
    read_npz(raw(content), ["a"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 2**24 <= peak < 1.25 * 2**24


def test_a_directory_that_understates_a_size_does_not_unpack_it_all(raw):
    bomb = bytearray(zipped(a=npy(np.zeros(2**22))))
    size_field = bomb.rindex(b"PK\x01\x02") + 24
    bomb[size_field : size_field + 4] = struct.pack("<I", 1000)
    tracemalloc.start()
    with pytest.raises(AsgatError):
        read_npz(raw(bytes(bomb)), ["a"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22  # unpacked, it has eight times as many bytes


def test_lzma_is_refused(raw):
    with pytest.raises(AsgatError, match="compressed by method 14"):
        read_npz(raw(zipped(zipfile.ZIP_LZMA, a=npy(np.zeros(2)))), ["a"])


def test_an_archive_of_many_arrays(raw, free_memory, monkeypatch):
    content = zipped(**{f"a{i}": npy(np.array([i])) for i in range(100)})
    assert [int(array[0]) for array in read_npz(raw(content), None).values()] == list(range(100))
    free_memory(100 * 1000)
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("its directory was read"))
    with pytest.raises(AsgatError, match="MiB are free"):
        read_npz(raw(content), None)


def test_a_header_that_promises_more_than_there_is(raw):
    header = npy(np.zeros(2)).replace(b"(2,)", b"(9,)")
    with pytest.raises(AsgatError, match=r"promises shape \(9,\)"):
        read_npz(raw(zipped(a=header)), ["a"])


def test_missing_array(raw, npz):
    with pytest.raises(AsgatError, match="the array 'b' is not in it"):
        read_npz(raw(npz(a=np.zeros(1))), ["a", "b"])


def test_damage_anywhere_is_our_error(raw, npz):
    content = npz(a=np.arange(50), b=np.ones(3))
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(1500):
        mutant = bytearray(content)
        for _ in range(rng.integers(1, 4)):
            mutant[rng.integers(len(mutant))] = rng.integers(256)
        cut = len(mutant) if rng.random() < 0.8 else rng.integers(len(mutant))
        try:
            read_npz(raw(bytes(mutant[:cut])), ["a", "b"])
        except AsgatError:
            refused += 1
    assert refused > 1000


@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.zeros((0, 3)), np.asfortranarray(np.eye(3, dtype=">f4"))]
)
def test_mapped_arrays_come_back(tmp_path, array):
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


def archive_of_one():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.npy", b"")
    return stream.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        archive_of_one(),
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
