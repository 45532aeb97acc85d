import gzip
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.disk.edge_reader import read_array, read_edges
from asgat.errors import AsgatError

ENDS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 99)), min_size=1, max_size=30)


def joined(path, size):
    parts = list(read_edges(path, size))
    source, target = (np.concatenate([part[i] for part in parts]).tolist() for i in (0, 1))
    weights = None if parts[0][2] is None else np.concatenate([part[2] for part in parts]).tolist()
    return source, target, weights


@given(
    ENDS,
    st.sampled_from([",", ";", "\t", " "]),
    st.booleans(),
    st.sampled_from(["", "from,to\n", "# a comment\n"]),
    st.integers(8, 400),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_text_gives_the_edges_it_names(tmp_path_factory, edges, separator, weighted, top, size, newline, ends_well):
    """Whatever the separator, the heading and the parts it is read in."""
    top = top.replace("from,to", separator.join(["from", "to", "w"][: 2 + weighted]))
    lines = [separator.join(map(str, edge[: 2 + weighted])) for edge in edges]
    path = tmp_path_factory.mktemp("edges") / "edges.csv"
    path.write_bytes((top + newline.join(lines) + (newline if ends_well else "")).encode())
    source, target, weight = joined(path, size)
    assert source == [edge[0] for edge in edges]
    assert target == [edge[1] for edge in edges]
    assert weight == ([edge[2] for edge in edges] if weighted else None)


@pytest.mark.parametrize("turned", [False, True])
def test_arrays(tmp_path, turned):
    ends = np.arange(10).reshape(2, 5)
    np.save(tmp_path / "e.npy", ends.T if turned else ends)
    assert joined(tmp_path / "e.npy", 32) == ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9], None)
    np.savez(tmp_path / "e.npz", edge_index=ends, edge_weight=np.arange(5.0))
    assert joined(tmp_path / "e.npz", 32) == ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [0, 1, 2, 3, 4])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,1\n1,2\n2,x\n", r"Line 3 of .* should hold 2 numbers, but is '2,x'"),
        ("0,1\n\n1,2\n2\n", "Line 4"),
        ("0,1\n1,2,3\n4\n", r"Line 2 of .* should hold 2 numbers, but is '1,2,3'"),
        ("0,1\n" + "1," * 258 + "\n", r"Line 2 of .* should hold 2 numbers, but is '1,1,"),
        ("0,1,2,3\n", "two node numbers a line"),
        ("0,1\n0.5,2\n", "names a node 0.5"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, words):
    (tmp_path / "e.csv").write_text(text)
    with pytest.raises(AsgatError, match=words):
        list(read_edges(tmp_path / "e.csv"))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(AsgatError, match="ends in"):
        list(read_edges(tmp_path / "e.parquet"))
    with pytest.raises(AsgatError, match="No such file"):
        list(read_edges(tmp_path / "e.csv"))
    np.save(tmp_path / "e.npy", np.zeros((3, 3)))
    with pytest.raises(AsgatError, match="should hold whole numbers"):
        list(read_edges(tmp_path / "e.npy"))
    np.savez(tmp_path / "e.npz", edges=np.zeros(2))
    with pytest.raises(AsgatError, match="no edge_index"):
        list(read_edges(tmp_path / "e.npz"))
    (tmp_path / "f.npy").write_bytes(b"nothing")
    with pytest.raises(AsgatError, match="cannot be read: EOF"):
        list(read_edges(tmp_path / "f.npy"))


@pytest.mark.parametrize("name", ["e.csv", "e.npy", "e.npz"])
def test_a_pipe_is_refused(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(AsgatError, match="not a regular file"):
        list(read_edges(tmp_path / name))


def test_a_small_archive_that_expands_to_much_is_refused(tmp_path, free_memory):
    np.savez_compressed(tmp_path / "e.npz", edge_index=np.zeros((2, 50_000), dtype=np.int64))
    assert len(list(read_edges(tmp_path / "e.npz"))) == 1
    free_memory(2**18)
    with pytest.raises(AsgatError, match=r"e\.npz needs 1 MiB of memory, and 0 MiB are free"):
        list(read_edges(tmp_path / "e.npz"))


X = np.random.default_rng(0).random((40, 3)).astype(np.float32)


def test_a_npy_file_is_mapped(tmp_path):
    np.save(tmp_path / "x.npy", X)
    assert isinstance(read_array(tmp_path / "x.npy").base, np.memmap)
    assert np.array_equal(read_array(tmp_path / "x.npy"), X)


@pytest.mark.parametrize("heading", [True, False])
@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_text_with_a_heading_or_without(tmp_path, separator, heading):
    lines = [separator.join("abc")] * heading + [separator.join(map(str, row)) for row in X.tolist()]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    assert np.allclose(read_array(tmp_path / "x.csv"), X)


def test_whole_numbers(tmp_path):
    (tmp_path / "y.csv").write_text("\n".join(str(v % 2) for v in range(40)))
    assert read_array(tmp_path / "y.csv", whole=True).tolist() == [0, 1] * 20


@pytest.mark.parametrize("content", ["1,2\n3,x\n", "", "a,b\n", "1,2\n3\n"])
def test_text_that_is_not_numbers(tmp_path, content):
    (tmp_path / "bad.csv").write_text(content)
    with pytest.raises(AsgatError, match="cannot be read as numbers"):
        read_array(tmp_path / "bad.csv")


def test_a_missing_file(tmp_path):
    with pytest.raises(AsgatError, match="is not a file"):
        read_array(tmp_path / "absent.npy")


def test_a_packed_edge_list(tmp_path):
    path = tmp_path / "e.txt.gz"
    path.write_bytes(gzip.compress(b"# a comment\n0 1\n1 2\n"))
    assert joined(path, 4) == ([0, 1], [1, 2], None)
    path.write_bytes(gzip.compress(b"0 1\n1 2\n" * 1000)[:-10])
    with pytest.raises(AsgatError, match=r"e\.txt\.gz cannot be read: .*end-of-stream"):
        joined(path, 4)
    path.write_bytes(b"0 1\n")
    with pytest.raises(AsgatError, match=r"e\.txt\.gz cannot be read: Not a gzipped file"):
        joined(path, 4)
