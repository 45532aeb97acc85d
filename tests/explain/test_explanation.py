"""What a model attends to, held against dense mathematics."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import ZOO, graphs

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.estimator.trained_run import load_run
from asgat.explain.explanation import (
    BAND_NAMES,
    BANDS,
    Bands,
    applied_response,
    attention_rows,
    check_attends,
    explain,
    smooth_steps,
)
from asgat.filters import HeatFilter, MLPFilter
from asgat.nn import ASGAT, ASGATConv
from asgat.nn.registry import make_config
from asgat.spectral import ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator
from asgat.training.runner import run

GENERIC = ZOO["generic too"]


def model_on(graph, heads=3, k=4, seed=0, **settings):
    torch.manual_seed(seed)
    return ASGAT(5, 4, 2, heads=heads, out_heads=2, k=k, **settings).eval()


def parts_by_hand(graph, response):
    """What each band adds to each score, [heads, N, N, 4], from eigenvectors; response is [N, heads]."""
    value, vector = dense.eigen(graph)
    value = value.round(9)
    parts = []
    for low, high in BANDS:
        inside = (value >= low) & ((value < high) | (high == 2.0))
        parts.append([(vector * (response[:, h] * inside)) @ vector.T for h in range(response.shape[1])])
    return np.moveaxis(np.array(parts), 0, -1)


@given(graphs(min_nodes=2), st.integers(0, 3))
def test_bands_are_sums_over_their_eigenvalues(graph, seed):
    torch.manual_seed(seed)
    filter = MLPFilter(2).double()
    operator = ExactOperator(graph, dtype=torch.float64)
    nodes = np.arange(graph.num_nodes)
    index = np.broadcast_to(nodes, (2, graph.num_nodes, graph.num_nodes))
    value, _ = dense.eigen(graph)
    with torch.no_grad():
        response = filter(torch.from_numpy(value.round(9))).numpy()
    found = Bands(graph).contributions(operator, filter, nodes, index)
    np.testing.assert_allclose(found, parts_by_hand(graph, response), atol=1e-7)


@pytest.mark.parametrize("exact_nodes", [3000, 0], ids=["eigenvectors", "polynomials"])
@pytest.mark.parametrize("make", [ChebyshevOperator, TableOperator, ExactOperator])
@pytest.mark.parametrize("graph", [GENERIC, ZOO["star"], ZOO["even cycle"]], ids=["generic", "star", "cycle"])
def test_the_bands_of_a_score_sum_to_it(exact_nodes, make, graph):
    torch.manual_seed(1)
    filter = MLPFilter(3).double()
    operator = make(graph, dtype=torch.float64)
    index, score = (part.detach().numpy() for part in operator.top(filter, 4))
    parts = Bands(graph, exact_nodes).contributions(operator, filter, np.arange(graph.num_nodes), index)
    there = np.isfinite(score)
    kinked = make is ExactOperator and not exact_nodes  # the response is no polynomial, but is taken for one
    np.testing.assert_allclose(parts.sum(axis=-1)[there], score[there], rtol=0, atol=1e-3 if kinked else 1e-5)


def test_polynomials_tell_bands_apart_as_eigenvectors_do():
    """Up to the eigenvalues in the blur beside an edge; an edge that has many exactly on it is one of the cases."""
    graph = load_dataset("karate").graph
    operator, filter = ExactOperator(graph, dtype=torch.float64), HeatFilter(1)
    nodes = np.arange(graph.num_nodes)
    index = np.broadcast_to(nodes, (1, 34, 34))
    exact, smooth = (Bands(graph, size).contributions(operator, filter, nodes, index) for size in (3000, 0))
    value, vector = dense.eigen(graph)
    blurred = [i for i, v in enumerate(value) if any(-0.06 < v - low < 0 for low, _ in BANDS[1:])]
    allowed = np.abs(vector[:, blurred]) @ np.abs(vector[:, blurred]).T + 0.02
    assert (np.abs(exact - smooth)[0] <= allowed[..., None]).all()
    assert (np.abs(value - 1.0) < 1e-9).sum() > 5
    assert np.abs(exact - smooth).mean() < 0.01


def test_smooth_steps_are_one_together_and_one_of_them_inside_a_band():
    steps = smooth_steps()
    total = steps.sum(axis=0)
    np.testing.assert_allclose(total, np.eye(len(total))[0], atol=1e-12)
    for band, (low, high) in enumerate(BANDS):
        inside = np.polynomial.chebyshev.chebval(np.linspace(low + 0.02, high - 0.07, 20) - 1.0, steps[band])
        assert (np.abs(inside - 1.0) < 0.05).all()


def test_the_applied_response_is_the_operators_polynomial():
    filter, frequency = HeatFilter(2, scale=30.0), np.linspace(0.0, 2.0, 50)
    coarse = applied_response(ChebyshevOperator(GENERIC, order=2), filter, frequency)
    fine = applied_response(ChebyshevOperator(GENERIC, order=60), filter, frequency)
    truth = applied_response(ExactOperator(GENERIC), filter, frequency)
    assert coarse.shape == truth.shape == (50, 2)
    assert np.abs(fine - truth).max() < 1e-4 < 0.1 < np.abs(coarse - truth).max()


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("name", ["generic too", "no edges", "star", "one node"])
def test_rows_are_the_models_attention(name, k):
    graph = ZOO[name]
    model = model_on(graph, k=k)
    operator = ChebyshevOperator(graph, order=6)
    with torch.no_grad():
        _, attentions = model(torch.randn(graph.num_nodes, 5), operator, return_attention_weights=False)
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


# -- of a run ---------------------------------------------------------------------------------------


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


# -- PyG's explainer --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module", [ASGATConv(5, 2, heads=2, concat=False), ASGAT(5, 4, 2, heads=2)], ids=["layer", "model"]
)
def test_pygs_attention_explainer_refuses_our_layers(module):
    """It reads attention as one number per input edge. Ours is over pairs of nodes, so it must not find any to read."""
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
