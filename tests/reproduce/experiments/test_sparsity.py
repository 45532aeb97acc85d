import numpy as np
import pytest

from asgat.errors import AsgatError
from asgat.graph.hops import hop_distances
from reproduce.experiments import sparsity
from reproduce.study import study_config


def test_sparsity(run_quick, study, monkeypatch):
    monkeypatch.setattr(sparsity, "QUICK_KS", [1, 4, None])
    result, text, files = run_quick("sparsity")
    rows = {row["k"]: row for row in result["rows"]}
    assert list(rows) == [1, 4, None]
    assert rows[1]["density"] == pytest.approx(1 / 34)
    assert rows[4]["density"] == pytest.approx(4 / 34)
    graph, order = study.load("karate").graph, study_config("karate", "asgat-cheb").to_dict()["order"]
    reached = hop_distances(graph, np.arange(34)) <= order  # as far as the polynomial goes
    assert rows[None]["density"] == pytest.approx(reached.mean())
    assert all(row["ms_per_epoch"] > 0 for row in rows.values())
    assert "all" in text
    assert [file.name for file in files] == ["sparsity.json", "sparsity.png"]


def test_a_measurement_that_fails_is_listed(study, monkeypatch):
    def measure(study, dataset, k):
        if k is None:
            raise AsgatError("That takes 99 GiB.")
        return {"k": k}

    monkeypatch.setattr(sparsity, "measure", measure)
    monkeypatch.setattr(sparsity, "QUICK_KS", [1, None])
    assert [row["k"] for row in sparsity.rows(study, "karate")] == [1]
    assert study.failed == {"karate, k = all": "That takes 99 GiB."}
