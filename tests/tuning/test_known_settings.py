import pytest

from asgat.data import dataset_names
from asgat.nn.registry import make_config
from asgat.tuning.known_settings import CHEBYSHEV, EXACT, first_settings, published_settings


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
    assert first == {**published_settings("texas"), "elu": "last"}
    assert (second["heads"], second["elu"]) == (8, "hidden")
    assert first_settings("texas", "exact")[0]["heads"] == 8
    assert first_settings("cora")[1]["k"] == published_settings("cora")["k"]
    assert first_settings("karate") == []
