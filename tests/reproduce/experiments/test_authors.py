import pytest

from asgat.data import dataset_names
from asgat.nn.registry import make_config
from asgat.recipe import load_config
from asgat.tuning import space
from reproduce import paper
from reproduce.experiment import EXPERIMENTS
from reproduce.experiments import authors
from reproduce.experiments.authors import FIRST_SPLIT, program_settings


@pytest.fixture
def published(monkeypatch):
    """Karate as if the authors had published settings for it."""
    monkeypatch.setitem(space.CHEBYSHEV, "karate", {"order": 3, "heads": 2, "hidden": 4, "k": 3, "lr": 0.1})
    monkeypatch.setattr(paper, "PROGRAM", {"asgat-cheb": {"karate": paper.PrintedScore(0.808, 0.07)}})


def test_authors(run_quick, published):
    result, text, files = run_quick("authors")
    (row,) = result["rows"]
    assert (row["dataset"], row["model"], row["program"], row["program_std"]) == ("karate", "asgat-cheb", 0.808, 0.07)
    shown = {key: row["settings"][key] for key in ("bias", "elu", "filter_activation", "heads", "max_restarts")}
    assert shown == {"bias": False, "elu": "last", "filter_activation": "relu", "heads": 2, "max_restarts": 0}
    assert len(row["per_run"]) == len(row["biased"]["per_run"]) == 2
    assert "80.8 ± 7.0" in text
    assert f"{100 * (row['mean'] - 0.808):+.1f}" in text
    assert [file.name for file in files] == ["authors.json"]


def test_one_split_of_every_seed_is_compared_where_the_program_had_one(run_quick, published, monkeypatch):
    whole, _, _ = run_quick("authors")
    monkeypatch.setattr(authors, "FIRST_SPLIT", {"karate"})
    first, text, _ = run_quick("authors")
    assert first["rows"][0]["per_run"] == whole["rows"][0]["per_run"][:1]
    assert first["rows"][0]["mean"] == whole["rows"][0]["per_run"][0]
    assert "first split" in text


def test_the_data_sets_are_those_of_the_program():
    assert list(paper.PROGRAM["asgat-cheb"]) == EXPERIMENTS["authors"]["datasets"]
    assert set(paper.PROGRAM["asgat-exact"]) == set(space.EXACT)
    assert set(EXPERIMENTS["authors"]["datasets"]) <= set(dataset_names())
    assert set(EXPERIMENTS["authors"]["datasets"]) >= FIRST_SPLIT


@pytest.mark.parametrize(("model", "heads"), [("asgat-cheb", 2), ("asgat-exact", 8)])
def test_each_form_has_its_own_published_settings(model, heads):
    settings = program_settings("texas", model)
    assert (settings["heads"], settings["lr"], settings["hidden"]) == (heads, 0.06, 128)


def test_nothing_comes_from_the_recipe():
    assert load_config("cora", "asgat-cheb").normalize_features is False, "or this tests nothing"
    settings = program_settings("cora", "asgat-cheb", bias=True)
    assert settings["normalize_features"] is True
    assert settings["bias"] is True
    assert load_config("cora", "asgat-cheb", settings) == make_config("asgat-cheb", **settings)
