import random
import typing

import pytest

from asgat.config import ASGATDeepConfig
from asgat.data import DATASETS, dataset_names
from asgat.errors import AsgatError
from asgat.nn.registry import MODELS, make_config, model_spec
from asgat.tuning.space import (
    CHEBYSHEV,
    DEEP_STARTS,
    EXACT,
    SPACES,
    Range,
    SearchSpace,
    first_settings,
    make_search_space,
    published_settings,
    trial_settings,
)

every_model = pytest.mark.parametrize("model", list(MODELS))


def draw(search, choose):
    return {
        key: choose([values.low, values.high]) if isinstance(values, Range) else choose(values)
        for key, values in search.space.items()
    }


@every_model
@pytest.mark.parametrize("dataset", list(DATASETS))
def test_every_draw_is_a_setting_of_the_model(dataset, model):
    search = make_search_space(dataset, model)
    assert {"lr", "weight_decay", "dropout"} <= set(search.space)
    assert set(search.space).isdisjoint(search.fixed)
    assert set(search.space).isdisjoint(model_spec(model).fixed)
    random_draws = [draw(search, random.Random(i).choice) for i in range(20)]
    for values in (draw(search, lambda v: v[0]), draw(search, lambda v: v[-1]), *random_draws, *search.starts):
        settings = trial_settings(search, values)
        config = make_config(model, **settings).to_dict()
        assert settings.items() <= config.items()


@pytest.mark.parametrize("dataset", [*CHEBYSHEV, "csbm"])
def test_the_first_trials_are_known_settings_completed_by_defaults(dataset):
    search = make_search_space(dataset, "asgat-plus")
    assert search.starts
    for start, known in zip(search.starts, first_settings(dataset), strict=True):
        not_searched = "self_loops", "filter_hidden"
        assert {key: value for key, value in known.items() if key not in not_searched}.items() <= start.items()
        assert set(start) == set(search.space), "every setting of a start is given"
        assert (start["root"], start["mix"], start["balanced"]) == (True, False, False)


@pytest.mark.parametrize(("model", "heads"), [("asgat-cheb", 2), ("asgat-plus", 2), ("asgat-exact", 8)])
def test_published_starts_are_those_of_the_operator(model, heads):
    assert make_search_space("texas", model).starts[0]["heads"] == heads


def test_the_space_contains_the_papers_grid():
    table: dict[str, list[float]] = {
        "lr": [1e-4, 5e-2, 0.1],
        "hidden": [32, 512],
        "heads": [2, 18],
        "dropout": [0.1, 0.8],
        "k": [3, 18],
    }
    table |= {"weight_decay": [1e-5, 1e-3], "order": [15]}
    for key, values in table.items():
        between = SPACES["grid"][key]
        assert isinstance(between, Range)
        assert all(between.low <= value <= between.high for value in values), key


def test_a_baseline_starts_from_its_papers_settings_and_has_its_own_space():
    for model in ("gcn", "gat", "appnp", "linkx"):
        search = make_search_space("cora", model)
        (start,) = search.starts
        assert start["lr"] == make_config(model).lr
        assert "layers" in search.space
    assert {"heads", "attention_dropout"} <= set(make_search_space("cora", "gat").space)
    assert {"hidden", "layers"}.isdisjoint(make_search_space("cora", "sgc").space)


def test_settings_a_recipe_has_for_all_models_are_fixed():
    assert make_search_space("csbm", "asgat-cheb").fixed == {"normalize_features": False}
    assert make_search_space("csbm", "gcn").fixed["normalize_features"] is False
    assert make_search_space("citeseer", "asgat-plus").fixed == {"self_loops": "add"}
    assert "normalize_features" in make_search_space("texas", "asgat-cheb").space


def test_given_settings_and_those_they_make_useless_are_not_searched():
    search = make_search_space("texas", "asgat-cheb", {"order": 9, "epochs": 50})
    assert search.fixed == {"order": 9, "epochs": 50}
    assert "order" not in search.space
    assert [start["lr"] for start in search.starts] == [0.06, 0.05]
    assert "order" not in make_search_space("texas", "asgat-exact").space
    assert "order" not in make_search_space("texas", "asgat-plus", {"operator": "exact"}).space
    for model, given in (("asgat-heat", {}), ("asgat-plus", {"filter": "heat"})):
        space = make_search_space("texas", model, given).space
        assert "heat_scale" in space
        assert "filter_activation" not in space
    assert "root" in make_search_space("texas", "asgat-plus").space
    assert "root" not in make_search_space("texas", "asgat-cheb").space


def test_a_start_outside_the_space_is_left_out():
    assert len(make_search_space("texas", "asgat-cheb", {"hidden": 7}).starts) == 2
    assert make_search_space("karate", "asgat-cheb").starts == []


def test_bad_settings_are_refused():
    with pytest.raises(AsgatError, match="asgat-cheb fixes root"):
        make_search_space("texas", "asgat-cheb", {"root": True})
    space = make_search_space("csbm", "mlp").space
    defaults = make_config("mlp").to_dict()
    with pytest.raises(AsgatError, match="Every setting of the search is fixed"):
        make_search_space("csbm", "mlp", {key: defaults[key] for key in space})


