import json

import pytest

from asgat.errors import AsgatError
from reproduce.bench import ranks


def test_a_block_model_is_converted_and_trained_on_by_two_ranks(reproduce, place, monkeypatch):
    monkeypatch.setitem(ranks.OWN, "asgat-cheb", {"order": 3, "candidates": 12, "heads": 1, "hidden": 4})
    code, output, errors = reproduce("bench", "ranks", "--nodes", 400, "--ranks", 2, "--json", "r.json")
    assert code == 0, errors
    assert "asgat-cheb on 2 ranks" in output
    (row,) = json.loads((place / "r.json").read_bytes())["rows"]
    assert (row["nodes"], row["ranks"]) == (400, 2)
    assert all(row[key] > 0 for key in ("build_s", "epoch_s", "peak_memory_mb", "micro_f1"))


def test_a_command_that_fails_is_named():
    with pytest.raises(AsgatError, match=r"-m asgat convert.* ended with exit code 2: .*is not an edge list"):
        ranks._run(["-m", "asgat", "convert", "nosuch", "out", "--features", "x.npy", "--labels", "y.npy"])
