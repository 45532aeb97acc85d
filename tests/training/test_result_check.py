"""Damaged results are refused with a sentence that names the entry."""

import copy
import json
from pathlib import Path

import pytest

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.nn.registry import make_config
from asgat.training.result_check import check_result
from asgat.training.run_directory import RunDirectory
from asgat.training.runner import run

PATH = Path("runs/karate/result.json")
REMOVE = object()


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The result of two short runs, as it is read from the file."""
    out = tmp_path_factory.mktemp("run")
    config = make_config("asgat-cheb", epochs=2, hidden=4, heads=2, k=3, order=4, max_restarts=0)
    run(load_dataset("karate"), "asgat-cheb", config, runs=[0, 1], out=out)
    return RunDirectory(out).read_result()


def damaged(result, place, value):
    """The result with one entry replaced or removed."""
    result = copy.deepcopy(result)
    *outer, last = place
    target = result
    for key in outer:
        target = target[key]
    if value is REMOVE:
        del target[last]
    else:
        target[last] = value
    return result


def test_a_sound_result_is_returned(result):
    assert check_result(result, PATH) is result


def test_results_without_attention_or_with_null_entries_are_sound(result):
    plain = copy.deepcopy(result)
    for row in plain["rows"]:
        for key in ("certified_share", "mean_bound", "max_bound", "fallback"):
            row.pop(key)
    plain |= {"certified_share": None, "mean_bound": None, "max_bound": None, "ms_per_epoch": None}
    check_result(plain, PATH)
    own = damaged({**result, "protocol": "own"}, ("rows", 0, "micro_f1"), None)
    check_result(own, PATH)
    check_result({"rows": []}, PATH)


@pytest.mark.parametrize(
    ("place", "value", "entry"),
    [
        (("rows",), REMOVE, "rows must be a list of objects, but is missing"),
        (("rows",), "text", "rows must be a list of objects, but is 'text'"),
        (("rows",), {"run": 0}, "rows must be a list of objects"),
        (("rows",), [1, 2], "rows must be a list of objects"),
        (("rows", 0, "run"), "0", r"rows\[0\].run must be a whole number"),
        (("rows", 1, "run"), 0, "rows repeat a run"),
        (("rows", 1, "run"), True, r"rows\[1\].run must be a whole number"),
        (("rows", 0, "best_epoch"), REMOVE, r"rows\[0\].best_epoch .* is missing"),
        (("rows", 0, "best_epoch"), [3], r"rows\[0\].best_epoch"),
        (("rows", 0, "epochs"), -1, r"rows\[0\].epochs"),
        (("rows", 0, "epochs"), 10**400, r"rows\[0\].epochs"),
        (("rows", 0, "val_loss"), "low", r"rows\[0\].val_loss"),
        (("rows", 0, "val_score"), None, r"rows\[0\].val_score must be a number, but is None"),
        (("rows", 0, "micro_f1"), {}, r"rows\[0\].micro_f1"),
        (("rows", 0, "micro_f1"), None, r"rows\[0\].micro_f1"),
        (("rows", 0, "max_bound"), REMOVE, r"rows\[0\].max_bound .* is missing"),
        (("rows", 0, "seconds"), float("nan"), r"rows\[0\].seconds"),
        (("rows", 0, "fallback"), {"heads": 1}, r"rows\[0\].fallback"),
        (("micro_f1",), 0.5, "micro_f1 must be an object with the numbers mean and std"),
        (("micro_f1", "std"), REMOVE, "micro_f1 must be an object"),
        (("macro_f1", "mean"), "high", "macro_f1 must be an object"),
        (("config",), [], "config must be an object"),
        (("versions",), "1.0", "versions must be an object"),
        (("runs",), 2, "runs must be a list of whole numbers, but is 2"),
        (("restarts",), "none", "restarts must be a whole number"),
        (("finished",), "yes", "finished must be true or false"),
        (("fallback",), {"heads": "many"}, "fallback must be null or an object"),
        (("certified_share",), "all", "certified_share must be a number or null"),
        (("max_bound",), [], "max_bound must be a number or null"),
        (("ms_per_epoch",), {}, "ms_per_epoch must be a number or null"),
    ],
)
def test_a_damaged_entry_is_named(result, place, value, entry):
    with pytest.raises(AsgatError, match=rf"result\.json is damaged: {entry}"):
        check_result(damaged(result, place, value), PATH)


@pytest.mark.parametrize("content", ["[]", "null", "3", '"text"'])
def test_a_result_must_be_an_object(content):
    with pytest.raises(AsgatError, match="must hold an object"):
        check_result(json.loads(content), PATH)
