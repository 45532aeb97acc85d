"""The field of a leaderboard: which candidates a graph gets."""

import numpy as np
import pytest

from asgat.data import contextual_sbm
from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.leaderboard.field import FEW_FEATURES, PRESETS, SMALL_VALIDATION, count_parameters, make_field, preset_named
from asgat.leaderboard.folds import FEW, PARTS
from asgat.training.runner import model_sizes

ROWS = ["logistic regression", "mlp", "gcn", "sage", "linkx", "asgat-deep, filters", "asgat-deep, adjacency"]
ROWS += ["asgat-plus", "asgat-plus, adjacency", "asgat-deep"]


@pytest.fixture(scope="module")
def few():
    return contextual_sbm(num_nodes=60, num_features=5)


@pytest.fixture(scope="module")
def many():
    return contextual_sbm(num_nodes=60, num_features=FEW_FEATURES + 1)


@pytest.mark.parametrize("name", PRESETS)
def test_every_candidate_has_settings_its_model_takes(few, many, name):
    for data in (few, many):
        found = make_field(data, PRESETS[name], {"k": 5, "order": 6}, one_way=True)
        assert len({(one.name, str(one.config.to_dict()), one.directed) for one in found}) == len(found)
        for one in found:
            assert one.config.epochs == PRESETS[name].epochs
            assert getattr(one.config, "k", 5) == 5, "as advised"


def test_all_kinds_of_models_are_tried_cheapest_first(few):
    found = make_field(few, PRESETS["default"])
    assert list(dict.fromkeys(one.name for one in found)) == ROWS
    assert [one.uses_graph for one in found][:6] == [False] * 6
    assert not any(one.directed for one in found)


def test_directed_candidates_are_tried_where_edges_run_one_way(few):
    found = make_field(few, PRESETS["default"], one_way=True)
    assert {one.name for one in found if one.directed} == {"asgat-deep, directed", "asgat-deep, directed rows"}
    assert {one.name for one in found if not one.directed} == set(ROWS)


def test_few_features_are_dropped_less(few, many):
    def strongest(data):
        return max(one.config.dropout for one in make_field(data, PRESETS["default"]) if one.name == "gcn")

    assert strongest(few) < strongest(many)


def test_a_preset_tries_more_than_the_one_before(few):
    sizes = [len(make_field(few, preset)) for preset in PRESETS.values()]
    assert sizes == sorted(set(sizes))
    minutes = [preset.minutes for preset in PRESETS.values()]
    assert minutes == sorted(set(minutes))
    with pytest.raises(AsgatError, match="Unknown preset 'fast'"):
        preset_named("fast")


@pytest.mark.parametrize("name", ["default", "best"])
def test_the_fewer_nodes_the_more_divisions_of_them(name):
    preset = PRESETS[name]

    def divisions(train, val):
        split = Split(np.arange(train), np.arange(train, train + val), np.arange(0))
        return sum(folds for _, folds in preset.rounds_for(split))

    few, small, large = divisions(FEW - 2, 1), divisions(FEW, 1), divisions(FEW, SMALL_VALIDATION)
    assert few > small > large
    assert few % PARTS == 0, "every node is validated equally often"


def test_parameters_are_those_of_the_model(few):
    logistic = make_field(few, PRESETS["quick"])[0]
    assert count_parameters(logistic.model, logistic.config, **model_sizes(few)) == 5 * 2 + 2
