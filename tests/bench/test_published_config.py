import pytest

from asgat.bench.published_config import TABLE, published_config
from asgat.errors import AsgatError
from asgat.tuning.known_settings import CHEBYSHEV


@pytest.mark.parametrize("name", CHEBYSHEV)
def test_published_settings_make_a_configuration_on_the_shared_table(name):
    config = published_config(name)
    values = {**CHEBYSHEV[name], **TABLE}
    assert {key: getattr(config, key) for key in values} == values
    assert config.form == "table"
    assert config.k is not None
    assert config.candidates >= config.k, "a table must hold what is kept of it"


def test_changes_come_last():
    config = published_config("cora", epochs=3, candidates=40, k=2)
    assert (config.epochs, config.candidates, config.k, config.hidden) == (3, 40, 2, 32)


def test_unknown_data_sets_are_named_with_the_nearest():
    with pytest.raises(AsgatError, match=r"No published settings for 'kora'. Did you mean 'cora'"):
        published_config("kora")
