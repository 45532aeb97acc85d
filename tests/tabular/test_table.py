"""Tables from files, and the errors for files that are not tables."""

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.tabular import table as module
from asgat.tabular.column import Column
from asgat.tabular.table import Table, frame_to_table, read_npz_tables, read_table

CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=6)


@pytest.fixture
def write(tmp_path):
    def call(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return call


@given(st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(CELL, min_size=n, max_size=n), min_size=1, max_size=5)))
def test_what_the_csv_module_writes_is_read(tmp_path_factory, rows):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow([f"c{i}" for i in range(len(rows[0]))])
    writer.writerows(rows)
    path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_bytes(stream.getvalue().encode())
    found = read_table(path)
    assert [tuple(column.values) for column in found.columns.values()] == list(zip(*rows, strict=True))


@given(st.binary(max_size=300), st.sampled_from([".csv", ".tsv", ".csv.gz", ".npz", ".parquet"]))
def test_any_bytes_are_a_table_or_a_sentence(tmp_path_factory, content, ending):
    path = tmp_path_factory.mktemp("table") / f"a{ending}"
    starts = {".npz": b"PK\x03\x04", ".parquet": b"PAR1", ".csv.gz": b"\x1f\x8b\x08" + bytes(7)}
    path.write_bytes(starts.get(ending, b"") + content)
    try:
        assert read_table(path).columns
    except AsgatError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right


def test_separators_are_noticed(write):
    assert list(read_table(write("a.csv", "a;b\n1;2\n")).columns) == ["a", "b"]
    assert list(read_table(write("a.csv", "a\tb\n1\t2\n")).columns) == ["a", "b"]
    assert list(read_table(write("a.tsv", "a\tb,c\n1\t2\n")).columns) == ["a", "b,c"]
    assert "semicolons" in read_table(write("a.csv", "a;b\n1;2\n")).notes[0]


def test_a_byte_order_mark_blank_lines_and_a_nameless_column(write):
    found = read_table(write("a.csv", "\ufeff,id,b\n0,x,1\n\n1,y,2\n"))
    assert list(found.columns) == ["id", "b"]
    assert "without a name" in found.notes[0]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "a,b\n1\n", "line 2 has 1 fields, but the heading has 2"),
        ("a.csv", "a,a\n1,2\n", "two columns are called 'a'"),
        ("a.csv", "\n\n", "names no column"),
        ("a.csv", "näme,b\n1,2\n".encode("latin1"), "line 1 holds the byte 0xe4, which is not UTF-8"),
        ("a.csv", b"a,b\n1,\0\n", "null bytes"),
        ("a.csv", 'a,b\n1,"2\n', "not a valid line"),
        ("a.csv", "a,b\n" + "x" * 200_000 + ",1\n", "field limit|not a valid line"),
        ("a.csv", b"PAR1....", "is a Parquet file"),
        ("a.csv", b"PK\x03\x04...", "zip archive"),
        ("a.csv", "a,b".encode("utf-16"), "UTF-16"),
        ("a.csv", gzip.compress(b"a,b", mtime=0), "is packed by gzip; add .gz to its name"),
        ("a.csv.gz", gzip.compress(gzip.compress(b"a,b", mtime=0), mtime=0), "is packed by gzip"),
        ("a.csv.gz", gzip.compress(b"a,b\n1\n", mtime=0), r"a\.csv\.gz cannot be used: line 2 has 1 fields"),
        ("a.npz.gz", b"PK", "files that can be read end in .csv"),
        ("a.parquet", "a,b\n1,2\n", "is not such a file"),
        ("a.npz", "a,b\n1,2\n", "is not such a file"),
        ("a.xlsx", "a", "files that can be read end in .csv"),
        ("a", "a", "ends in 'nothing'"),
    ],
)
def test_what_is_not_a_table_is_refused(write, name, content, words):
    with pytest.raises(AsgatError, match=words):
        read_table(write(name, content))


def test_a_missing_column_is_named(write):
    with pytest.raises(AsgatError, match=r"a\.csv has no column 'lable' \(--label\)\. Did you mean 'label'"):
        read_table(write("a.csv", "id,label\n1,2\n")).column("lable", "--label")


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    held = {"id": [1, 2, 3], "f": [0.5, None, 2.0], "b": [True, None, False], "s": ["x", "", None]}
    stored = pyarrow.table({**held, "c": pyarrow.array(["u", "v", "u"]).dictionary_encode()})
    parquet.write_table(stored, tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet")
    assert found.column("id").texts() == ["1", "2", "3"]
    assert found.column("b").texts() == ["true", "", "false"]
    assert found.column("s").missing.tolist() == [False, True, True]
    assert found.column("c").texts() == ["u", "v", "u"]
    np.testing.assert_array_equal(found.column("f").numbers, [0.5, np.nan, 2.0])
    parquet.write_table(pyarrow.table({"a": [[1], [2]]}), tmp_path / "list.parquet")
    with pytest.raises(AsgatError, match="'a' holds list"):
        read_table(tmp_path / "list.parquet")


@pytest.mark.parametrize("limit", [5000 * 8 - 1, 5000 * (8 + 100) - 1])
def test_parquet_is_bounded_before_it_is_read(tmp_path, monkeypatch, free_memory, limit):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": np.zeros(5000)}), tmp_path / "a.parquet")
    free_memory(limit)
    monkeypatch.setattr(parquet.ParquetFile, "read", lambda *_: pytest.fail("it was read"))
    with pytest.raises(AsgatError, match="MiB are free"):
        read_table(tmp_path / "a.parquet", row_bytes=100)


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(AsgatError, match=r"pip install 'asgat\[tables\]'"):
        read_table(tmp_path / "a.parquet")


def test_arrays(tmp_path):
    arrays = {"x": np.arange(6.0).reshape(3, 2), "y": np.array([0, 1, -1]), "edge_index": np.array([[0, 1], [1, 2]])}
    arrays |= {"train_mask": np.ones((3, 2), dtype=bool), "weight": np.array([1.0, 2.0])}
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    columns = ["x0", "x1", "y", "train_mask0", "train_mask1"]
    assert list(read_table(tmp_path / "a.npz").columns) == columns
    edges, nodes = read_npz_tables(tmp_path / "a.npz")
    assert nodes is not None
    assert list(nodes.columns) == columns
    assert edges.column("source").texts() == ["0", "1"]
    assert edges.column("weight").texts() == ["1", "2"]
    np.savez(tmp_path / "b.npz", edges=np.array([[0, 1], [1, 2], [2, 0]]))
    transposed, nodes = read_npz_tables(tmp_path / "b.npz")
    assert transposed.column("target").texts() == ["1", "2", "0"]
    assert nodes is None
    np.savez(tmp_path / "c.npz", edges=np.zeros((3, 3)))
    with pytest.raises(AsgatError, match="whole numbers of shape"):
        read_npz_tables(tmp_path / "c.npz")


def test_no_pickle_is_opened(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(AsgatError, match="not plain numbers"):
        read_table(tmp_path / "a.npz")


def test_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, 2], "f": [1.0, None], "s": pandas.Series(["x", None], dtype="string")})
    found = frame_to_table(frame, "nodes")
    assert found.column("id").texts() == ["1", "2"]
    assert found.column("f").missing.tolist() == [False, True]
    assert found.column("s").texts() == ["x", ""]


