import json
from collections import Counter
from pathlib import Path

from asgat.config import OPTIONS
from reproduce import paper
from reproduce.experiment import EXPERIMENTS
from reproduce.experiments.heat import FORMS, PRINTED, form_settings, searched_settings
from reproduce.study import study_config


def test_heat(run_quick):
    result, text, files = run_quick("heat")
    assert [row["form"] for row in result["rows"]] == list(FORMS)
    rooted = result["rows"][list(FORMS).index("heat + root")]
    scale = study_config("karate", "asgat-heat").to_dict()["heat_scale"]
    assert rooted["model"] == "asgat-plus"
    assert rooted["settings"] == {"filter": "heat", **dict.fromkeys(OPTIONS, False), "root": True, "heat_scale": scale}
    exact = result["rows"][0]
    assert exact["settings"] == {"operator": "exact"}
    assert all(len(row["per_run"]) == 2 for row in result["rows"])
    assert "heat + root" in text
    assert [file.name for file in files] == ["heat.json", "heat.png"]


def test_every_form_was_searched_with_settings_its_model_has():
    assert list(searched_settings()) == EXPERIMENTS["heat"]["datasets"]
    for dataset in EXPERIMENTS["heat"]["datasets"]:
        assert list(searched_settings()[dataset]) == list(FORMS)
        for form, (model, own) in FORMS.items():
            settings = form_settings(dataset, form)
            config = study_config(dataset, model, **settings).to_dict()
            assert settings.items() <= config.items()
            assert own.items() <= config.items()
            assert (config["filter"] == "heat") == ("heat" in form)
            assert (config["operator"] == "exact") == ("exact" in form)
            assert config["root"] == ("root" in form)
            assert not any(config[option] for option in OPTIONS if option != "root")


def test_all_searches_had_the_same_length():
    log = Path(__file__).parents[3] / "docs" / "results" / "search.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines() if '"search": "heat"' in line]
    trials = Counter((line["dataset"], line["form"]) for line in lines)
    assert trials == {(dataset, form): 12 for dataset in EXPERIMENTS["heat"]["datasets"] for form in FORMS}
    for dataset, form in trials:
        own = [line for line in lines if (line["dataset"], line["form"]) == (dataset, form)]
        best = max(own, key=lambda line: (line.get("held_out_mean", line.get("val_mean")), -line["trial"]))
        assert searched_settings()[dataset][form].items() <= best["settings"].items()


def test_the_papers_rows():
    assert PRINTED["heat"]["chameleon"].mean == 0.631
    assert PRINTED["heat, exact"]["cornell"].mean == 0.589
    assert PRINTED["learned"] is paper.MICRO["asgat-cheb"]
