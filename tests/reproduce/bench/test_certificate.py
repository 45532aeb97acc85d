import math

import numpy as np
import pytest
import torch

from asgat.graph import Graph
from asgat.nn import ASGAT
from asgat.spectral import ChebyshevOperator
from asgat.spectral.certificate import Certificate
from asgat.tables import TableOperator
from reproduce.bench import certificate
from reproduce.bench.certificate import bench_certificate, certificate_errors

CPU = torch.device("cpu")
NAMES = {
    "dataset",
    "candidates_per_node",
    "certified_share",
    "mean_bound",
    "max_bound",
    "mean_error",
    "max_error",
    "violations",
    "score_range",
    "candidates",
    "cap",
    "order",
    "dtype",
}


def graph(nodes=80):
    rng = np.random.default_rng(1)
    return Graph.from_edges(rng.integers(0, nodes, (2, 2 * nodes)), nodes)


def test_rows_have_the_promised_names_and_no_violation(small):
    said: list[str] = []
    for name in ("karate", "csbm"):
        row = bench_certificate(name, CPU, said.append, epochs=3)
        assert row["dataset"] == name
        assert set(row) >= NAMES
        assert row["violations"] == 0
        assert 0 <= row["mean_error"] <= row["mean_bound"] <= row["max_bound"]
        assert row["max_error"] <= row["max_bound"]
        assert 0 <= row["certified_share"] <= 1
        assert row["score_range"][0] < row["score_range"][1]
        assert (row["candidates"], row["cap"], row["dtype"]) == (32, 256, "float32")
        assert row["candidates_per_node"] > 16
    assert said


@pytest.mark.parametrize("rows_at_once", [7, 256])
def test_errors_are_over_every_layer_head_and_node(monkeypatch, rows_at_once):
    monkeypatch.setattr(certificate, "_ROWS", rows_at_once)
    torch.manual_seed(0)
    operator = TableOperator(graph(), 6, candidates=3, cap=0)
    model = ASGAT(4, 3, 2, heads=2, k=3, order=6)
    figures = certificate_errors(model, operator)
    layers = model.certificates(operator)
    bound = torch.cat([layer.bound.flatten() for layer in layers])
    assert bound.numel() == (2 + 1) * 80
    assert figures["mean_bound"] == pytest.approx(float(bound.mean()))
    assert figures["max_bound"] == pytest.approx(float(bound.max()))
    assert figures["candidates_per_node"] == operator.table.candidates_per_node
    assert figures["violations"] == 0
    assert figures["max_error"] > 1e-4, "three candidates are too few"
    everything = ChebyshevOperator(graph(), 6, dtype=torch.float64)
    with torch.no_grad():
        scores = torch.cat([everything.dense(conv.filter.double()).flatten() for conv in model.convs])
    expected = [float(scores.min()), float(scores.max())]
    assert figures["score_range"] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_bound_below_the_truth_is_a_violation(monkeypatch):
    torch.manual_seed(0)
    operator, model = TableOperator(graph(), 6, candidates=3, cap=0), ASGAT(4, 3, 2, heads=2, k=3, order=6)
    honest = certificate_errors(model, operator)

    def lie(self, filter, index, score):
        return Certificate(torch.zeros_like(score[..., 0]), torch.ones_like(score[..., 0], dtype=torch.bool))

    monkeypatch.setattr(TableOperator, "certify", lie)
    figures = certificate_errors(model, operator)
    assert figures["violations"] > 0
    assert figures["max_error"] == honest["max_error"]
    assert math.isclose(figures["certified_share"], 1.0)
