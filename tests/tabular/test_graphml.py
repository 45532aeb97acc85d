"""GraphML: what networkx writes is read, and nothing outside the file is."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.tabular.column import MISSING
from asgat.tabular.graphml import read_graphml

WORD = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=4)
KIND = WORD.filter(lambda word: word not in MISSING)


@pytest.fixture
def refused(tmp_path):
    def call(text, words):
        path = tmp_path / "a.graphml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(AsgatError, match=words):
            read_graphml(path)

    return call


@given(st.data())
def test_what_networkx_writes_is_read(tmp_path_factory, data):
    networkx = pytest.importorskip("networkx")
    names = data.draw(st.lists(WORD, min_size=1, max_size=6, unique=True))
    graph = networkx.Graph()
    for name in names:
        held = data.draw(st.fixed_dictionaries({}, optional={"size": st.integers(-9, 9), "kind": KIND}))
        graph.add_node(name, **held)
    node = st.sampled_from(names)
    for one, other in data.draw(st.lists(st.tuples(node, node), max_size=6)):
        graph.add_edge(one, other, weight=data.draw(st.floats(0.5, 2.0)))
    path = tmp_path_factory.mktemp("graph") / "a.graphml"
    stream = io.BytesIO()
    networkx.write_graphml_xml(graph, stream)
    path.write_bytes(stream.getvalue())
    nodes, edges = read_graphml(path)
    assert nodes.column("id").texts() == names
    for key in ("size", "kind"):
        expected = [str(graph.nodes[name].get(key, "")) for name in names]
        if any(expected):
            assert [str(value) for value in nodes.column(key).values] == expected
    assert len(edges) == graph.number_of_edges()
    for row, (one, other) in enumerate(graph.edges):
        assert {edges.column("source").values[row], edges.column("target").values[row]} == {one, other}
        assert float(edges.column("weight").values[row]) == graph.edges[one, other]["weight"]


def test_defaults_and_directions(tmp_path):
    (tmp_path / "a.graphml").write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="k" for="node" attr.name="colour">'
        '<default>red</default></key><graph edgedefault="directed"><node id="a"/><node id="b"><data key="k">blue'
        '</data></node><edge source="a" target="b"/></graph></graphml>'
    )
    nodes, edges = read_graphml(tmp_path / "a.graphml")
    assert nodes.column("colour").texts() == ["red", "blue"]
    assert "read as undirected. `asgat fit --directed` uses directions." in edges.notes[0]
    assert len(edges) == 1
    assert not read_graphml(tmp_path / "a.graphml", directed=True)[1].notes


@pytest.mark.parametrize(("default", "own"), [("undirected", ""), ("directed", ' directed="false"')])
def test_edges_without_a_direction_are_not_given_one(tmp_path, default, own):
    (tmp_path / "a.graphml").write_text(
        f'<graphml><graph edgedefault="{default}"><node id="a"/><node id="b"/><edge source="a" target="b"{own}/>'
        "</graph></graphml>"
    )
    assert len(read_graphml(tmp_path / "a.graphml")[1]) == 1
    with pytest.raises(AsgatError, match="an edge without a direction; read it without --directed"):
        read_graphml(tmp_path / "a.graphml", directed=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not xml", "not valid XML"),
        ("<html/>", "not GraphML: its outermost element is 'html'"),
        ("<graphml/>", "holds no graph"),
        ("<graphml><graph/></graphml>", "has no node"),
        ("<graphml><graph><node/></graph></graphml>", "a node has no id"),
        ('<graphml><graph><node id="a"/><edge source="a"/></graph></graphml>', "a edge has no target"),
        ('<graphml><graph><node id="a"><data key="k">1</data></node></graph></graphml>', "no key declares"),
        ('<graphml><graph><node id="a"><graph/></node></graph></graphml>', "more than one graph"),
        ("<graphml><graph><hyperedge/></graph></graphml>", "hyperedge"),
        ("<graphml>" + "<a>" * 40, "nested more than"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><graphml/>', "document type"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><graphml/>', "document type"),
        ('<?xml version="1.0" encoding="nonsense"?><graphml/>', "unknown encoding"),
        (b"\xff\xfe<", "UTF-16"),
    ],
)
def test_what_is_not_a_graph_is_refused(refused, text, words):
    refused(text, words)


def test_entities_are_never_expanded(refused):
    lol = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
    refused(f'<!DOCTYPE x [<!ENTITY l0 "lol">{lol}]><graphml>&l9;</graphml>', "document type")
    refused("<graphml>&undefined;</graphml>", "not valid XML")


def test_the_table_is_bounded(refused, free_memory):
    """A value at one node of many makes a column of all."""
    keys = "".join(f'<key id="k{i}"/>' for i in range(100))
    data = "".join(f'<data key="k{i}">1</data>' for i in range(100))
    nodes = "".join(f'<node id="{i}"/>' for i in range(1000))
    free_memory(2**20)
    refused(f'<graphml>{keys}<graph><node id="x">{data}</node>{nodes}</graph></graphml>', "a.graphml needs 2 MiB")


@given(st.text(max_size=60))
def test_any_text_is_a_graph_or_a_sentence(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("graph") / "a.graphml"
    path.write_bytes(f'<graphml><graph><node id="a"/>{text}</graph></graphml>'.encode("utf-8", "replace"))
    try:
        read_graphml(path)
    except AsgatError as error:
        assert "\n" not in str(error)  # noqa: PT017
