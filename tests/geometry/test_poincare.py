from typing import Any

import numpy as np
import pytest
import torch
from tests.strategies import ZOO, generic_graph

from asgat.geometry.poincare import _descend, poincare
from asgat.geometry.spaces import hyperbolic
from asgat.graph import Graph


def tree(depth):
    """Every node has three children."""
    count = (3 ** (depth + 1) - 1) // 2
    return Graph.from_edges(np.stack([(np.arange(1, count) - 1) // 3, np.arange(1, count)]), count)


class Draws:
    """Stands for a generator in uncompiled code: gives out what it was given."""

    def __init__(self, values):
        self.values = iter(values)

    def integers(self, low, high):
        return next(self.values)


def test_a_step_follows_the_gradient_of_the_paper():
    """Against automatic differentiation of the loss as printed."""
    graph, rate = generic_graph(0).with_self_loops("remove"), 0.05
    position = np.random.default_rng(0).uniform(-0.6, 0.6, (14, 2))
    u = int(np.diff(graph.adjacency.indptr).argmax())
    neighbours = graph.adjacency[[u]].indices
    strangers = np.setdiff1d(np.arange(14), [u, *neighbours])[:6]
    v, drawn = int(neighbours[0]), [int(strangers[0]), u, int(neighbours[1]), *map(int, strangers[1:])]
    drawn += [u] * (10 - len(drawn))  # u itself and neighbours of it are no negatives
    after = position.copy()
    arrays = graph.adjacency.indptr, graph.adjacency.indices, np.array([u]), np.array([v])
    uncompiled: Any = _descend
    uncompiled.py_func(after, *arrays, rate, Draws(drawn))

    z = torch.from_numpy(position.copy()).requires_grad_()
    inside = 1 - z.square().sum(1)
    others = [v, *strangers]
    distance = torch.acosh(1 + 2 * (z[u] - z[others]).square().sum(1) / (inside[u] * inside[others]))
    (gradient,) = torch.autograd.grad(distance[0] + torch.logsumexp(-distance, 0), z)
    expected = position - rate * (inside.detach().square() / 4)[:, None].numpy() * gradient.numpy()
    np.testing.assert_allclose(after, expected, atol=1e-12)
    assert (np.abs(after - position)[[u, *others]] > 1e-6).all()


def test_neighbours_are_near_and_the_root_is_in_the_middle():
    graph = tree(4)
    position = poincare(graph)
    distance = hyperbolic(position, position)
    ends = graph.edge_index()
    rank = (distance[ends[0]] < distance[ends[0], ends[1]][:, None]).mean()
    assert rank < 0.1
    radius = np.hypot(*position.T)
    assert radius[:4].mean() < radius[-81:].min()


def test_the_same_seed_gives_the_same_points():
    graph = tree(2)
    assert np.array_equal(poincare(graph), poincare(graph))
    assert not np.array_equal(poincare(graph), poincare(graph, seed=1))


def test_weights_and_self_loops_are_not_looked_at():
    weighted = Graph.from_edges([[0, 1, 1], [1, 2, 1]], 4, [0.5, 3.0, 2.0])
    assert np.array_equal(poincare(weighted), poincare(Graph.from_edges([[0, 1], [1, 2]], 4)))


@pytest.mark.parametrize("name", ZOO)
def test_points_stay_inside_the_disc(name):
    position = poincare(ZOO[name], rate=1.0)
    assert position.shape == (ZOO[name].num_nodes, 2)
    assert (np.hypot(*position.T) < 1).all()
