from itertools import pairwise

import numpy as np
import pytest
import torch
from tests.strategies import ZOO

from asgat.nn import ASGATConv
from asgat.spectral import ExactOperator
from reproduce.experiment import EXPERIMENTS
from reproduce.experiments.frequency import FORMS, WIDTHS, band_removed, bands, summarise

GRAPH = ZOO["generic"]


@pytest.mark.parametrize("width", WIDTHS)
def test_bands_cover_the_spectrum_once(width):
    cut = bands(width)
    assert cut[0][0] == 0.0
    assert cut[-1][1] == 2.0
    assert all(a[1] == b[0] for a, b in pairwise(cut))
    assert all(tuple(band) in cut for band in EXPERIMENTS["frequency"]["claims"][str(width)])


def test_a_removed_band_is_missing_in_the_scores():
    torch.manual_seed(0)
    conv = ASGATConv(3, 2, heads=2, k=3)
    operator = ExactOperator(GRAPH, dtype=torch.float64)
    conv.filter.double()
    value, vector = np.linalg.eigh(GRAPH.laplacian.toarray())
    response = conv.filter(torch.from_numpy(value)).detach().numpy()
    before = operator.dense(conv.filter)
    with torch.no_grad(), band_removed(conv, 0.5, 1.0):
        after = operator.dense(conv.filter).numpy()
    kept = (value.round(12) < 0.5) | (value.round(12) >= 1.0)
    assert 0 < kept.sum() < len(value)
    truth = np.einsum("ia,ah,ja->hij", vector[:, kept], response[kept], vector[:, kept])
    apart = GRAPH.components[:, None] != GRAPH.components
    np.testing.assert_allclose(np.where(apart, 0.0, after), np.where(apart, 0.0, truth), atol=1e-9)
    torch.testing.assert_close(operator.dense(conv.filter), before)


def test_the_summary():
    def run(none, first):
        return {"trained": none, "none": none, "1.0": [first, none], "0.5": [none] * 3 + [first], "0.25": [first] * 8}

    found = summarise([run(0.8, 0.6), run(0.6, 0.5)])
    assert found["none"] == pytest.approx(0.7)
    assert found["bands"][0] == {
        "width": 1.0, "low": 0.0, "high": 1.0, "mean": pytest.approx(0.55), "std": pytest.approx(0.05),
        "drop": pytest.approx(0.15), "drop_std": pytest.approx(0.05),
    }  # fmt: skip
    assert found["worst"]["1.0"] == [0.0, 1.0]
    assert found["worst"]["0.5"] == [1.5, 2.0]
    assert len(found["bands"]) == 2 + 4 + 8
    assert summarise([run(0.5, 0.5)])["worst"] == {"1.0": None, "0.5": None, "0.25": None}


def test_frequency(run_quick, study):
    result, text, files = run_quick("frequency")
    assert [(row["dataset"], row["form"]) for row in result["rows"]] == [("karate", form) for form in FORMS]
    for row in result["rows"]:
        trained = study.train("karate", row["model"])
        assert row["trained"] == pytest.approx(trained.result["micro_f1"]["mean"])
        assert len(trained.load(0).convs) == (2 if row["form"] == "two layers" else 1)
        assert row["runs"] == 2
    assert "as paper" in text
    assert [file.name for file in files] == ["frequency.json", "frequency.png", "frequency-detail.png"]
