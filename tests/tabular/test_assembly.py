"""Roles of columns, and errors for what does not fit."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.tabular.assembly import assemble, data_name, read_graph
from asgat.tabular.caution import Caution
from asgat.tabular.column import Column
from asgat.tabular.table import Table


def table(where, /, **columns):
    return Table({name: Column.of_texts(name, cells) for name, cells in columns.items()}, where)


EDGES = table("edges.csv", source=["a", "b"], target=["b", "c"])
NODES = table("nodes.csv", id=["a", "b", "c"], kind=["x", "", "y"], f=["1", "2", "3"])
IDS = table("n", id=["0", "b"])


def test_the_usual_names_are_found():
    graph = assemble(EDGES, NODES, label="kind")
    assert graph.ids == ["a", "b", "c"]
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.weight is None
    assert graph.label is not None
    assert graph.label.missing.tolist() == [False, True, False]
    assert [column.name for column in graph.features] == ["f"]
    assert graph.columns["id"] == "id"


@given(st.permutations(range(6)), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_order_of_the_nodes_does_not_matter(order, pairs):
    edges = table("e", source=[f"n{a}" for a, _ in pairs], target=[f"n{b}" for _, b in pairs])
    graph = assemble(edges, table("n", id=[f"n{i}" for i in order]))
    named = [(graph.ids[a], graph.ids[b]) for a, b in graph.edges.T]
    assert named == [(f"n{a}", f"n{b}") for a, b in pairs]


def test_guesses_are_reported():
    edges = table("e.csv", left=["a"], right=["b"])
    graph = assemble(edges, table("n.csv", who=["a", "b"], f=["1", "2"]))
    assert "first column of n.csv, 'who'" in graph.notes[0]
    assert "'left' and 'right'" in graph.notes[1]
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
        (EDGES, NODES, {"split": ["kind", "kind"]}, "--split names the column 'kind' twice"),
        (EDGES, NODES, {"source": "from", "target": "to"}, "no column 'from'"),
        (EDGES, NODES, {"source": "source"}, "--source and --target"),
        (EDGES, NODES, {"ignore": ["g"]}, "no column 'g'"),
        (EDGES, NODES, {"weight": "w"}, "no column 'w'"),
        (table("e", a=["1"], b=["2"], c=["3"]), NODES, {}, "Which columns of e are the ends"),
        (
            table("e", source=["1"], weight=["2"]),
            NODES,
            {},
            r"one column for the ends of edges, .source.; .*other end is missing.*--source and --target",
        ),
        (table("e", source=["1"], w=["2"]), NODES, {"weight": "w"}, "the column for the other end is missing"),
        (table("e", source=["a"], target=["z"]), NODES, {}, "names the node 'z' .* does not have; add"),
        (table("e", source=["q", "a"], target=["z", "z"]), NODES, {}, "names the node 'q'"),
        (table("e", source=["a"], target=[""]), NODES, {}, "names no node in row 1"),
        (EDGES, table("n", id=["a", "a"], f=["1", "2"]), {}, "1 id more than once: 'a'"),
        (EDGES, table("n", id=["a", " "], f=["1", "2"]), {}, "no id in row 2"),
        (table("e", source=["a"], target=["b"], w=["heavy"]), NODES, {"weight": "w"}, "'heavy' .* is not a number"),
        (table("e", source=["a"], target=["b"], w=["-1"]), NODES, {"weight": "w"}, "is -1"),
        (table("e", source=["a"], target=["b"], w=[""]), NODES, {"weight": "w"}, "is missing"),
        (table("e", source=["a"], target=["b"], w=["inf"]), NODES, {"weight": "w"}, "is inf"),
        (table("e", a=["b"], b=["c"]), NODES, {}, "no heading"),
        (
            table("e", source=["0.0"], target=["1.0"]),
            IDS,
            {},
            "node '0.0' .* not have; n has '0', so write",
        ),
        (
            table("e", source=["00"], target=["B"]),
            IDS,
            {},
            "'00' .*, which n does not have; n has '0'",
        ),
        (table("e", source=["0"], target=["B"]), IDS, {}, "does not have; n has 'b', so write ids in one way"),
        (NODES, EDGES, {"label": "kind"}, "seem to be swapped: .*Exchange --edges and --nodes"),
        (NODES, EDGES, {}, "swapped: edges.csv has the columns 'source' and 'target'"),
        (NODES, table("e", a=["a"], b=["b"]), {"label": "kind"}, "swapped: the label 'kind' is a column of nodes.csv"),
        (EDGES, NODES, {"numeric": ["kind"]}, "holds 'x', which is not a number"),
        (EDGES, NODES, {"categorical": ["no"]}, "no column 'no' .--categorical"),
        (EDGES, NODES, {"categorical": ["id"]}, "'id' is not a feature"),
        (EDGES, NODES, {"categorical": ["f"], "numeric": ["f"]}, "cannot be categorical and numeric"),
    ],
)
def test_what_does_not_fit_is_reported(edges, nodes, options, words):
    with pytest.raises(AsgatError, match=words):
        assemble(edges, nodes, **options)


def test_ids_that_look_like_missing_values_are_ids():
    graph = assemble(table("e", source=["NA"], target=["None"]), table("n", id=["NA", "None"]))
    assert graph.edges.tolist() == [[0], [1]]


def test_data_is_named_after_the_file_or_its_folder():
    assert data_name(Path("club/karate.npz")) == "karate"
    assert data_name(Path("club/nodes.csv")) == data_name(Path("club/Edges.csv")) == "club"
    assert data_name(Path("/nodes.csv")) == "nodes"


def test_one_file_with_both(tmp_path):
    np.savez(tmp_path / "g.npz", edges=np.array([[0, 1], [1, 2]]), x=np.eye(3), y=np.array([0, 1, -1]))
    graph = read_graph(tmp_path / "g.npz", label="y")
    assert graph.ids == ["0", "1", "2"]
    assert [column.name for column in graph.features] == ["x0", "x1", "x2"]
    assert graph.label is not None
    assert graph.label.missing.tolist() == [False, False, True]
    assert graph.name == "g"
    (tmp_path / "g.graphml").write_text(
        '<graphml><key id="k" for="node"/><graph><node id="a"><data key="k">x</data></node><node id="b"/>'
        '<edge source="a" target="b"/></graph></graphml>'
    )
    graph = read_graph(tmp_path / "g.graphml", label="k")
    assert graph.ids == ["a", "b"]
    assert graph.edges.tolist() == [[0], [1]]


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
    graph = read_graph(tmp_path / "e.tsv", tmp_path / "n.parquet", "kind", split="part", optional=("label", "split"))
    assert graph.edges.tolist() == [[0], [1]]
    assert graph.label is None
    assert graph.splits == []


def test_edges_may_be_absent_in_any_format_and_nodes_may_not(tmp_path):
    (tmp_path / "e.csv").write_text("source,target,weight\n")
    (tmp_path / "n.csv").write_text("id,f\na,1\nb,2\n")
    np.savez(tmp_path / "g.npz", edges=np.zeros((2, 0), dtype=int), x=np.eye(2))
    for graph in (read_graph(tmp_path / "e.csv", tmp_path / "n.csv"), read_graph(tmp_path / "g.npz")):
        assert graph.edges.shape == (2, 0)
        assert "has no edges; every node is predicted from its own features" in graph.notes[-1]
        assert graph.graph.num_entries == 0
    (tmp_path / "n.csv").write_text("id,f\n")
    with pytest.raises(AsgatError, match=r"n\.csv has no nodes: it has a heading but no row"):
        read_graph(tmp_path / "e.csv", tmp_path / "n.csv")


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint8])
def test_ends_given_as_numbers_are_matched_without_texts_for_every_edge(kind, monkeypatch):
    pairs = {"source": [3, 0, 3], "target": [0, 1, 1]}
    ends = Table({name: Column.of_array(name, np.array(values, kind)) for name, values in pairs.items()}, "e")
    nodes = table("n", id=["0", "1", "3"])
    calls, texts_of = [], Column.texts

    def counted(column):
        calls.append(len(column))
        return texts_of(column)

    monkeypatch.setattr(Column, "texts", counted)
    graph = assemble(ends, nodes)
    assert graph.edges.tolist() == [[2, 0, 2], [0, 1, 1]]
    assert max(calls) == 2
    with pytest.raises(AsgatError, match=r"names the node '3' in the column 'source'.* does not have; add"):
        assemble(ends, table("n", id=["0", "1"]))


def test_missing_ends_given_as_numbers_are_named():
    ends = {"source": Column.of_array("source", np.array([0.0, 1.0])), "target": Column.of_objects("target", [1, None])}
    with pytest.raises(AsgatError, match="names no node in row 2 of the column 'target'"):
        assemble(Table(ends, "e"), table("n", id=["0", "1"]))


def test_directions_are_kept_where_they_are_asked_for():
    both = table("edges.csv", source=["a", "b", "b"], target=["b", "a", "c"])
    graph = assemble(both, NODES, directed=True)
    assert graph.directed
    assert graph.graph.edge_index().tolist() == [[0, 1, 1], [1, 0, 2]]
    assert assemble(both, NODES).graph.num_entries == 4


def test_a_graphml_file_says_itself_whether_edges_have_a_direction(tmp_path):
    nodes = "".join(f'<node id="{i}"/>' for i in range(20))
    edges = "".join(f'<edge source="{i}" target="{i - 1}"/>' for i in range(1, 20))
    (tmp_path / "a.graphml").write_text(f'<graphml><graph edgedefault="directed">{nodes}{edges}</graph></graphml>')
    undirected, directed = (read_graph(tmp_path / "a.graphml", directed=directed) for directed in (False, True))
    assert (undirected.graph.num_entries, directed.graph.num_entries) == (38, 19)
    assert undirected.reciprocal is None
    assert [bool(graph.notes) for graph in (undirected, directed)] == [True, False]


def test_edge_columns_that_are_not_used_are_reported():
    edges = table("e.csv", source=["a"], target=["b"], kind=["x"], since=["2020"])
    (note,) = assemble(edges, NODES).notes
    assert isinstance(note, Caution)
    assert note.startswith("The columns 'kind', 'since' of e.csv are not used; --weight COLUMN takes one")
    (note,) = assemble(edges, NODES, weight="since").notes
    assert note == "The column 'kind' of e.csv is not used."


def test_the_user_says_what_a_column_is():
    nodes = table("n", id=["a", "b", "c"], code=["7", "8", "7"], size=["1", "2", "3"])
    graph = assemble(EDGES, nodes, categorical=["code"], numeric=["size"])
    assert [column.is_category for column in graph.features] == [True, False]
    assert graph.declared == ("code", "size")
