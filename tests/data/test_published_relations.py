import os
from dataclasses import replace

import numpy as np
import pytest
from tests.strategies import ZOO

from asgat.data import load_dataset
from asgat.data import published_relations as module
from asgat.data.published_relations import (
    PUBLISHED,
    find_relations,
    parse_relations,
    positions,
    read_relations,
    relations_file,
)
from asgat.errors import AsgatError
from asgat.geometry.relations import Relations, latent_relations
from asgat.geometry.spaces import SPACES
from asgat.graph import Graph

HEADER = "node1,node2\tspace\trelation_type\n"
every_space = pytest.mark.parametrize("space", SPACES)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / name)
    return tmp_path / "asgat" / "positions"


def listed(relations):
    return list(zip(relations.node.tolist(), relations.neighbour.tolist(), relations.kind.tolist(), strict=True))


# -- published files -------------------------------------------------------------------------------


def test_a_file_is_read(raw):
    text = HEADER + "2,0\tgraph\t3\n2,1\tlatent_space\t0\n0,2\tgraph\t0\n"
    assert listed(parse_relations(raw(text.encode()), 3)) == [(0, 2, 3), (1, 2, 4), (2, 0, 0)]
    assert listed(parse_relations(raw(HEADER.encode()), 3)) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "damaged"),
        ("1,2\tgraph\t3\n", "line 1 must be node1,node2"),
        (HEADER + "1,2\tgraph\t3\n1,2\tgraph\n", r"line 3 is '1,2\\tgraph', which is no relation of two nodes"),
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


def test_published_relations_are_taken(raw):
    graph = Graph.from_edges([[0, 1], [1, 1]], 3)
    text = HEADER + "0,1\tgraph\t2\n1,0\tgraph\t1\n0,2\tlatent_space\t1\n"
    found = find_relations(graph, "isomap", lambda space: parse_relations(raw(text.encode()), 3))
    assert listed(found) == [(1, 0, 2), (0, 1, 1), (2, 0, 5)]


def test_relations_of_another_graph_are_refused():
    empty = np.empty(0, dtype=np.int64)
    for other in (Relations(6, empty, empty, empty), Relations(7, empty, empty, empty)):
        with pytest.raises(AsgatError, match="published relations in poincare are those of another graph"):
            find_relations(ZOO["path"], "poincare", {"poincare": other}.__getitem__)


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


# -- computed positions ----------------------------------------------------------------------------


@every_space
def test_relations_are_computed_where_none_are_published(space, cache):
    graph = ZOO["generic"]
    expected = latent_relations(graph, SPACES[space].place(graph), SPACES[space].distance)
    assert listed(find_relations(graph, space)) == listed(expected)
    assert not cache.exists(), "a small graph is placed again in no time"


def test_positions_are_kept_and_taken_again(cache, monkeypatch):
    monkeypatch.setattr(module, "CACHED_FROM", 3)
    path, star = ZOO["path"], ZOO["star"]
    first = positions(path, "isomap")
    (file,) = cache.iterdir()
    assert np.array_equal(first, positions(path, "isomap"))
    np.savez(file, position=np.ones((6, 2)))
    assert np.array_equal(positions(path, "isomap"), np.ones((6, 2)))
    assert not np.array_equal(positions(path, "poincare"), np.ones((6, 2)))
    assert positions(star, "isomap").shape == (7, 2)
    assert len(list(cache.iterdir())) == 3


def test_what_positions_do_not_depend_on(cache, monkeypatch):
    monkeypatch.setattr(module, "CACHED_FROM", 3)
    for weight in ([1.0, 1.0], [2.0, 0.5]):
        graph = Graph.from_edges([[0, 1], [1, 2]], 4, weight)
        for same in (graph, graph.with_self_loops("add")):
            positions(same, "isomap")
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    "arrays",
    [{"position": np.ones((5, 2))}, {"position": np.ones((6, 2), dtype=int)}, {"other": np.ones((6, 2))},
     {"position": np.full((6, 2), np.nan)}],
)  # fmt: skip
def test_odd_files_in_the_cache_are_named(cache, monkeypatch, arrays):
    monkeypatch.setattr(module, "CACHED_FROM", 3)
    positions(ZOO["path"], "isomap")
    (file,) = cache.iterdir()
    np.savez(file, **arrays)
    with pytest.raises(AsgatError, match=f"{file} is damaged.*Delete it and run again"):
        positions(ZOO["path"], "isomap")
    file.write_bytes(b"no archive")
    with pytest.raises(AsgatError, match="is damaged"):
        positions(ZOO["path"], "isomap")


def test_a_cache_that_cannot_be_read(cache, monkeypatch):
    monkeypatch.setattr(module, "CACHED_FROM", 3)
    positions(ZOO["path"], "isomap")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(AsgatError, match=r"cannot be read \(Permission denied\); check its permissions"):
        positions(ZOO["path"], "isomap")


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CACHED_FROM", 3)
    (tmp_path / "file").touch()
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "file" / name)
    assert positions(ZOO["path"], "isomap").shape == (6, 2)
    assert os.listdir(tmp_path) == ["file"]


def test_a_changed_data_set_keeps_its_reader(real_data):
    data = load_dataset("texas", data_dir=real_data)
    assert data.relations is not None
    assert replace(data, protocol="mine").relations is data.relations
    assert (data.relations("isomap").kind < 4).sum() == 558
