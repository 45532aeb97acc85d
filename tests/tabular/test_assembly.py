"""Which column is what, and sentences for what does not fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.tabular.assembly import assemble, read_graph
from asgat.tabular.column import Column
from asgat.tabular.table import Table


def table(where, /, **columns):
    return Table({name: Column.of_texts(name, cells) for name, cells in columns.items()}, where)


EDGES = table("edges.csv", source=["a", "b"], target=["b", "c"])
NODES = table("nodes.csv", id=["a", "b", "c"], kind=["x", "", "y"], f=["1", "2", "3"])


def test_the_usual_names_are_found():
    own = assemble(EDGES, NODES, label="kind")
    assert own.ids == ["a", "b", "c"]
    assert own.edges.tolist() == [[0, 1], [1, 2]]
    assert own.weight is None
    assert own.label is not None
    assert own.label.missing.tolist() == [False, True, False]
    assert [column.name for column in own.features] == ["f"]
    assert own.columns["id"] == "id"


@given(st.permutations(range(6)), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_order_of_the_nodes_does_not_matter(order, pairs):
    edges = table("e", source=[f"n{a}" for a, _ in pairs], target=[f"n{b}" for _, b in pairs])
    own = assemble(edges, table("n", id=[f"n{i}" for i in order]))
    named = [(own.ids[a], own.ids[b]) for a, b in own.edges.T]
    assert named == [(f"n{a}", f"n{b}") for a, b in pairs]


def test_guesses_are_told():
    edges = table("e.csv", left=["a"], right=["b"])
    own = assemble(edges, table("n.csv", who=["a", "b"], f=["1", "2"]))
    assert "first column of n.csv, 'who'" in own.notes[0]
    assert "'left' and 'right'" in own.notes[1]
    weighted = assemble(table("e.csv", src=["a"], dst=["b"], weight=["2"]), table("n.csv", id=["a", "b"]))
    assert weighted.weight is not None
    assert weighted.weight.tolist() == [2.0]
    assert "taken as the weight" in weighted.notes[0]


@pytest.mark.parametrize(
    ("edges", "nodes", "options", "words"),
    [
        (EDGES, NODES, {"label": "class"}, "no column 'class'"),
        (EDGES, NODES, {"id": "nr"}, "no column 'nr'"),
        (EDGES, NODES, {"split": "part"}, "no column 'part'"),
        (EDGES, NODES, {"source": "from", "target": "to"}, "no column 'from'"),
        (EDGES, NODES, {"source": "source"}, "--source and --target"),
        (EDGES, NODES, {"ignore": ["g"]}, "no column 'g'"),
        (EDGES, NODES, {"weight": "w"}, "no column 'w'"),
        (table("e", a=["1"], b=["2"], c=["3"]), NODES, {}, "Which columns of e are the ends"),
        (table("e", source=["a"], target=["z"]), NODES, {}, "names the node 'z' .* does not have; add"),
        (table("e", source=["q", "a"], target=["z", "z"]), NODES, {}, "names the node 'q'"),
        (table("e", source=["a"], target=[""]), NODES, {}, "names no node in row 1"),
        (EDGES, table("n", id=["a", "a"], f=["1", "2"]), {}, "two nodes with the id 'a'"),
        (EDGES, table("n", id=["a", " "], f=["1", "2"]), {}, "no id in row 2"),
        (table("e", source=["a"], target=["b"], w=["heavy"]), NODES, {"weight": "w"}, "'heavy' .* is no number"),
        (table("e", source=["a"], target=["b"], w=["-1"]), NODES, {"weight": "w"}, "is -1"),
        (table("e", source=["a"], target=["b"], w=[""]), NODES, {"weight": "w"}, "is missing"),
        (table("e", source=["a"], target=["b"], w=["inf"]), NODES, {"weight": "w"}, "is inf"),
        (table("e", a=["b"], b=["c"]), NODES, {}, "no heading"),
    ],
)
def test_what_does_not_fit_is_told(edges, nodes, options, words):
    with pytest.raises(AsgatError, match=words):
        assemble(edges, nodes, **options)


def test_ids_that_look_like_missing_values_are_ids():
    own = assemble(table("e", source=["NA"], target=["None"]), table("n", id=["NA", "None"]))
    assert own.edges.tolist() == [[0], [1]]


def test_one_file_with_both(tmp_path):
    np.savez(tmp_path / "g.npz", edges=np.array([[0, 1], [1, 2]]), x=np.eye(3), y=np.array([0, 1, -1]))
    own = read_graph(tmp_path / "g.npz", label="y")
    assert own.ids == ["0", "1", "2"]
    assert [column.name for column in own.features] == ["x0", "x1", "x2"]
    assert own.label is not None
    assert own.label.missing.tolist() == [False, False, True]
    assert own.name == "g"
    (tmp_path / "g.graphml").write_text(
        '<graphml><key id="k" for="node"/><graph><node id="a"><data key="k">x</data></node><node id="b"/>'
        '<edge source="a" target="b"/></graph></graphml>'
    )
    own = read_graph(tmp_path / "g.graphml", label="k")
    assert own.ids == ["a", "b"]
    assert own.edges.tolist() == [[0], [1]]


def test_edges_alone_ask_for_the_nodes(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    with pytest.raises(AsgatError, match="holds edges only"):
        read_graph(tmp_path / "e.csv")
    np.savez(tmp_path / "e.npz", edges=np.array([[0], [1]]))
    with pytest.raises(AsgatError, match="holds edges only"):
        read_graph(tmp_path / "e.npz")


def test_mixed_formats_and_optional_columns(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"id": [1, 2], "f": [0.5, 1.5]}), tmp_path / "n.parquet")
    (tmp_path / "e.tsv").write_text("source\ttarget\n1\t2\n")
    own = read_graph(tmp_path / "e.tsv", tmp_path / "n.parquet", "kind", split="part", optional=("label", "split"))
    assert own.edges.tolist() == [[0], [1]]
    assert own.label is None
    assert own.split is None
