import pytest

from asgat.data import dataset_names
from asgat.nn.registry import make_config
from asgat.tuning.published_settings import CHEBYSHEV, EXACT, published_settings


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
