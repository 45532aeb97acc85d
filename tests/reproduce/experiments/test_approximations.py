import numpy as np
import pytest
import torch

from asgat.data import load_dataset
from reproduce.experiments import approximations
from reproduce.experiments.approximations import (
    DOUBLE,
    FINE,
    RESPONSES,
    approximation,
    band_pass,
    compare,
)


def test_a_polynomial_is_the_interpolating_one():
    filter = RESPONSES["band-pass"]
    nodes = np.cos(np.pi * (np.arange(16) + 0.5) / 16)
    polynomial = np.polynomial.chebyshev.Chebyshev.fit(
        nodes, filter(torch.from_numpy(nodes + 1.0))[:, 0].numpy(), 15, [-1, 1]
    )
    np.testing.assert_allclose(approximation("Chebyshev", 15, filter), polynomial(FINE.numpy() - 1.0), atol=1e-9)


def test_arma_approximates_a_sharp_band_better():
    truth = band_pass(FINE)
    largest = {form: float((approximation(form, 30, RESPONSES["band-pass"]) - truth).abs().max())
               for form in ("Chebyshev", "ARMA")}  # fmt: skip
    assert largest["ARMA"] < 0.2 * largest["Chebyshev"]


def test_the_band():
    frequency = torch.tensor([0.0, 0.5, 0.6, 0.7, 1.0, 1.4, 1.5, 2.0], dtype=DOUBLE)
    assert band_pass(frequency).tolist() == pytest.approx([0, 0, 0.5, 1, 1, 0.5, 0, 0])


def test_expansions_converge_to_conjugate_gradients():
    found = compare(load_dataset("karate").graph, RESPONSES["band-pass"], 1e-4, DOUBLE, [20, 60, 180])
    differences = [row["difference"] for row in found["orders"]]
    assert differences[0] > differences[1] > differences[2]
    assert found["enough"] in (None, 20, 60, 180)


def test_approximations(run_quick, monkeypatch):
    monkeypatch.setattr(approximations, "ORDERS", [5, 15])
    monkeypatch.setattr(approximations, "QUICK_EXPANSIONS", [20])
    result, text, files = run_quick("approximations")
    assert len(result["errors"]) == 3 * 3 * 2
    assert [(row["dataset"], row["layer"]) for row in result["trained"]] == [("karate", 1), ("karate", 2)] * 2
    assert result["expansion"]["orders"][0]["order"] == 20
    assert "band-pass" in text
    assert [file.name for file in files] == ["approximations.json", "approximations.png"]


def test_no_data_is_needed(run_quick, study, monkeypatch):
    monkeypatch.setattr(approximations, "ORDERS", [5])
    monkeypatch.setattr(approximations, "QUICK_EXPANSIONS", [20])
    study.datasets = None
    result, _, _ = run_quick("approximations")
    assert result["trained"] == []
    assert list(result["about"]["skipped"]) == ["cora"]
