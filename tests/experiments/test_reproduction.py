import pytest
import torch

from asgat.errors import AsgatError
from asgat.experiments.reproduction import SEEDS, NoResultError, Reproduction


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "no-data"))
    return tmp_path


def test_seeds_are_fixed_and_a_quick_study_has_one(nowhere):
    assert Reproduction(nowhere).seeds == SEEDS == (0, 1, 2)
    assert Reproduction(nowhere, quick=True).seeds == (0,)
    assert Reproduction(nowhere, seeds=(4, 7), quick=True).seeds == (4,)
    assert Reproduction(nowhere).device == torch.device("cpu")


def test_quick_runs_lie_apart(nowhere):
    assert Reproduction(nowhere).runs_folder != Reproduction(nowhere, quick=True).runs_folder


def test_data_sets_are_the_experiments_own_the_quick_ones_or_those_asked_for(nowhere):
    assert Reproduction(nowhere).pick(["karate", "csbm"], ["csbm"]) == ["karate", "csbm"]
    assert Reproduction(nowhere, quick=True).pick(["karate", "csbm"], ["csbm"]) == ["csbm"]
    for quick in (True, False):
        assert Reproduction(nowhere, quick=quick, datasets=("digits",)).pick(["karate"], ["csbm"]) == ["digits"]


def test_data_sets_without_files_are_left_out_and_told(nowhere):
    study = Reproduction(nowhere)
    assert study.pick(["karate", "cora"], []) == ["karate"]
    assert list(study.skipped) == ["cora"]
    assert str(nowhere / "no-data") in study.skipped["cora"]


def test_without_any_files_there_is_an_error_that_says_where_to_put_them(nowhere):
    with pytest.raises(NoResultError, match=r"cora, texas are not in .*no-data; set ASGAT_DATA_DIR or --data-dir"):
        Reproduction(nowhere).pick(["cora", "texas"], [])
    assert Reproduction(nowhere).pick(["cora"], [], needed=False) == []
    assert issubclass(NoResultError, AsgatError)


def test_an_unknown_data_set_is_told(nowhere):
    with pytest.raises(AsgatError, match="koraa"):
        Reproduction(nowhere, datasets=("koraa",)).pick([], [])


def test_models(nowhere):
    assert Reproduction(nowhere).pick_models(["gcn"]) == ["gcn"]
    assert Reproduction(nowhere, models=("mlp", "sgc")).pick_models(["gcn"]) == ["mlp", "sgc"]


def test_runs_are_splits_or_ten_seeds(nowhere):
    study, quick = Reproduction(nowhere), Reproduction(nowhere, quick=True)
    karate = study.load("karate")
    assert study.load("karate") is karate
    assert study.runs(karate) == list(range(10))
    assert quick.runs(karate) == [0, 1]
