import pytest
import torch

from asgat.errors import AsgatError
from asgat.experiments.reproduction import SEEDS, NoResultError, Reproduction, cached_json


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "no-data"))
    return tmp_path


def test_seeds_are_fixed_and_a_quick_reproduction_has_one(nowhere):
    assert Reproduction(nowhere).seeds == SEEDS == (0, 1, 2)
    assert Reproduction(nowhere, quick=True).seeds == (0,)
    assert Reproduction(nowhere, seeds=(4, 7), quick=True).seeds == (4,)
    assert Reproduction(nowhere).device == torch.device("cpu")


def test_quick_runs_have_their_own_folder(nowhere):
    assert Reproduction(nowhere).runs_folder != Reproduction(nowhere, quick=True).runs_folder


def test_data_sets_are_the_experiments_own_the_quick_ones_or_those_asked_for(nowhere):
    assert Reproduction(nowhere).select_datasets(["karate", "csbm"], ["csbm"]) == ["karate", "csbm"]
    assert Reproduction(nowhere, quick=True).select_datasets(["karate", "csbm"], ["csbm"]) == ["csbm"]
    for quick in (True, False):
        given = Reproduction(nowhere, quick=quick, datasets=("digits",))
        assert given.select_datasets(["karate"], ["csbm"]) == ["digits"]


def test_data_sets_without_files_are_skipped(nowhere):
    reproduction = Reproduction(nowhere)
    assert reproduction.select_datasets(["karate", "cora"], []) == ["karate"]
    assert list(reproduction.skipped) == ["cora"]
    assert str(nowhere / "no-data") in reproduction.skipped["cora"]


def test_without_any_files_the_error_names_the_folder(nowhere):
    with pytest.raises(NoResultError, match=r"cora, texas are not in .*no-data; set ASGAT_DATA_DIR or --data-dir"):
        Reproduction(nowhere).select_datasets(["cora", "texas"], [])
    assert Reproduction(nowhere).select_datasets(["cora"], [], needed=False) == []
    assert issubclass(NoResultError, AsgatError)


def test_an_unknown_data_set_is_an_error(nowhere):
    with pytest.raises(AsgatError, match="koraa"):
        Reproduction(nowhere, datasets=("koraa",)).select_datasets([], [])


def test_runs_are_splits_or_ten_seeds(nowhere):
    reproduction, quick = Reproduction(nowhere), Reproduction(nowhere, quick=True)
    karate = reproduction.load("karate")
    assert reproduction.load("karate") is karate
    assert reproduction.runs(karate) == list(range(10))
    assert quick.runs(karate) == [0, 1]


def test_earlier_files_are_renewed_once(nowhere):
    path, values = nowhere / "value.json", iter(range(9))
    for fresh, expected in ((False, [0, 0]), (True, [1, 1]), (True, [2, 2])):
        reproduction = Reproduction(nowhere, fresh=fresh)
        found = [cached_json(path, lambda: next(values), reproduction.must_renew(path)) for _ in range(2)]
        assert found == expected


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", "{}", "[" * 100_000, '{"sha256": 1, "value": 2}', "\0", '{"value": {"a": [1.5, null]}}'],
)
def test_a_damaged_file_is_made_again(content, nowhere):
    path, value = nowhere / "value.json", {"a": [1.5, float("nan")], "b": "é"}
    as_kept = {"a": [1.5, None], "b": "é"}
    assert cached_json(path, lambda: value) == cached_json(path, lambda: pytest.fail("made again")) == as_kept
    path.write_text(content)
    assert cached_json(path, lambda: [3]) == cached_json(path, lambda: pytest.fail("made again")) == [3]


def test_a_changed_value_is_noticed(nowhere):
    path = nowhere / "value.json"
    cached_json(path, lambda: {"score": 0.81})
    path.write_text(path.read_text().replace("0.81", "0.91"))
    assert cached_json(path, lambda: {"score": 0.81}) == {"score": 0.81}
    path.unlink()
    path.mkdir()
    with pytest.raises(AsgatError, match=r"value\.json cannot be written: Is a directory"):
        cached_json(path, lambda: 1)


def test_a_directed_graph_is_refused(real_data, tmp_path):
    with pytest.raises(AsgatError, match="chameleon-filtered-directed is directed, and the paper's graphs are not"):
        Reproduction(tmp_path, data_dir=real_data).load("chameleon-filtered-directed")
