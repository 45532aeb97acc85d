import numpy as np
import pytest

from asgat.data import contextual_sbm, load_dataset
from asgat.errors import AsgatError
from asgat.graph.homophily import edge_homophily


def test_defaults():
    dataset = contextual_sbm()
    assert (dataset.num_nodes, dataset.num_features, dataset.num_classes) == (800, 64, 2)
    assert dataset.graph.num_entries == 2400
    assert np.bincount(dataset.y).tolist() == [400, 400]
    assert not dataset.graph.adjacency.diagonal().any()
    assert len(dataset.splits) == 10
    assert [len(part) for part in dataset.splits[0].parts().values()] == [384, 256, 160]


@pytest.mark.parametrize("homophily", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("num_classes", [2, 5])
def test_the_dial(homophily, num_classes):
    dataset = contextual_sbm(homophily=homophily, num_classes=num_classes, mean_degree=6)
    assert edge_homophily(dataset.graph, dataset.y) == pytest.approx(homophily, abs=1e-3)
    assert dataset.graph.num_entries == 4800


@pytest.mark.parametrize("structured", [True, False])
def test_structured_classes_meet_their_neighbours_only(structured):
    dataset = contextual_sbm(num_classes=5, homophily=0, structured=structured)
    row, col = dataset.graph.edge_index()
    steps = np.unique((dataset.y[row] - dataset.y[col]) % 5)
    assert steps.tolist() == ([1, 4] if structured else [1, 2, 3, 4])


def test_degrees_follow_a_poisson_law():
    dataset = contextual_sbm(num_nodes=4000, mean_degree=20)
    assert dataset.graph.degree.var() == pytest.approx(20, rel=0.15)


def test_edges_favour_no_class():
    small = [contextual_sbm(num_nodes=40, mean_degree=2, homophily=1, seed=seed) for seed in range(40)]
    first = np.mean([dataset.graph.degree[dataset.y == 0].sum() / 80 for dataset in small])
    assert first == pytest.approx(0.5, abs=0.05)


def test_features_carry_the_signal_and_noise_of_variance_one():
    dataset = contextual_sbm(num_nodes=20000, signal=0.5, mean_degree=1)
    means = np.stack([dataset.x[dataset.y == label].mean(axis=0) for label in (0, 1)])
    assert np.abs(means) == pytest.approx(np.full((2, 64), 0.5), abs=0.06)
    assert (dataset.x - means[dataset.y]).var() == pytest.approx(1, abs=0.02)
    assert 16 < np.sum(np.sign(means[0]) != np.sign(means[1])) < 48
    assert np.abs(contextual_sbm(num_nodes=20000, signal=0).x.mean(axis=0)).max() < 0.06


def test_seeded():
    one, again, other = contextual_sbm(seed=1), contextual_sbm(seed=1), contextual_sbm(seed=2)
    assert np.array_equal(one.x, again.x)
    assert np.array_equal(one.graph.edge_index(), again.graph.edge_index())
    assert np.array_equal(one.splits[3].test, again.splits[3].test)
    assert not np.array_equal(one.y, other.y)


def test_many_nodes():
    """Nothing takes memory for all pairs: with 200,000 nodes that would be 320 GB."""
    assert contextual_sbm(num_nodes=200_000, num_features=4).graph.num_entries == 600_000


def test_options_pass_through_the_registry():
    dataset = load_dataset("csbm", seed=3, homophily=0.8, num_nodes=100)
    assert dataset.num_nodes == 100
    assert edge_homophily(dataset.graph, dataset.y) == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_nodes": 0}, "num_nodes must be a positive integer, not 0"),
        ({"num_nodes": 10.0}, "num_nodes must be a positive integer"),
        ({"num_nodes": 3}, "two nodes in each, but num_classes is 2 and num_nodes 3"),
        ({"num_classes": 1}, "num_classes is 1"),
        ({"num_features": True}, "num_features must be"),
        ({"homophily": 1.5}, "from 0 to 1, but is 1.5"),
        ({"homophily": -0.1}, "homophily must be a number and not negative"),
        ({"homophily": "high"}, "but is 'high'"),
        ({"mean_degree": float("nan")}, "mean_degree must be a number"),
        ({"signal": float("inf")}, "signal must be a number"),
        ({"structured": "no"}, "structured must be true or false, not 'no'"),
        ({"seed": -1}, "seed must be a non-negative integer"),
        ({"num_nodes": 20, "mean_degree": 15}, "120 edges between classes are too many for 100 pairs"),
        ({"num_nodes": 20, "mean_degree": 15, "homophily": 0.9}, "edges inside classes are too many"),
    ],
)
def test_bad_options(options, sentence):
    with pytest.raises(AsgatError, match=sentence):
        contextual_sbm(**options)


def test_no_edges_at_all():
    assert contextual_sbm(mean_degree=0).graph.num_entries == 0
