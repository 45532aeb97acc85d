import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgat.cli.options import (
    check_device,
    complete_dataset,
    complete_model,
    parse_names,
    parse_numbers,
    parse_runs,
    parse_settings,
)
from asgat.config import ASGATConfig, TrainConfig
from asgat.errors import AsgatError
from asgat.threads import given_threads


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("0", [0]),
        ("0-9", list(range(10))),
        ("3-3", [3]),
        ("5,0,3", [0, 3, 5]),
        ("0-2, 1-3 ,7", [0, 1, 2, 3, 7]),
        ("007", [7]),
    ],
)
def test_parse_numbers(text, runs):
    assert parse_numbers("--seeds", text) == runs
    assert parse_runs(text)[0] == runs


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "a",
        "1,",
        "-1",
        "1-",
        "--",
        "1--2",
        "1-2-3",
        "1.5",
        "1;2",
        "٣",
        "1_0",
        "0,5-2",
        "0-99999",
        "9" * 30,
    ],
)
def test_parse_numbers_refuses(text):
    with pytest.raises(AsgatError, match=r"^--seeds .*[.]$"):
        parse_numbers("--seeds", text)


@settings(deadline=None, max_examples=60)
@given(st.sets(st.integers(0, 60), min_size=1))
def test_parse_numbers_reads_what_was_written(runs):
    assert parse_numbers("--seeds", ",".join(map(str, runs))) == sorted(runs)
    assert parse_numbers("--seeds", f"{min(runs)}-{max(runs)}") == list(range(min(runs), max(runs) + 1))


@pytest.mark.parametrize(("text", "suffix"), [("0-9", ""), ("0-4, 5-9", ""), ("0", "-runs0"), ("0, 3", "-runs0,3")])
def test_runs_other_than_the_default_are_part_of_a_folders_name(text, suffix):
    assert parse_runs(text)[1] == suffix


def test_parse_names():
    assert parse_names("--models", "a, b,,c ,a") == ["a", "b", "c"]
    with pytest.raises(AsgatError, match="--models is empty; give names separated by commas"):
        parse_names("--models", " , ")


def test_parse_settings_types_values_and_the_last_wins():
    pairs = ["k=3", "k=none", "lr = 1", "root=no", "filter_hidden=[1, 2]", "elu=none"]
    values = parse_settings(pairs, ASGATConfig)
    assert values == {"k": None, "lr": 1.0, "root": False, "filter_hidden": (1, 2), "elu": "none"}
    assert type(values["lr"]) is float
    assert parse_settings([], TrainConfig) == {}


@pytest.mark.parametrize("pair", ["k", "", "=3", "nosuch=1", "k=", "k=2.5", "lr=fast", "root=2", "filter_hidden=a"])
def test_parse_settings_refuses(pair):
    with pytest.raises(AsgatError):
        parse_settings([pair], ASGATConfig)


@pytest.mark.parametrize("name", ["gpu", "meta", "", "cuda:x"])
def test_unknown_devices(name):
    with pytest.raises(AsgatError, match=f"Unknown device {name!r}; use auto, cpu or cuda"):
        check_device(name)


@pytest.mark.parametrize(
    ("count", "name", "words"),
    [
        (0, "cuda", "no CUDA device is available"),
        (0, "cuda:0", "no CUDA device is available"),
        (1, "cuda:1", "only cuda:0 is available"),
        (2, "cuda:7", "only 2 devices are available"),
    ],
)
def test_missing_devices(monkeypatch, count, name, words):
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    with pytest.raises(AsgatError, match=f"{name} was requested, but {words}; use --device cpu"):
        check_device(name)
    assert check_device("cpu").type == "cpu"


@pytest.mark.parametrize("available", [False, True])
def test_auto_is_cuda_where_there_is_one(monkeypatch, available):
    monkeypatch.setattr("torch.cuda.is_available", lambda: available)
    monkeypatch.setattr("torch.cuda.device_count", lambda: int(available))
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: "some GPU")
    assert check_device("auto").type == ("cuda" if available else "cpu")


def test_names_are_completed():
    assert complete_dataset("cora") == ["cora"]
    assert complete_model("asgat-d") == ["asgat-deep"]
    assert "gcn" in complete_model("")
    assert complete_dataset("nosuch") == []


@pytest.mark.parametrize("command", ["train", "compare", "fit", "tune"])
def test_the_commands_that_train_take_a_number_of_threads(command, asgat):
    code, _, error = asgat(*command.split(), "--threads", "0")
    assert code == 2
    assert "--threads" in error
    assert given_threads() is None


def test_the_number_of_threads_is_that_of_one_command(asgat, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    used = []

    def stop(*_, **__):
        used.append(given_threads())
        raise ZeroDivisionError

    monkeypatch.setattr("asgat.training.runner.run", stop)
    for options, expected in ((["--threads", "3"], 3), ([], None)):
        with pytest.raises(ZeroDivisionError):
            asgat("train", "karate", "--splits", "0", *options)
        assert used[-1] == expected
