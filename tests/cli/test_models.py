import dataclasses
import json

import pytest

from asgat.cli.models import describe_settings
from asgat.cli.output import console
from asgat.config import GROUPS, ASGATConfig, TrainConfig
from asgat.data import DATASETS, dataset_names
from asgat.nn.registry import MODELS, model_spec


def test_an_unknown_model_to_describe(refused):
    assert "Did you mean 'gcn'?" in refused("models", "gcnn")


def test_models_are_listed(asgat, cells, place):
    code, output, _ = asgat("models")
    assert code == 0
    listed = {row[0]: row[1:] for row in cells(output)}
    for name, spec in MODELS.items():
        assert listed[name] == [spec.summary, spec.reference, spec.cost]
    assert list(place.iterdir()) == []
    assert asgat("models", "--json", "models.json")[0] == 0
    rows = json.loads((place / "models.json").read_text())["rows"]
    assert [row["model"] for row in rows] == list(MODELS)
    sizes = {row["model"]: row["parameters"] for row in rows}
    assert sizes["sgc"] == 5 * (1703 + 1)
    assert sizes["gcn"] == 16 * (1703 + 1) + 5 * (16 + 1)
    assert sizes["sage"] == 128 * (2 * 1703 + 1) + 5 * (2 * 128 + 1)
    assert rows[0]["parameters_for"] == {"features": 1703, "classes": 5, "nodes": 183}


def test_one_model_is_described(asgat, place):
    code, output, _ = asgat("models", "gat", "--json", "gat.json")
    assert code == 0
    for part in ("attention over neighbours; Veličković et al., ICLR 2018", "O(m·(N·F·H + E·H))"):
        assert part in output
    written = json.loads((place / "gat.json").read_text())
    assert f"{written['parameters']:,} parameters for 1,703 features and 5 classes" in output
    assert written["parameters"] == 64 * (1703 + 2 + 1) + 5 * 64 + 3 * 5
    rows = {row["setting"]: row for row in written["rows"]}
    assert (rows["heads"]["default"], rows["lr"]["default"], rows["lr"]["fixed"]) == (8, 0.005, False)
    assert asgat("models", "asgat-cheb", "--json", "cheb.json")[0] == 0
    rows = {row["setting"]: row for row in json.loads((place / "cheb.json").read_text())["rows"]}
    assert (rows["operator"]["fixed"], rows["operator"]["default"]) == (True, "chebyshev")


@pytest.mark.parametrize("name", [[], ["linkx"]])
def test_listings_fit_80_columns(asgat, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "80")
    _, output, _ = asgat("models", *name)
    assert max(map(len, output.splitlines())) <= 80
    assert "…" not in output


@pytest.mark.parametrize(("name", "config"), [("asgat-cheb", ASGATConfig), ("mlp", TrainConfig)])
def test_the_settings_of_a_model_are_listed(asgat, cells, name, config):
    code, output, _ = asgat("models", name)
    assert code == 0
    shown = {row[0]: row[1] for row in cells(output) if len(row) == 3 and row[0] != "setting"}
    assert set(shown) == set(config.keys())
    assert shown["patience"] == "100"
    if config is ASGATConfig:
        assert shown["filter_hidden"] == "[64, 64]"
        assert shown["operator"] == "chebyshev (fixed)"
        assert shown["order"] == "15"


def test_settings_are_printed_by_group(asgat, cells, place):
    code, output, _ = asgat("models", "asgat-cheb", "--json", "cheb.json")
    assert code == 0
    first = [row[0] for row in cells(output)]
    places = [first.index(name) for name in ("model", "k", "training", "lr", "table", "cap", "numerics", "order")]
    assert places == sorted(places)
    rows = {row["setting"]: row["group"] for row in json.loads((place / "cheb.json").read_text())["rows"]}
    assert rows == {field.name: field.metadata["group"] for field in dataclasses.fields(ASGATConfig)}


@pytest.mark.parametrize("name", MODELS)
def test_every_setting_is_of_a_known_group(name):
    rows = describe_settings(name)
    assert [row["setting"] for row in rows] == model_spec(name).config.keys()
    assert {row["group"] for row in rows} <= set(GROUPS)


def test_datasets_without_files_shows_the_published_figures(asgat, cells, place, monkeypatch):
    def no_network(*_):
        raise AssertionError("a listing fetches nothing")

    monkeypatch.setattr("asgat.data.download._download", no_network)
    code, output, _ = asgat("datasets", "--json", "out/numbers.json")
    assert code == 0
    written = json.loads((place / "out/numbers.json").read_text())
    assert list(written) == ["rows"]
    rows = {row["name"]: row for row in written["rows"]}
    assert list(rows) == dataset_names()
    for name, info in DATASETS.items():
        row, figures = rows[name], info.statistics
        assert (row["nodes"], row["edges"], row["features"]) == (
            figures.nodes,
            figures.entries,
            figures.features,
        )
        assert (row["classes"], row["beta"]) == (figures.classes, pytest.approx(figures.beta, abs=5e-4))
        assert row["protocols"][0] == info.protocols[0]
        assert row["measured"] == (name in ("csbm", "digits", "karate"))
        assert f"{figures.nodes:,}" in output
    marked = {row[0].removesuffix(" ○") for row in cells(output) if row[0].endswith(" ○")}
    assert marked == {name for name, row in rows.items() if not row["measured"]}
    assert "copy of Texas" in output


@pytest.mark.parametrize("width", [50, 80])
def test_names_and_figures_are_never_cut(width, asgat, monkeypatch):
    monkeypatch.setattr(console, "_width", width)
    _, output, _ = asgat("datasets")
    table = output.partition("entries: ")[0]
    assert [name for name in dataset_names() if f" {name} " not in table] == []
    assert " 8,466,545 " in table
    assert max(map(len, table.splitlines())) <= 80