def test_drawn_numbers_are_rounded():
    search = SearchSpace({"lr": Range(1e-4, 0.1, True), "dropout": Range(0.0, 0.8), "heads": Range(1, 8)}, {"k": 3}, [])
    drawn = {"lr": 0.0123456, "dropout": 0.1234567, "heads": 3}
    assert trial_settings(search, drawn) == {"k": 3, "lr": 0.0123, "dropout": 0.12, "heads": 3}


@pytest.mark.parametrize(("option", "number"), [("root", "gain"), ("propagate", "alpha"), ("balanced", "balance")])
def test_the_parameter_of_an_option_is_not_searched_if_it_is_off(option, number):
    off, on = (make_search_space("cora", "asgat-plus", {option: value}) for value in (False, True))
    assert number not in off.space
    assert number in on.space
    assert set(off.space) == set(on.space) - {number}


@pytest.mark.parametrize("dataset", CHEBYSHEV)
def test_published_settings_make_a_configuration(dataset):
    assert dataset in dataset_names()
    for operator, model in (("chebyshev", "asgat-cheb"), ("exact", "asgat-exact")):
        settings = published_settings(dataset, operator)
        assert settings.items() <= make_config(model, **settings).to_dict().items()


def test_the_exact_form_has_its_own_settings_where_they_are_published():
    assert set(EXACT) == {"texas", "cornell", "wisconsin"}
    assert (published_settings("texas")["heads"], published_settings("texas", "exact")["heads"]) == (2, 8)
    assert "order" not in published_settings("cornell", "exact")
    assert published_settings("cora", "exact") == published_settings("cora")


def test_the_table_is_not_changed_through_a_result():
    published_settings("cora")["heads"] = 99
    assert published_settings("cora")["heads"] == 1


def test_the_first_settings_contain_the_published_ones_in_their_place():
    first, second = first_settings("texas")
    assert first == published_settings("texas")
    assert (first["elu"], first["bias"], first["filter_activation"]) == ("last", False, "relu"), "the authors' program"
    assert (second["heads"], second["elu"], "bias" in second) == (8, "hidden", False)
    assert first_settings("texas", "exact")[0]["heads"] == 8
    assert first_settings("cora")[1]["k"] == published_settings("cora")["k"]
    assert first_settings("karate") == []


def test_the_deep_model_has_its_own_space_and_starts_on_every_data_set():
    search = make_search_space("minesweeper", "asgat-deep")
    channels = search.space["channels"]
    assert isinstance(channels, tuple)
    assert set(channels) == set(typing.get_args(typing.get_type_hints(ASGATDeepConfig)["channels"]))
    assert {"layers", "adjacency", "self_loops"} <= set(search.space)
    for start, known in zip(search.starts, DEEP_STARTS, strict=True):
        assert known.items() <= start.items()
        assert set(start) == set(search.space)


def test_every_draw_of_the_deep_model_can_be_built():
    for given in ({}, {"hidden": 12}, {"heads": 8}):
        search = make_search_space("cora", "asgat-deep", given)
        for i in range(10):
            config = make_config("asgat-deep", **trial_settings(search, draw(search, random.Random(i).choice)))
            model_spec("asgat-deep").make(config.replace(layers=1, order=2, filter_hidden=(2,)), 3, 2, 5)


@pytest.mark.parametrize(
    ("channels", "unused"), [("filters", {"k"}), ("mean", {"k", "heads", "order"}), ("attention+mean", set())]
)
def test_what_given_channels_do_not_use_is_not_searched(channels, unused):
    whole = make_search_space("cora", "asgat-deep").space
    assert set(whole) - set(make_search_space("cora", "asgat-deep", {"channels": channels}).space) == {
        "channels",
        *unused,
    }


@every_model
def test_a_users_graph_starts_from_its_own_settings(model):
    """The name of a data set changes nothing; settings that are not searched stay, and a draw is a setting."""
    own = {"k": 6, "order": 12} if model.startswith("asgat") else {}
    base = make_config(model, epochs=77, max_restarts=1, **{**own, "normalize_features": False})
    search = make_search_space("texas", model, {"dropout": 0.25}, base)
    assert search == make_search_space("mine", model, {"dropout": 0.25}, base)
    assert (search.fixed["epochs"], search.fixed["normalize_features"], search.fixed["dropout"]) == (77, False, 0.25)
    assert "normalize_features" not in search.space
    values = base.to_dict()
    if model not in ("asgat-deep", "sage"):  # whose k or weight decay is not one that is searched
        assert search.starts == [{key: values[key] for key in search.space}]
    for i in range(5):
        settings = trial_settings(search, draw(search, random.Random(i).choice))
        config = make_config(model, **settings).to_dict()
        unsearched = {key: value for key, value in values.items() if key not in {*search.space, "dropout"}}
        assert unsearched.items() <= config.items()
