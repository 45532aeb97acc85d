import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgat.cli.options import check_writable, parse_runs, parse_settings
from asgat.config import ASGATConfig, TrainConfig
from asgat.errors import AsgatError


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
def test_parse_runs(text, runs):
    assert parse_runs(text) == runs


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
def test_parse_runs_refuses(text):
    with pytest.raises(AsgatError, match="--splits"):
        parse_runs(text)


@settings(deadline=None, max_examples=60)
@given(st.sets(st.integers(0, 60), min_size=1))
def test_parse_runs_reads_what_was_written(runs):
    assert parse_runs(",".join(map(str, runs))) == sorted(runs)
    assert parse_runs(f"{min(runs)}-{max(runs)}") == list(range(min(runs), max(runs) + 1))


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


def test_check_writable(tmp_path):
    (tmp_path / "file").write_text("")
    check_writable(None)
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new" / "folder" / "result.json")
    for bad in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(AsgatError, match="cannot be written"):
            check_writable(bad)
