import pytest

from asgat.data import DATASETS, Statistics, load_dataset, statistics_of
from asgat.errors import AsgatError


def test_protocols():
    info = DATASETS["cora"]
    assert info.default_protocol == "full"
    assert info.check_protocol(None) == "full"
    assert info.check_protocol("public") == "public"
    with pytest.raises(AsgatError, match="cora has no protocol 'ful'; it has full, public, geom-gcn"):
        info.check_protocol("ful")


def test_files():
    assert len(DATASETS["cora"].files()) == 7
    assert len(DATASETS["cora"].files("geom-gcn")) == 17
    assert DATASETS["chameleon"].files() == ("heterophilous-graphs/data/chameleon_directed.npz",)
    assert DATASETS["karate"].files() == ()


def test_missing_files(tmp_path):
    assert DATASETS["texas"].missing_files(data_dir=tmp_path) == list(DATASETS["texas"].files())
    assert DATASETS["karate"].missing_files(data_dir=tmp_path) == []


def test_option_names():
    assert DATASETS["cora"].option_names() == []
    assert DATASETS["digits"].option_names() == ["neighbours"]
    assert "homophily" in DATASETS["csbm"].option_names()


def test_statistics_of():
    assert statistics_of(load_dataset("karate")) == Statistics(34, 156, 34, 2, 0.888)
