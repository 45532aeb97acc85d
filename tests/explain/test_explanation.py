"""Explanations of one node, and what PyG's explainer makes of our layers."""

import pytest
import torch
from tests import dense

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.estimator.classifier import ASGATClassifier
from asgat.estimator.trained_run import load_run
from asgat.explain import check_attends, explain, explain_filters
from asgat.graph import Graph
from asgat.nn import ASGAT, ASGATConv
from asgat.nn.registry import make_config
from asgat.training.runner import run


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
