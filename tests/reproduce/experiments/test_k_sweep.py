import pytest

from reproduce.experiments import k_sweep
from reproduce.experiments.k_sweep import spread
from reproduce.study import study_config


def test_k_sweep(run_quick, study, monkeypatch):
    own = study_config("karate", "asgat-cheb").to_dict()["k"]
    monkeypatch.setattr(k_sweep, "QUICK_KS", [1, own])
    result, text, files = run_quick("k-sweep")
    assert [(row["k"], row["recipe"]) for row in result["rows"]] == [(1, False), (own, True)]
    trained = study.train("karate", "asgat-cheb", 0, k=1)
    assert result["rows"][0]["per_run"] == trained.result["micro_f1"]["per_run"]
    assert (study.out / "runs-quick" / "karate-asgat-cheb-seed0").is_dir(), "the recipe's k is the run of the table"
    assert "←" in text
    assert [file.name for file in files] == ["k-sweep.json", "k-sweep.png"]


def test_the_sweep_is_the_papers():
    assert list(range(1, 21)) == k_sweep.KS
    assert set(k_sweep.QUICK_KS) <= set(k_sweep.KS)


def test_spread():
    rows = [{"k": k, "mean": mean} for k, mean in ((6, 0.1), (7, 0.5), (8, 0.8), (9, 0.6))]
    assert spread(rows, 6) == pytest.approx(0.3)
