from dataclasses import replace

import numpy as np
import pytest

from asgat.data import load_dataset
from asgat.data.published_relations import (
    PUBLISHED,
    parse_relations,
    read_relations,
    relations_file,
)
from asgat.errors import AsgatError
from asgat.geometry.relations import find_relations
from asgat.geometry.spaces import SPACES

HEADER = "node1,node2\tspace\trelation_type\n"
every_space = pytest.mark.parametrize("space", SPACES)


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


def test_a_data_set_reads_its_files_when_asked(write_files):
    file = relations_file("texas", "isomap")
    assert file.endswith("texas_MDS.txt")
    folder = write_files({file: (HEADER + "0,1\tgraph\t2\n").encode()})
    assert listed(read_relations("texas", 2, folder, "isomap")) == [(1, 0, 2)]


@every_space
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_files_belong_to_the_published_graphs(real_data, name, space):
    data = load_dataset(name, data_dir=real_data)
    relations = find_relations(data.graph, space, data.relations)  # compares the edges
    latent = relations.kind >= 4
    assert latent.any()
    assert relations.num_nodes == data.num_nodes
    if name != "citeseer" and (name, space) != ("pubmed", "isomap"):  # where the two directions of some edges agree
        pair = relations.node[~latent], relations.neighbour[~latent]
        kind = np.zeros(2 * (data.num_nodes,), dtype=np.int8)
        kind[pair] = relations.kind[~latent]
        assert (kind[pair] + kind.T[pair] == 3).all(), "seen from its neighbour a node lies on the other side"


def test_hubs_have_the_latent_neighbours_of_poincare(real_data):
    relations = load_dataset("texas", data_dir=real_data).relations("poincare")  # type: ignore[misc]
    heard = np.bincount(relations.node[relations.kind >= 4], minlength=183)
    assert (heard.max(), (heard > 0).sum(), heard.sum()) == (83, 24, 540)


def test_data_sets_without_files_have_none():
    assert load_dataset("karate").relations is None


def test_a_changed_data_set_keeps_its_reader(real_data):
    data = load_dataset("texas", data_dir=real_data)
    assert data.relations is not None
    assert replace(data, protocol="mine").relations is data.relations
    assert (data.relations("isomap").kind < 4).sum() == 558
