import numpy as np
import pytest

from asgat.data import DATASETS, Statistics, dataset_names, get_info, load_dataset, statistics_of
from asgat.data.download import checksums
from asgat.errors import AsgatError
from asgat.graph.homophily import beta

PAPER = ["cora", "citeseer", "pubmed", "texas", "cornell", "wisconsin", "chameleon", "squirrel"]
FILES = [
    *PAPER, "chameleon-directed", "squirrel-directed", "chameleon-out", "squirrel-out", "chameleon-filtered",
    "chameleon-filtered-directed", "minesweeper", "cornell-true",
]  # fmt: skip
NAMES = [*FILES, "csbm", "digits", "karate"]
PUBLISHED = {  # nodes, entries, self-loops and β as the data files' own description gives them
    "texas": (183, 574, 16, 0.057),
    "cornell": (183, 557, 3, 0.301),
    "wisconsin": (251, 916, 16, 0.155),
    "chameleon": (2277, 62792, 50, 0.247),
    "squirrel": (5201, 396846, 140, 0.217),
    "cora": (2708, 10556, 0, 0.825),
    "citeseer": (3327, 9228, 124, 0.706),
    "pubmed": (19717, 88651, 3, 0.792),
}


def test_names_in_order():
    assert dataset_names() == NAMES == [info.name for info in DATASETS.values()]


@pytest.mark.parametrize("name", FILES)
def test_files_are_what_the_registry_says(real_data, name):
    info = DATASETS[name]
    dataset = load_dataset(name, data_dir=real_data)
    assert statistics_of(dataset) == info.statistics
    assert (dataset.name, dataset.protocol, dataset.metric) == (name, info.protocols[0], info.metric)
    assert len(dataset.splits) == (1 if info.protocols[0] == "full" else 10)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_statistics(real_data, name):
    nodes, entries, loops, published_beta = PUBLISHED[name]
    row, graph = DATASETS[name].statistics, load_dataset(name, data_dir=real_data).graph
    assert (row.nodes, row.entries, row.beta) == (nodes, entries, published_beta)
    assert np.sum(graph.adjacency.diagonal() > 0) == loops


def test_citeseer_beta_with_and_without_unlabelled_nodes(real_data):
    dataset = load_dataset("citeseer", data_dir=real_data)
    assert round(beta(dataset.graph, np.maximum(dataset.y, 0)), 3) == 0.706
    assert statistics_of(dataset).beta == 0.706


def test_embedded_statistics():
    for name in ("digits", "karate"):
        assert statistics_of(load_dataset(name)) == DATASETS[name].statistics
    # numpy may change its random streams, and β with them.
    row = statistics_of(load_dataset("csbm"))
    assert row.beta == pytest.approx(DATASETS["csbm"].statistics.beta, abs=0.03)


def test_true_cornell_is_another(real_data):
    published, true = (load_dataset(name, data_dir=real_data) for name in ("cornell", "cornell-true"))
    assert "copy of Texas" in get_info("cornell").note
    assert np.bincount(published.y).tolist() != np.bincount(true.y).tolist()


@pytest.mark.parametrize(
    ("name", "reciprocal", "loops"),
    [("chameleon", 0.260, 50), ("squirrel", 0.171, 140), ("chameleon-filtered", 0.692, 50)],
)
def test_directed_ones_are_the_undirected_ones_with_directions(real_data, name, reciprocal, loops):
    plain, directed = (load_dataset(key, data_dir=real_data) for key in (name, f"{name}-directed"))
    assert (plain.graph.directed, directed.graph.directed) == (False, True)
    without = [data.graph.undirected.with_self_loops("remove").adjacency for data in (plain, directed)]
    assert abs(without[0] - without[1]).nnz == 0
    there = directed.graph.with_self_loops("remove").adjacency
    assert there.multiply(there.T).nnz / there.nnz == pytest.approx(reciprocal, abs=5e-4)
    assert directed.graph.num_entries - there.nnz == loops
    assert np.array_equal(plain.x, directed.x)
    assert np.array_equal(plain.y, directed.y)
    for one, other in zip(plain.splits, directed.splits, strict=True):
        assert all(np.array_equal(one.parts()[part], other.parts()[part]) for part in ("train", "val", "test"))


def test_every_file_has_a_checksum_and_every_checksum_a_use():
    used = {file for info in DATASETS.values() for protocol in info.protocols for file in info.files(protocol)}
    assert used == set(checksums())


def test_unknown_names_get_a_suggestion():
    with pytest.raises(AsgatError, match=r"no data set 'txas'. Did you mean 'texas'\? Choose from: cora, citeseer"):
        load_dataset("txas")


def test_unknown_protocols_and_options():
    with pytest.raises(AsgatError, match="texas has no protocol 'full'; it has geom-gcn"):
        load_dataset("texas", protocol="full")
    with pytest.raises(AsgatError, match=r"csbm has no option 'homophly'\. It takes num_nodes, "):
        load_dataset("csbm", homophly=0.5)
    with pytest.raises(AsgatError, match=r"cora has no option 'k'\. It takes none"):
        load_dataset("cora", k=1)
    with pytest.raises(AsgatError, match="karate has no protocol 'geom-gcn'; it has random"):
        load_dataset("karate", "geom-gcn")


def test_protocols():
    info = DATASETS["cora"]
    assert info.protocols[0] == "full"
    assert info.check_protocol(None) == "full"
    assert info.check_protocol("public") == "public"
    with pytest.raises(AsgatError, match="cora has no protocol 'ful'; it has full, public, geom-gcn"):
        info.check_protocol("ful")


def test_files():
    assert len(DATASETS["cora"].files()) == 7
    assert len(DATASETS["cora"].files("geom-gcn")) == 17
    assert DATASETS["chameleon"].files() == ("heterophilous-graphs/data/chameleon_directed.npz",)
    assert DATASETS["karate"].files() == ()


def test_missing_files(tmp_path):
    assert DATASETS["texas"].missing_files(data_dir=tmp_path) == list(DATASETS["texas"].files())
    assert DATASETS["karate"].missing_files(data_dir=tmp_path) == []


def test_option_names():
    assert DATASETS["cora"].option_names() == []
    assert DATASETS["digits"].option_names() == ["neighbours"]
    assert "homophily" in DATASETS["csbm"].option_names()


def test_statistics_of():
    assert statistics_of(load_dataset("karate")) == Statistics(34, 156, 34, 2, 0.888)
