import pickle
import struct
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from asgat.data import legacy_pickle as module
from asgat.data.legacy_pickle import unpickle_array, unpickle_csr, unpickle_neighbours
from asgat.errors import AsgatError

MATRIX = sp.csr_array(np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3]], dtype=np.float32))


@pytest.mark.parametrize("array", [np.arange(6, dtype=np.int32).reshape(2, 3), np.array([0.5, -1]), np.zeros((0, 2))])
def test_arrays(raw, legacy_pickle, array):
    read = unpickle_array(raw(legacy_pickle(array)))
    assert read.dtype == array.dtype
    assert np.array_equal(read, array)


def test_sparse_matrices(raw, legacy_pickle):
    read = unpickle_csr(raw(legacy_pickle(MATRIX)))
    assert np.array_equal(read.toarray(), MATRIX.toarray())


def test_neighbours(raw, legacy_pickle):
    ends, num_nodes = unpickle_neighbours(raw(legacy_pickle({1: [0, 2], 0: [], 2: [2]})))
    assert num_nodes == 3
    assert ends.tolist() == [[1, 1, 2], [0, 2, 2]]


def test_agrees_with_pickle_where_that_is_safe(raw, legacy_pickle):
    content = legacy_pickle(np.arange(4, dtype=np.int32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy has moved since those files were made
        truth = pickle.loads(content, encoding="latin1")
    assert np.array_equal(unpickle_array(raw(content)), truth)


@pytest.mark.parametrize("module_name", [b"os", b"posix", b"builtins", b"__builtin__"])
@pytest.mark.parametrize("read", [unpickle_array, unpickle_csr, unpickle_neighbours])
def test_no_code_is_run(raw, tmp_path, read, module_name):
    command = f"touch {tmp_path}/ran".encode()
    name = b"system" if b"o" in module_name[:2] else b"eval"
    attack = b"\x80\x02c" + module_name + b"\n" + name + b"\nU" + bytes([len(command)]) + command + b"\x85R."
    with pytest.raises(AsgatError, match=rf"asks for {module_name.decode()}\.{name.decode()}"):
        read(raw(attack))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_a_trap_made_by_python_is_refused(raw, protocol, tmp_path):
    class Trap:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    with pytest.raises(AsgatError, match="no Planetoid file needs"):
        unpickle_array(raw(pickle.dumps(Trap(), protocol)))
    assert not (tmp_path / "ran").exists()


def test_classes_of_the_reader_cannot_be_changed(raw, legacy_pickle):
    change = b"(N}(U\x05valueK\x01utb"
    for name in (b"numpy\nndarray", b"numpy\ndtype", b"scipy.sparse.csr\ncsr_matrix", b"__builtin__\nlist"):
        with pytest.raises(AsgatError):
            unpickle_array(raw(b"\x80\x02c" + name + b"\n" + change + b"."))
    assert unpickle_array(raw(legacy_pickle(np.ones(2)))).tolist() == [1, 1]


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02]r" + struct.pack("<I", 2**28) + b".",
        b"\x80\x02" + b"]" * 100 + b".",
        b"\x80\x02" + b"U\x01aR" * 20 + b".",
    ],
    ids=["memo", "instructions", "calls"],
)
def test_greedy_pickles_are_refused_before_they_run(raw, content, monkeypatch):
    monkeypatch.setattr(module, "MAX_INSTRUCTIONS", 50)
    monkeypatch.setattr(module, "_Unpickler", lambda *_, **__: pytest.fail("it was run"))
    with pytest.raises(AsgatError, match="more memory"):
        unpickle_array(raw(content))


def test_too_large(raw, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    with pytest.raises(AsgatError, match="11 bytes, and at most 10"):
        unpickle_array(raw(b"\x80\x02" + b"N" * 8 + b"."))


def test_one_list_at_many_nodes_is_not_written_out(raw):
    first = b"K\x00](" + b"K\x00" * 250 + b"eq\x01"
    others = b"".join(b"K" + bytes([node]) + b"h\x01" for node in range(1, 200))
    shared = b"\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(" + first + others + b"u."
    with pytest.raises(AsgatError, match="more neighbours than it has room for"):
        unpickle_neighbours(raw(shared))


def changed(**attributes):
    matrix = MATRIX.copy()
    for name, value in attributes.items():
        setattr(matrix, name, np.array(value, dtype=np.float32 if name == "data" else np.int32))
    return matrix


@pytest.mark.parametrize(
    "matrix",
    [
        changed(indices=[1, 0, 3]),
        changed(indices=[1, 0, -1]),
        changed(indptr=[0, 1, 1, 4]),
        changed(indptr=[0, 2, 1, 3]),
        changed(indptr=[1, 1, 1, 3]),
        changed(indptr=[0, 1, 3]),
        changed(data=[1, 2]),
        changed(indices=[[1, 0, 2]]),
    ],
)
def test_indices_that_do_not_fit(raw, legacy_pickle, matrix):
    with pytest.raises(AsgatError, match="indices that do not fit its shape"):
        unpickle_csr(raw(legacy_pickle(matrix)))


def test_the_wrong_kind(raw, legacy_pickle):
    with pytest.raises(AsgatError, match="holds int where array is expected"):
        unpickle_array(raw(legacy_pickle(5)))
    with pytest.raises(AsgatError, match="holds str where int is expected"):
        unpickle_neighbours(raw(legacy_pickle({0: ["0"]})))
    with pytest.raises(AsgatError, match="holds NoneType where list is expected"):
        unpickle_neighbours(raw(legacy_pickle({1: []})))
    with pytest.raises(AsgatError, match="are not expected"):
        unpickle_array(raw(legacy_pickle(np.zeros(2, dtype=complex))))
    with pytest.raises(AsgatError, match=r"an array of shape \(3,\) with 16 bytes"):
        unpickle_array(raw(legacy_pickle(np.zeros(2)).replace(b"J\2\0\0\0t", b"J\3\0\0\0t")))


@pytest.mark.parametrize(
    "value",
    [np.arange(9, dtype=np.int32), MATRIX, {0: [1], 1: [0], 2: []}],
    ids=["array", "csr", "neighbours"],
)
def test_damage_anywhere_is_our_error(raw, legacy_pickle, value):
    content = legacy_pickle(value)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(1000):
        mutant = bytearray(content)
        for _ in range(rng.integers(1, 4)):
            mutant[rng.integers(len(mutant))] = rng.integers(256)
        cut = len(mutant) if rng.random() < 0.8 else rng.integers(len(mutant))
        for read in (unpickle_array, unpickle_csr, unpickle_neighbours):
            try:
                read(raw(bytes(mutant[:cut])))
            except AsgatError:
                refused += 1
    assert refused > 2000