def test_columns_are_bounded_before_they_are_made(write, monkeypatch):
    monkeypatch.setattr(module, "MAX_COLUMNS", 3)
    assert list(read_table(write("a.csv", "a,b,c\n1,2,3\n")).columns) == ["a", "b", "c"]
    with pytest.raises(AsgatError, match="more than 3 columns"):
        read_table(write("a.csv", "a,b,c,d\n1,2,3,4\n"))


def test_what_parquet_unpacks_to_is_bounded(tmp_path, free_memory):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": ["x" * 60_000, "y"]}), tmp_path / "a.parquet")
    free_memory(50_000)
    with pytest.raises(AsgatError, match="MiB are free"):
        read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("array", "row_bytes"), [(np.zeros((1000, 60), np.uint8), 0), (np.zeros(1000), 128), (np.zeros(60_000), 0)]
)
def test_what_arrays_expand_to_is_bounded(tmp_path, free_memory, array, row_bytes):
    np.savez_compressed(tmp_path / "a.npz", x=array)
    read_table(tmp_path / "a.npz", row_bytes)
    free_memory(100_000)
    with pytest.raises(AsgatError, match=r"a\.npz needs .* MiB are free"):
        read_table(tmp_path / "a.npz", row_bytes)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_many_features_are_read_where_they_fit(tmp_path, free_memory, save):
    """They take 300 MiB, and as many again once they are encoded."""
    save(tmp_path / "a.npz", x=np.zeros((800_000, 99), np.float32))
    assert len(read_table(tmp_path / "a.npz").columns) == 99
    free_memory(500 * 2**20)
    with pytest.raises(AsgatError, match=r"a\.npz needs 755 MiB of memory, and 500 MiB are free; close other programs"):
        read_table(tmp_path / "a.npz")


def test_a_table_without_rows_is_a_table(write):
    assert len(read_table(write("a.csv", "source,target\n"))) == 0


@pytest.mark.timeout(100)
def test_many_columns_and_repeated_headings_are_quick(write):
    """Counting each heading among all others took minutes; this takes half a second."""
    names = [f"c{i}" for i in range(90_000)]
    assert len(read_table(write("a.csv", f"{','.join(names)}\n{','.join('1' for _ in names)}\n")).columns) == 90_000
    with pytest.raises(AsgatError, match="two columns are called 'c7'"):
        read_table(write("a.csv", f"{','.join([*names, 'c7'])}\n"))


def test_missing_numbers_of_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    words = pyarrow.array(["u", None, "v"]).dictionary_encode()
    held = {
        "i": [1, None, 3],
        "w": words,
        "n": pyarrow.nulls(3),
        "u": pyarrow.array([2**64 - 1, 0, 1], pyarrow.uint64()),
    }
    parquet.write_table(pyarrow.table(held), tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet")
    np.testing.assert_array_equal(found.column("i").numbers, [1, np.nan, 3])
    assert found.column("w").texts() == ["u", "", "v"]
    assert found.column("n").missing.all()
    assert found.column("u").texts() == ["18446744073709551615", "0", "1"]


@pytest.mark.parametrize(("ending", "separator"), [("csv", b","), ("tsv", b"\t")])
def test_a_packed_text_is_read_as_the_text(write, ending, separator):
    text = b"id,kind\n1,a\n2,b\n".replace(b",", separator)
    plain, packed = read_table(write(f"a.{ending}", text)), read_table(write(f"a.{ending}.gz", gzip.compress(text)))
    assert packed.source == f"a.{ending}.gz"
    assert {name: column.texts() for name, column in packed.columns.items()} == {
        name: column.texts() for name, column in plain.columns.items()
    }


def test_an_unknown_name_lists_named_columns_before_numbered_ones():
    names = ["id", *(f"x{i}" for i in range(40)), "label"]
    table = Table({name: Column.of_array(name, np.zeros(2)) for name in names}, "g.npz")
    with pytest.raises(AsgatError, match=r"Did you mean 'label'\? Choose from: id, label, x0, x1, .* \(42 in all\)"):
        table.column("lable", "--label")
