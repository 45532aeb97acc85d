from dataclasses import replace

import numpy as np
import pytest
from tests.strategies import ZOO

from asgat.data import load_dataset
from asgat.errors import AsgatError
from reproduce.geom_gcn import GeomGCNConfig
from reproduce.geom_gcn.isomap import isomap
from reproduce.geom_gcn.published import PUBLISHED, find_relations, parse_relations
from reproduce.geom_gcn.relations import latent_relations

HEADER = "node1,node2\tspace\trelation_type\n"
every_space = pytest.mark.parametrize("space", ["isomap", "poincare", "struc2vec"])


def listed(relations):
    return list(zip(relations.node.tolist(), relations.neighbour.tolist(), relations.kind.tolist(), strict=True))


def test_a_file_is_read(raw):
    text = HEADER + "2,0\tgraph\t3\n2,1\tlatent_space\t0\n0,2\tgraph\t0\n"
    assert listed(parse_relations(raw(text.encode()), 3)) == [(0, 2, 3), (1, 2, 4), (2, 0, 0)]
    assert listed(parse_relations(raw(HEADER.encode()), 3)) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "damaged"),
        ("1,2\tgraph\t3\n", "line 1 must be node1,node2"),
        (HEADER + "1,2\tgraph\t3\n1,2\tgraph\n", r"line 3 is '1,2\\tgraph', which is not a relation of two nodes"),
        (HEADER + "1,2\tgraph\t4\n", "line 2 is"),
        (HEADER + "1,2\tspace\t1\n", "line 2 is"),
        (HEADER + "-1,2\tgraph\t1\n", "line 2 is"),
        (HEADER + "1,2222222222\tgraph\t1\n", "line 2 is"),
        (HEADER + "1,3\tgraph\t1\n", "name node 3, but it must be from 0 to 2"),
        (HEADER + "1,½\tgraph\t1\n", "damaged"),
    ],
)
def test_odd_files_are_named(raw, text, sentence):
    with pytest.raises(AsgatError, match=sentence) as caught:
        parse_relations(raw(text.encode()), 3)
    assert "some.file" in str(caught.value)


@every_space
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_files_belong_to_the_published_graphs(real_data, name, space):
    data = load_dataset(name, data_dir=real_data)
    relations = find_relations(data.graph, space, name, data.data_dir)  # compares the edges
    latent = relations.kind >= 4
    assert latent.any()
    assert GeomGCNConfig(space=space).space == space
    if name != "citeseer" and (name, space) != ("pubmed", "isomap"):  # where the two directions of some edges agree
        pair = relations.node[~latent], relations.neighbour[~latent]
        kind = np.zeros(2 * (data.num_nodes,), dtype=np.int8)
        kind[pair] = relations.kind[~latent]
        assert (kind[pair] + kind.T[pair] == 3).all(), "seen from its neighbour a node lies on the other side"


def test_hubs_have_the_latent_neighbours_of_poincare(real_data):
    data = load_dataset("texas", data_dir=real_data)
    relations = find_relations(data.graph, "poincare", "texas", data.data_dir)
    heard = np.bincount(relations.node[relations.kind >= 4], minlength=183)
    assert (heard.max(), (heard > 0).sum(), heard.sum()) == (83, 24, 540)


def test_relations_of_another_graph_are_refused(real_data):
    data = load_dataset("texas", data_dir=real_data)
    other = replace(data, graph=load_dataset("cornell", data_dir=real_data).graph)
    with pytest.raises(AsgatError, match="published relations in poincare are those of another graph"):
        find_relations(other.graph, "poincare", other.name, other.data_dir)


def test_isomap_is_computed_where_nothing_is_published():
    graph = ZOO["generic"]
    expected = latent_relations(graph, isomap(graph))
    for name in ("squirrel", "texas"):  # the name of a data set, but a graph of a user
        assert listed(find_relations(graph, "isomap", name, None)) == listed(expected)
    with pytest.raises(AsgatError, match="No relations in poincare are published for mine; set space to isomap"):
        find_relations(graph, "poincare", "mine", None)
