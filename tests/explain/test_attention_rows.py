"""Rows of attention, compared with the model's own."""

import numpy as np
import pytest
import torch
from tests import dense
from tests.strategies import ZOO

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.estimator.classifier import ASGATClassifier
from asgat.estimator.trained_run import load_run
from asgat.explain import BAND_NAMES, attention_rows, check_attends, explain, explain_filters
from asgat.filters import HeatFilter
from asgat.graph import Graph
from asgat.nn import ASGAT, ASGATConv
from asgat.nn.registry import make_config
from asgat.spectral import ChebyshevOperator, ExactOperator
from asgat.training.runner import run

GENERIC = ZOO["generic too"]


def model_on(graph, heads=3, k=4, seed=0, **settings):
    torch.manual_seed(seed)
    return ASGAT(5, 4, 2, heads=heads, out_heads=2, k=k, **settings).eval()


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("name", ["generic too", "no edges", "star", "one node"])
def test_rows_are_the_models_attention(name, k):
    graph = ZOO[name]
    model = model_on(graph, k=k)
    operator = ChebyshevOperator(graph, order=6)
    with torch.no_grad():
        _, attentions = model(torch.randn(graph.num_nodes, 5), operator, return_attention_weights=True)
    nodes = np.arange(graph.num_nodes)[::-1].copy()
    layers = attention_rows(model, operator, graph, nodes)
    assert len(layers) == len(attentions)
    distance = dense.hops(graph)
    for rows, attention in zip(layers, attentions, strict=True):
        weights = np.zeros((attention.heads, graph.num_nodes, graph.num_nodes))
        for head, row, place in np.ndindex(rows.index.shape):
            weights[head, nodes[row], rows.index[head, row, place]] += rows.weight[head, row, place]
            if np.isfinite(rows.score[head, row, place]):
                assert rows.hops[head, row, place] == distance[nodes[row], rows.index[head, row, place]]
        np.testing.assert_allclose(weights, attention.to_dense().numpy(), atol=1e-6)
        assert (np.diff(rows.weight, axis=-1) <= 1e-9).all()  # the best come first


def test_a_limit_keeps_the_best():
    model, operator = model_on(GENERIC, k=4), ChebyshevOperator(GENERIC)
    nodes = np.array([3, 5])
    for whole, cut in zip(
        attention_rows(model, operator, GENERIC, nodes), attention_rows(model, operator, GENERIC, nodes, 2), strict=True
    ):
        assert np.array_equal(whole.index[..., :2], cut.index)
        assert np.array_equal(whole.weight[..., :2], cut.weight)


def test_a_low_pass_head_attends_through_low_frequencies_and_a_high_pass_head_through_high_ones():
    class Slope(HeatFilter):
        sign = 1.0

        def forward(self, frequency):
            return torch.exp(-4.0 * (frequency if self.sign > 0 else 2.0 - frequency)).unsqueeze(-1)

    class Fast(Slope):
        sign = -1.0

    path = ZOO["path"]
    operator = ExactOperator(path)
    for kind, band in ((Slope, "low"), (Fast, "high")):
        model = ASGAT(2, 2, 2, num_layers=1, heads=1, k=3, filter=kind)
        (rows,) = attention_rows(model, operator, path, np.array([2]))
        assert BAND_NAMES[rows.band[0, 0, 0]] == band


def test_a_head_that_is_flat_at_zero_names_no_band():
    class Silent(HeatFilter):
        def forward(self, frequency):
            return torch.zeros(len(frequency), 1)

    model = ASGAT(2, 2, 2, num_layers=1, heads=1, k=3, filter=Silent)
    (rows,) = attention_rows(model, ExactOperator(GENERIC), GENERIC, np.array([0]))
    assert (rows.band == -1).all()


@pytest.mark.parametrize("k", [3, None])
def test_rows_of_a_directed_graph_are_those_of_both_copies_of_a_node(k):
    graph = Graph.from_edges([[0, 1, 1, 2, 4, 4], [1, 0, 2, 3, 0, 4]], 6, directed=True)
    model, operator = model_on(graph, k=k), ChebyshevOperator(graph.double_cover, order=6)
    nodes, distance = np.array([4, 0, 5]), dense.hops(graph.undirected)
    for conv, rows in zip(model.convs, attention_rows(model, operator, graph, nodes), strict=True):
        with torch.no_grad():
            expected = conv.attention(operator).to_dense().numpy()
        assert rows.nodes.tolist() == [4, 4, 0, 0, 5, 5]
        assert rows.side is not None
        assert rows.index_side is not None
        assert rows.side.tolist() == [0, 1, 0, 1, 0, 1]
        weights = np.zeros((conv.heads, 6, 12))
        for head, row, place in np.ndindex(rows.index.shape):
            at = head, row, place
            weights[head, row, 2 * rows.index[at] + rows.index_side[at]] += rows.weight[at]
            if np.isfinite(rows.score[at]):
                assert rows.hops[at] == distance[rows.nodes[row], rows.index[at]]
                assert rows.bands[at].sum() == pytest.approx(rows.score[at], abs=1e-5)
        np.testing.assert_allclose(weights, expected[:, [8, 9, 0, 1, 10, 11]], atol=1e-6)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    config = make_config("asgat-cheb", epochs=3, hidden=4, heads=2, k=4, order=5)
    run(load_dataset("karate"), "asgat-cheb", config, runs=[0], out=path)
    return load_run(path)


