import pytest

from asgat.experiments import k_sweep
from asgat.experiments.k_sweep import EXPERIMENT, spread
from asgat.experiments.trained_model import experiment_config, load_or_train


def test_k_sweep(run_quick, reproduction, monkeypatch):
    own = experiment_config("karate", "asgat-cheb").to_dict()["k"]
    monkeypatch.setattr(k_sweep, "QUICK_KS", [1, own])
    result, text, files = run_quick(EXPERIMENT)
    assert [(row["k"], row["recipe"]) for row in result["rows"]] == [(1, False), (own, True)]
    trained = load_or_train(reproduction, "karate", "asgat-cheb", 0, k=1)
    assert result["rows"][0]["per_run"] == trained.result["micro_f1"]["per_run"]
    assert (reproduction.runs_folder / "karate-asgat-cheb-seed0").is_dir(), "the recipe's k is the run of the table"
    assert "←" in text
    assert [file.name for file in files] == ["k-sweep.json", "k-sweep.png"]


def test_the_sweep_is_the_papers():
    assert list(range(1, 21)) == k_sweep.KS
    assert set(k_sweep.QUICK_KS) <= set(k_sweep.KS)


def test_spread():
    rows = [{"k": k, "mean": mean} for k, mean in ((6, 0.1), (7, 0.5), (8, 0.8), (9, 0.6))]
    assert spread(rows, 6) == pytest.approx(0.3)
