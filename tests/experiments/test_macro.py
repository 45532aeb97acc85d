from asgat.experiments import macro, micro
from asgat.experiments.trained_model import load_or_train


def test_macro_comes_from_the_runs_of_micro(run_quick, reproduction, monkeypatch):
    run_quick(micro.EXPERIMENT)
    monkeypatch.setattr("asgat.training.runner.train_jobs", None)  # a second training would fail
    result, text, files = run_quick(macro.EXPERIMENT)
    scores = load_or_train(reproduction, "karate", "gcn", 0).result["macro_f1"]
    assert result["karate"]["gcn"]["per_run"] == scores["per_run"]
    assert result["karate"]["gcn"]["best_published"] is None
    assert "macro-F1" in text
    assert [file.name for file in files] == ["macro.json", "macro.png"]
