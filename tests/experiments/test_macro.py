from asgat.experiments import macro, micro
from asgat.experiments.trained_models import train


def test_macro_comes_from_the_runs_of_micro(carry_out, study, monkeypatch):
    carry_out(micro.EXPERIMENT)
    monkeypatch.setattr("asgat.training.runner.train_run", None)  # a second training would stumble over it
    result, text, files = carry_out(macro.EXPERIMENT)
    scores = train(study, "karate", "gcn", 0).result["macro_f1"]
    assert result["karate"]["gcn"]["per_run"] == scores["per_run"]
    assert result["karate"]["gcn"]["best_published"] is None
    assert "macro-F1" in text
    assert [file.name for file in files] == ["macro.json", "macro.png"]
