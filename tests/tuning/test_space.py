import random

import pytest

from asgat.data import DATASETS
from asgat.errors import AsgatError
from asgat.nn.registry import MODELS, make_config, model_spec
from asgat.tuning.space import BATCHED, GRID, STARTS, Between, Search, make_search, settings_of

every_model = pytest.mark.parametrize("model", list(MODELS))


def draw(search, choose):
    return {
        key: choose([values.low, values.high]) if isinstance(values, Between) else choose(values)
        for key, values in search.space.items()
    }


@every_model
@pytest.mark.parametrize("dataset", list(DATASETS))
def test_whatever_is_drawn_are_settings_of_the_model(dataset, model):
    search = make_search(dataset, model)
    assert set(BATCHED) <= set(search.space)
    assert set(search.space).isdisjoint(search.held)
    assert set(search.space).isdisjoint(model_spec(model).fixed)
    random_draws = [draw(search, random.Random(i).choice) for i in range(20)]
    for values in (draw(search, lambda v: v[0]), draw(search, lambda v: v[-1]), *random_draws, *search.starts):
        settings = settings_of(search, values)
        config = make_config(model, **settings).to_dict()
        assert settings.items() <= config.items()


@pytest.mark.parametrize("dataset", list(STARTS))
def test_the_first_trials_are_the_published_settings_with_the_model_s_own_beside(dataset):
    search = make_search(dataset, "asgat-plus")
    assert len(search.starts) == len(STARTS[dataset])
    for start, published in zip(search.starts, STARTS[dataset], strict=True):
        assert published.items() <= start.items()
        assert set(start) == set(search.space), "nothing of a published start is drawn"
        assert (start["root"], start["mix"], start["filter_activation"]) == (True, False, "none")


def test_the_paper_s_grid_is_inside():
    table: dict[str, list[float]] = {
        "lr": [1e-4, 5e-2, 0.1],
        "hidden": [32, 512],
        "heads": [2, 18],
        "dropout": [0.1, 0.8],
        "k": [3, 18],
    }
    table |= {"weight_decay": [1e-5, 1e-3], "order": [15]}
    for key, values in table.items():
        between = GRID[key]
        assert isinstance(between, Between)
        assert all(between.low <= value <= between.high for value in values), key


def test_a_baseline_starts_from_the_settings_of_its_paper_and_has_its_own_space():
    for model in ("gcn", "gat", "appnp", "linkx"):
        search = make_search("cora", model)
        (start,) = search.starts
        assert start["lr"] == make_config(model).lr
        assert "layers" in search.space
    assert {"heads", "attention_dropout"} <= set(make_search("cora", "gat").space)
    assert {"hidden", "layers"}.isdisjoint(make_search("cora", "sgc").space)


def test_what_a_data_set_s_recipe_says_of_all_models_is_held():
    assert make_search("csbm", "asgat-cheb").held == {"normalize_features": False}
    assert make_search("csbm", "gcn").held["normalize_features"] is False
    assert make_search("citeseer", "asgat-plus").held == {"self_loops": "add"}
    assert "normalize_features" in make_search("texas", "asgat-cheb").space


def test_held_settings_are_not_searched_and_take_others_with_them():
    held = make_search("texas", "asgat-cheb", {"order": 9, "epochs": 50})
    assert held.held == {"order": 9, "epochs": 50}
    assert "order" not in held.space
    assert [start["lr"] for start in held.starts] == [0.06, 0.05]
    assert "order" not in make_search("texas", "asgat-exact").space
    assert "order" not in make_search("texas", "asgat-plus", {"operator": "exact"}).space
    for model, given in (("asgat-heat", {}), ("asgat-plus", {"filter": "heat"})):
        space = make_search("texas", model, given).space
        assert "heat_scale" in space
        assert "filter_activation" not in space
    assert "root" in make_search("texas", "asgat-plus").space
    assert "root" not in make_search("texas", "asgat-cheb").space


def test_a_start_outside_the_space_is_left_out():
    assert len(make_search("texas", "asgat-cheb", {"hidden": 7}).starts) == 2
    assert make_search("karate", "asgat-cheb").starts == []


def test_bad_settings_are_refused():
    with pytest.raises(AsgatError, match="asgat-cheb fixes root"):
        make_search("texas", "asgat-cheb", {"root": True})
    space = make_search("csbm", "mlp").space
    defaults = make_config("mlp").to_dict()
    with pytest.raises(AsgatError, match="Every setting of the search is held"):
        make_search("csbm", "mlp", {key: defaults[key] for key in space})


def test_numbers_are_rounded_to_what_one_would_write():
    search = Search(
        {"lr": Between(1e-4, 0.1, True), "dropout": Between(0.0, 0.8), "heads": Between(1, 8)}, {"k": 3}, []
    )
    drawn = {"lr": 0.0123456, "dropout": 0.1234567, "heads": 3}
    assert settings_of(search, drawn) == {"k": 3, "lr": 0.0123, "dropout": 0.12, "heads": 3}


@pytest.mark.parametrize(("option", "number"), [("root", "gain"), ("propagate", "alpha"), ("balanced", "balance")])
def test_a_number_is_not_searched_where_its_option_is_held_off(option, number):
    off, on = (make_search("cora", "asgat-plus", {option: held}) for held in (False, True))
    assert number not in off.space
    assert number in on.space
    assert set(off.space) == set(on.space) - {number}
