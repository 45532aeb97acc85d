import numpy as np
import pytest

from asgat.data import load_dataset
from asgat.errors import AsgatError


def test_karate_is_zacharys():
    networkx = pytest.importorskip("networkx")
    dataset, truth = load_dataset("karate"), networkx.karate_club_graph()
    edges = networkx.to_scipy_sparse_array(truth, weight=None)
    assert (dataset.graph.adjacency != edges).nnz == 0
    assert dataset.y.tolist() == [int(truth.nodes[i]["club"] == "Officer") for i in range(34)]
    assert np.array_equal(dataset.x, np.eye(34))
    assert len(dataset.splits) == 10


def test_digits_joins_images_that_look_alike():
    dataset = load_dataset("digits")
    assert (dataset.num_nodes, dataset.num_features, dataset.num_classes) == (1797, 64, 10)
    assert (dataset.x.min(), dataset.x.max()) == (0, 1)
    assert np.diff(dataset.graph.adjacency.indptr).min() >= 10
    assert not dataset.graph.adjacency.diagonal().any()
    distance = np.linalg.norm(dataset.x - dataset.x[0], axis=1)
    nearest = set(np.argsort(distance)[1:11].tolist())
    assert nearest <= set(dataset.graph.adjacency[[0]].indices.tolist())


def test_digits_with_fewer_neighbours():
    fewer = load_dataset("digits", neighbours=3, seed=1)
    assert fewer.graph.num_entries < load_dataset("digits").graph.num_entries


@pytest.mark.parametrize("neighbours", [0, 1797, 2.5, True])
def test_bad_neighbours(neighbours):
    with pytest.raises(AsgatError, match="neighbours must be an integer from 1 to 1796"):
        load_dataset("digits", neighbours=neighbours)


@pytest.mark.parametrize("name", ["karate", "digits"])
def test_the_seed_changes_the_splits(name):
    one, again, other = (load_dataset(name, seed=seed).splits[0].train for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
