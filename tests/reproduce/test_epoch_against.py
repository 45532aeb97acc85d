"""Two checkouts that are a few lines each, whose times are known, and this one next to itself."""

import json

import pytest

from reproduce.epoch_against import HERE, checkout, main, milliseconds_per_epoch

# Its n-th epoch takes `ms`, and loading takes 1000 ms more. It gets slower with every call by `more`.
STUB = """
import json, sys
from pathlib import Path
words = sys.argv
calls = Path(__file__).with_name("calls")
count = len(calls.read_text().splitlines()) if calls.exists() else 0
calls.write_text("call\\n" * (count + 1))
epochs = int(([word[7:] for word in words if word.startswith("epochs=")] or [1])[0])
if words[1:3] != ["train", "texas"]:
    sys.exit(f"error: {{words[2]}} is unknown.")
result = {{"ms_per_epoch": {ms} + {more} * count + 1000 / epochs, "epochs": {counted}}}
Path(words[words.index("--json") + 1]).write_text(json.dumps(result))
"""


@pytest.fixture
def stub(tmp_path):
    """A function that makes a checkout."""

    def make(name, ms, more=0.0, counted="epochs"):
        package = tmp_path / name / "src" / "asgat"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(STUB.format(ms=ms, more=more, counted=counted))
        return tmp_path / name

    return make


def test_the_time_of_loading_is_no_part_of_an_epoch(stub):
    value, counted = milliseconds_per_epoch(checkout(stub("one", 2.5)), ["texas"], 50)
    assert value == pytest.approx(2.5)
    assert counted == [10, 50]


@pytest.fixture
def against(stub, monkeypatch, tmp_path):
    """A function that measures one made checkout next to another and returns the numbers written."""

    def call(this, other, *options):
        monkeypatch.setattr("reproduce.epoch_against.HERE", stub("this", **this))
        main([str(stub("other", **other)), "--json", str(tmp_path / "numbers.json"), *options])
        return json.loads((tmp_path / "numbers.json").read_text())

    return call


def test_the_table_has_the_smallest_of_the_repeated_times_and_their_ratio(against, capsys):
    numbers = against({"ms": 3.0, "more": 1.0}, {"ms": 2.0}, "--datasets", "texas", "--repeats", "2")
    (row,) = numbers["rows"]
    assert row["other"] == pytest.approx(2.0)
    assert 3.0 < row["this"] < 5.0  # of the first two calls, not of the next two
    assert row["ratio"] == pytest.approx(row["this"] / row["other"])
    assert f"{row['ratio']:.2f}" in capsys.readouterr().out


def test_different_epochs_are_not_compared(against):
    with pytest.raises(SystemExit, match=r"counted different epochs, \[\[20, 100\], \[100, 500\]\]"):
        against({"ms": 1.0}, {"ms": 1.0, "counted": "5 * epochs"}, "--repeats", "1")


def test_the_time_of_a_command_is_that_of_the_process(against):
    numbers = against(
        {"ms": 1.0}, {"ms": 1.0, "counted": "__import__('time').sleep(0.5)"}, "--command-time", "--repeats", "1"
    )
    (row,) = numbers["rows"]
    assert row["other"] > 0.5
    assert numbers["unit"] == "seconds of ten splits"


def test_what_is_no_checkout_and_what_fails_are_named(stub, tmp_path):
    with pytest.raises(SystemExit, match="has no folder src/asgat"):
        checkout(tmp_path)
    with pytest.raises(SystemExit, match=r"ended with 1: error: cora is unknown\."):
        checkout(stub("one", 1.0)).train(["cora"])


def test_this_checkout_measures_itself():
    value, counted = milliseconds_per_epoch(checkout(HERE), ["karate", "--model", "mlp", "--threads", "1"], 20)
    assert value > 0
    assert counted[0] < counted[1]
