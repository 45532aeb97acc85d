"""Geom-GCN against loops over nodes, groups and neighbours."""

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.nn.baselines.conformance import CLASSES, FEATURES, HIDDEN, assert_near, features
from tests.strategies import generic_graph, graphs

from asgat.kernels.sparse_features import SparseFeatures
from reproduce.geom_gcn.model import GeomGCN, virtual_nodes
from reproduce.geom_gcn.relations import Relations, latent_relations


def relations_of(graph, seed=0):
    """Points drawn at random stand for a latent space; one pair is known in one direction only."""
    position = np.random.default_rng(seed).standard_normal((graph.num_nodes, 2))
    relations = latent_relations(graph, position)
    keep = np.arange(len(relations.node)) != len(relations.node) - 1
    return Relations(graph.num_nodes, relations.node[keep], relations.neighbour[keep], relations.kind[keep])


def groups_of(relations):
    return SparseFeatures.from_dense(virtual_nodes(relations), dtype=torch.float64)


def looped(net, x, relations):
    """The nine virtual nodes of every node as sums over neighbours, layer by layer."""
    triples = list(zip(relations.node.tolist(), relations.neighbour.tolist(), relations.kind.tolist(), strict=True))
    triples += [(v, v, 8) for v in range(relations.num_nodes)]
    size = [sum(v == w for w, _, _ in triples) for v in range(relations.num_nodes)]
    for number, layer in enumerate(net.layers):
        weights = layer.weight.view(9, -1, x.size(1))
        rows = []
        for v in range(relations.num_nodes):
            virtual = [torch.zeros(weights.size(1), dtype=torch.float64) for _ in range(9)]
            for w, u, kind in triples:
                if w == v:
                    virtual[kind] = virtual[kind] + weights[kind] @ x[u] / np.sqrt(size[v] * size[u])
            last = number == len(net.layers) - 1
            rows.append(torch.stack(virtual).mean(dim=0) if last else torch.relu(torch.cat(virtual)))
        x = torch.stack(rows)
    return x


def make(**changes):
    torch.manual_seed(1)
    return GeomGCN(FEATURES, HIDDEN, CLASSES, **changes).double().eval()


@given(graph=graphs(max_nodes=7), num_layers=st.integers(1, 3))
def test_is_the_loop_over_nodes_groups_and_neighbours(graph, num_layers):
    net, x, relations = make(num_layers=num_layers), features(graph), relations_of(graph)
    expected = looped(net, x, relations)
    for form in (x, SparseFeatures.from_dense(x, dtype=torch.float64)):
        actual = net(form, groups_of(relations))
        assert_near(actual, expected)
        cotangent = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        ours, theirs = (dense.gradients(value, net, cotangent) for value in (actual, expected))
        for name, gradient in theirs.items():
            assert_near(ours[name], gradient)


def test_every_kind_of_relation_has_its_own_weights():
    graph = generic_graph(0)
    x, relations = features(graph), relations_of(graph)
    for kind in range(8):
        pairs = relations.kind == kind
        assert pairs.any()
        net: Any = make(num_layers=1)
        with torch.no_grad():
            net.layers[0].weight.view(9, CLASSES, FEATURES)[[k for k in range(9) if k != kind]] = 0
        heard = net(x, groups_of(relations)).abs().sum(dim=1) > 0
        assert set(heard.nonzero().flatten().tolist()) <= set(relations.node[pairs].tolist())
        assert heard.any()


def test_dropout_acts_in_training_alone():
    graph = generic_graph(0)
    net, x, groups = make(dropout=0.5), features(graph), groups_of(relations_of(graph))
    assert torch.equal(net(x, groups), net(x, groups))
    net.train()
    assert not torch.equal(net(x, groups), net(x, groups))


def test_sizes_and_reset_parameters():
    net: Any = make(num_layers=3)
    assert [list(layer.weight.shape) for layer in net.layers] == [
        [9 * HIDDEN, FEATURES],
        [9 * HIDDEN, 9 * HIDDEN],
        [9 * CLASSES, 9 * HIDDEN],
    ]
    before = [p.clone() for p in net.parameters()]
    net.reset_parameters()
    assert all(not torch.equal(p, b) for p, b in zip(net.parameters(), before, strict=True))
    bound = (6 / (FEATURES + HIDDEN)) ** 0.5  # Glorot's, of one group
    assert bound / 2 < net.layers[0].weight.abs().max() <= bound
