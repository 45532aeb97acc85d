import json
from collections import Counter
from pathlib import Path

from asgat.config import OPTIONS
from asgat.experiments import paper
from asgat.experiments.heat import DATASETS, EXPERIMENT, PRINTED, ROWS, searched, settings_of
from asgat.experiments.trained_models import config_of


def test_heat(carry_out):
    result, text, files = carry_out(EXPERIMENT)
    assert [row["form"] for row in result["rows"]] == list(ROWS)
    rooted = result["rows"][list(ROWS).index("heat + root")]
    scale = config_of("karate", "asgat-heat").to_dict()["heat_scale"]
    assert rooted["model"] == "asgat-plus"
    assert rooted["settings"] == {"filter": "heat", **dict.fromkeys(OPTIONS, False), "root": True, "heat_scale": scale}
    exact = result["rows"][0]
    assert exact["settings"] == {"operator": "exact"}
    assert all(len(row["per_run"]) == 2 for row in result["rows"])
    assert "heat + root" in text
    assert [file.name for file in files] == ["heat.json", "heat.png"]


def test_every_form_was_searched_with_settings_its_model_has():
    assert list(searched()) == DATASETS
    for dataset in DATASETS:
        assert list(searched()[dataset]) == list(ROWS)
        for form, (model, own) in ROWS.items():
            settings = settings_of(dataset, form)
            config = config_of(dataset, model, **settings).to_dict()
            assert settings.items() <= config.items()
            assert own.items() <= config.items()
            assert (config["filter"] == "heat") == ("heat" in form)
            assert (config["operator"] == "exact") == ("exact" in form)
            assert config["root"] == ("root" in form)
            assert not any(config[option] for option in OPTIONS if option != "root")


def test_searches_had_the_same_length():
    log = Path(__file__).parents[2] / "docs" / "results" / "search.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines() if '"search": "heat"' in line]
    trials = Counter((line["dataset"], line["form"]) for line in lines)
    assert trials == {(dataset, form): 12 for dataset in DATASETS for form in ROWS}
    for dataset, form in trials:
        own = [line for line in lines if (line["dataset"], line["form"]) == (dataset, form)]
        best = max(own, key=lambda line: (line.get("held_out_mean", line.get("val_mean")), -line["trial"]))
        assert searched()[dataset][form].items() <= best["settings"].items()


def test_the_papers_rows():
    assert PRINTED["heat"]["chameleon"].mean == 0.631
    assert PRINTED["heat, exact"]["cornell"].mean == 0.589
    assert PRINTED["learned"] is paper.MICRO["asgat-cheb"]