def test_explain_lists_every_head_of_every_layer(trained):
    rows = explain(trained, 7)
    by_head = {(row["layer"], row["head"]) for row in rows}
    assert by_head == {(1, 1), (1, 2), (2, 1)}
    for head in by_head:
        mine = [row for row in rows if (row["layer"], row["head"]) == head]
        assert len(mine) == 4
        assert sum(row["weight"] for row in mine) == pytest.approx(1.0, abs=1e-5)
        assert all(sum(row["bands"]) == pytest.approx(row["score"], abs=1e-4) for row in mine)
    distance = dense.hops(trained.graph)
    assert all(row["hops"] == distance[7, row["node"]] for row in rows)
    assert all(row["class"] == f"class {trained.y[row['node']]}" for row in rows)


def test_a_model_without_spectral_attention_is_refused(tmp_path):
    run(load_dataset("karate"), "gcn", make_config("gcn", epochs=2), runs=[0], out=tmp_path)
    with pytest.raises(AsgatError, match="gcn has no spectral attention"):
        check_attends(load_run(tmp_path))


@pytest.mark.parametrize("directed", [False, True])
def test_filter_heads_are_explained_by_bands(tmp_path, directed):
    club = load_dataset("karate")
    graph = Graph.from_edges(club.graph.edges_once()[0], 34, directed=directed)
    settings = {"channels": "filters", "layers": 2}
    model = ASGATClassifier("asgat-deep", epochs=2, hidden=4, heads=2, directed=directed, settings=settings)
    model.fit(graph, club.y, x=club.x).save_pretrained(tmp_path)
    trained = load_run(tmp_path)
    assert explain(trained, 7) == []
    rows = explain_filters(trained)
    assert [(row["layer"], row["head"]) for row in rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert all(sum(row["bands"]) == pytest.approx(1.0) for row in rows)
    assert all(("along_edges" in row) == directed for row in rows)


def test_a_model_with_means_alone_has_nothing_to_explain(tmp_path):
    config = make_config("asgat-deep", epochs=2, hidden=4, channels="mean")
    run(load_dataset("karate"), "asgat-deep", config, runs=[0], out=tmp_path)
    with pytest.raises(AsgatError, match="asgat-deep has no spectral attention"):
        explain_filters(load_run(tmp_path))


@pytest.mark.parametrize(
    "module", [ASGATConv(5, 2, heads=2, concat=False), ASGAT(5, 4, 2, heads=2)], ids=["layer", "model"]
)
def test_pygs_attention_explainer_refuses_our_layers(module):
    """It reads attention as one number per input edge. Ours is over pairs of nodes, so it must find none."""
    from torch_geometric.explain import AttentionExplainer, Explainer
    from torch_geometric.nn import MessagePassing

    graph = load_dataset("karate").graph
    explainer = Explainer(
        module.eval(),
        AttentionExplainer(),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    edges = torch.from_numpy(graph.edge_index())
    with pytest.raises(ValueError, match="Could not collect any attention coefficients"):
        explainer(torch.randn(34, 5), edges)
    assert not any(isinstance(part, MessagePassing) for part in module.modules())


def test_explain_tells_the_sides_of_a_directed_graph_apart(tmp_path):
    club = load_dataset("karate")
    graph = Graph.from_edges(club.graph.edges_once()[0], 34, directed=True)
    model = ASGATClassifier(epochs=3, hidden=4, heads=2, k=4, order=5, directed=True)
    model.fit(graph, club.y, x=club.x).save_pretrained(tmp_path)
    rows = explain(load_run(tmp_path), 7)
    assert {row["node_side"] for row in rows} == {"out", "in"}
    for layer, head, side in {(row["layer"], row["head"], row["side"]) for row in rows}:
        mine = [row for row in rows if (row["layer"], row["head"], row["side"]) == (layer, head, side)]
        assert len(mine) <= 4
        assert sum(row["weight"] for row in mine) == pytest.approx(1.0, abs=1e-5)
    assert {row["side"] for row in rows} == {"out", "in"}
