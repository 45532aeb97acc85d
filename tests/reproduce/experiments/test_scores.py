import numpy as np
import pytest

from asgat.nn.registry import MODELS
from reproduce import paper
from reproduce.experiments import scores
from reproduce.experiments.scores import entries_of, models_of, printed_score, score
from reproduce.study import Study


@pytest.fixture
def two_seeds(study):
    study.seeds = (0, 1)
    return study


def test_means_are_over_all_runs_of_all_seeds(two_seeds):
    found = score(two_seeds, "karate", "gcn", "micro_f1")
    assert found is not None
    rows = [row for seed in (0, 1) for row in two_seeds.train("karate", "gcn", seed).result["rows"]]
    values = [row["micro_f1"] for row in rows]
    assert found["per_run"] == values
    assert len(values) == 4
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["std"] == pytest.approx(np.std(values))
    assert found["val_mean"] == pytest.approx(np.mean([row["val_score"] for row in rows]))
    assert list(found["per_seed"]) == ["0", "1"]
    assert np.mean(list(found["per_seed"].values())) == pytest.approx(found["mean"])


def test_a_model_that_fails_with_one_seed_has_no_score(two_seeds, monkeypatch):
    monkeypatch.setattr(two_seeds, "train_all_seeds", lambda *a, **k: None)
    assert score(two_seeds, "karate", "gcn", "micro_f1") is None


def test_data_set_to_model_to_score_and_the_chosen_one(study, monkeypatch):
    monkeypatch.setitem(scores.PRINTED, "micro", {"gcn": {"karate": paper.PrintedScore(0.5, 0.1)}})
    result = scores.collect(study, "micro", ["karate"])
    assert list(result) == ["karate"]
    assert list(models_of(result["karate"])) == ["asgat-cheb", "gcn"]
    assert {"mean", "std", "per_run", "val_mean", "paper", "best_published"} <= set(result["karate"]["gcn"])
    assert (result["karate"]["gcn"]["paper"], result["karate"]["gcn"]["paper_std"]) == (0.5, 0.1)
    assert result["karate"]["asgat-cheb"]["paper"] is None
    best = max(models_of(result["karate"]).items(), key=lambda item: item[1]["val_mean"])[0]
    assert result["karate"]["chosen"] == best


def test_the_exact_form_is_trained_on_small_graphs(study, monkeypatch):
    asked = []
    monkeypatch.setattr(scores, "score", lambda _, dataset, model, *__: asked.append((dataset, model)))
    assert scores.collect(Study(study.out), "micro", ["karate", "digits"]) == {}
    models = {dataset: [model for name, model in asked if name == dataset] for dataset in ("karate", "digits")}
    assert models["karate"] == [*scores.ASGAT, *scores.BASELINES]
    assert models["digits"] == models["karate"][1:]
    assert models["karate"][0] == "asgat-exact"


def test_all_models_are_compared_except_those_of_other_experiments():
    assert set(MODELS) - {*scores.ASGAT, *scores.BASELINES} == {"asgat-heat", "asgat-linear"}


def row(mean, val, theirs=None, doubtful=None, metric="micro_f1"):
    return {"metric": metric, "mean": mean, "std": 0.01, "per_run": [mean], "val_mean": val, "paper": theirs,
            "paper_std": None, "paper_doubtful": doubtful, "best_published": None}  # fmt: skip


def test_tables_show_both_and_the_difference():
    entry = {"gcn": row(0.853, 0.9, 0.861), "mlp": row(0.7, 0.8, 0.337, "swapped"), "chosen": "gcn"}
    result = {"quick": False, "about": {"experiment": "micro", "seeds": [0, 1]}, "texas": entry}
    (table,) = scores.tables(result)
    cells = list(map(list, zip(*table.rows, strict=True)))
    assert cells[0] == ["gcn ←", "mlp"]
    assert cells[1] == ["85.3 ± 1.0", "70.0 ± 1.0"]
    assert cells[2] == ["86.1", "33.7?"]
    assert cells[3] == ["-0.8", "+36.3"]
    assert "best published 89.7" in str(table.title)
    as_macro = {**result, "about": {"experiment": "macro"}}
    assert "best published" not in str(scores.tables(as_macro)[0].title)


def test_models_of_others_stand_below_ours():
    entry = {"asgat-deep": row(0.976, 0.975, metric="roc_auc"), "chosen": "asgat-deep"}
    (table,) = scores.tables({"about": {"experiment": "heterophilous"}, "minesweeper": entry})
    assert table.title == "minesweeper: ROC-AUC in percent; best published 97.9"
    assert [line[:3] for line in table.rows] == [
        ("asgat-deep ←", "97.6 ± 1.0", "–"),
        ("gcn-tuned", "–", "97.9"),
        ("polynormer", "–", "97.5"),
    ]
    assert table.headings[2] == "published"


def test_the_figure_has_a_panel_per_data_set():
    entry = {"gcn": row(0.853, 0.9, 0.861), "mlp": row(0.7, 0.8), "chosen": "gcn"}
    result = {
        "quick": True,
        "about": {"experiment": "micro", "seeds": [0]},
        **{name: entry for name in ("texas", "cora", "mine")},
    }
    figure = scores.draw(result)["micro"]
    assert [axis.get_title() for axis in figure.axes if axis.get_visible()] == ["Texas", "Cora", "mine"]
    marks = [[np.asarray(line.get_xdata(), dtype=float) for line in axis.lines] for axis in figure.axes]
    assert any(np.allclose(x, [86.1, np.nan], equal_nan=True) for x in marks[0] if len(x) == 2), "the paper's marks"
    assert any(np.allclose(x, 89.7) for x in marks[0]), "the best published"
    assert not any(np.allclose(x, 89.7) for x in marks[2])


def test_entries():
    assert entries_of({"quick": True, "about": {}, "cora": {}}) == {"cora": {}}
    assert printed_score(paper.MICRO, "geom-gcn", "texas") == {"paper": 0.676, "paper_std": None}
    assert printed_score(paper.MICRO, "linkx", "texas") == {"paper": None, "paper_std": None}


@pytest.mark.parametrize("name", ["directed", "heterophilous"])
def test_tables_of_other_data_sets_have_their_own_models(name, study, monkeypatch):
    asked = []
    monkeypatch.setattr(scores, "score", lambda _, __, model, metric, **___: asked.append((model, metric)))
    scores.collect(Study(study.out), name, ["karate"])
    assert asked == [(model, "micro_f1") for model in scores.MODELS[name]]


def test_micro(run_quick):
    result, text, files = run_quick("micro")
    assert result["quick"] is True
    entry = result["karate"]
    assert set(entry) == {"asgat-cheb", "gcn", "chosen"}
    assert len(entry["gcn"]["per_run"]) == 2
    assert f"{100 * entry['gcn']['mean']:.1f} ±" in text
    assert [file.name for file in files] == ["micro.json", "micro.png"]


def test_macro_comes_from_the_runs_of_micro(run_quick, study, monkeypatch):
    run_quick("micro")
    monkeypatch.setattr("asgat.training.runner.train_jobs", None)  # a second training would fail
    result, text, files = run_quick("macro")
    per_run = study.train("karate", "gcn", 0).result["macro_f1"]["per_run"]
    assert result["karate"]["gcn"]["per_run"] == per_run
    assert result["karate"]["gcn"]["best_published"] is None
    assert "macro-F1" in text
    assert [file.name for file in files] == ["macro.json", "macro.png"]
