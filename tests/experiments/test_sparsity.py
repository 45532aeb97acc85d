import json

import numpy as np
import pytest

from asgat.errors import AsgatError
from asgat.experiments import sparsity
from asgat.experiments.reproduction import Reproduction
from asgat.experiments.sparsity import EXPERIMENT
from asgat.experiments.trained_model import experiment_config
from asgat.graph.hops import hop_distances


def test_sparsity(run_quick, reproduction, monkeypatch):
    monkeypatch.setattr(sparsity, "QUICK_KS", [1, 4, None])
    result, text, files = run_quick(EXPERIMENT)
    rows = {row["k"]: row for row in result["rows"]}
    assert list(rows) == [1, 4, None]
    assert rows[1]["density"] == pytest.approx(1 / 34)
    assert rows[4]["density"] == pytest.approx(4 / 34)
    graph, order = reproduction.load("karate").graph, experiment_config("karate", "asgat-cheb").to_dict()["order"]
    reached = hop_distances(graph, np.arange(34)) <= order  # as far as the polynomial goes
    assert rows[None]["density"] == pytest.approx(reached.mean())
    assert all(row["ms_per_epoch"] > 0 for row in rows.values())
    assert "all" in text
    assert [file.name for file in files] == ["sparsity.json", "sparsity.png"]


def test_a_measurement_is_made_once_unless_fresh(reproduction, monkeypatch):
    counted = iter(range(9))
    monkeypatch.setattr(sparsity, "measure", lambda *_: {"k": 1, "count": next(counted)})
    monkeypatch.setattr(sparsity, "QUICK_KS", [1])
    values = [next(sparsity.rows(reproduction, "karate"))["count"] for _ in range(2)]
    fresh = Reproduction(reproduction.out, quick=True, datasets=("karate",), fresh=True)
    values += [next(sparsity.rows(fresh, "karate"))["count"] for _ in range(2)]
    assert values == [0, 0, 1, 1]
    kept = reproduction.runs_folder / "sparsity" / "cpu" / "karate-k=1.json"
    assert json.loads(kept.read_bytes())["value"]["count"] == 1


def test_a_measurement_that_fails_is_listed(reproduction, monkeypatch):
    def measure(reproduction, dataset, k):
        if k is None:
            raise AsgatError("That takes 99 GiB.")
        return {"k": k}

    monkeypatch.setattr(sparsity, "measure", measure)
    monkeypatch.setattr(sparsity, "QUICK_KS", [1, None])
    assert [row["k"] for row in sparsity.rows(reproduction, "karate")] == [1]
    assert reproduction.failed == {"karate, k = all": "That takes 99 GiB."}
