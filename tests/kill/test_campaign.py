"""A few kills of every campaign; the long one is `python -m tests.kill.campaign`."""

import pytest
from tests.kill.campaign import PROBLEMS, attack, change_data, fill_up, finish, start, timeless, unreadable, wait_for


def test_other_data_after_a_kill_are_refused(tmp_path):
    problem = PROBLEMS["fit"]
    problem.setup(tmp_path)
    process = start(problem.command, tmp_path)
    wait_for(tmp_path / "run/unfinished.safetensors", process)
    process.kill()
    process.join()
    assert change_data(problem, tmp_path) == []


def test_a_full_disk_at_the_last_write_leaves_the_finished_model_or_the_unfinished_run(tmp_path):
    problem = PROBLEMS["fit"]
    problem.setup(tmp_path)
    assert fill_up(problem, tmp_path) == []
    assert (tmp_path / "run/unfinished.safetensors").exists()
    finish(start(problem.command, tmp_path))
    whole = problem.numbers(tmp_path)
    assert fill_up(problem, tmp_path) == []
    assert problem.numbers(tmp_path) == whole


@pytest.mark.parametrize(("name", "kills"), [("train", 3), ("tune", 2), ("convert", 1)])
def test_killed_commands_end_with_the_numbers_of_those_left_alone(name, kills, tmp_path):
    tally = attack(name, kills, 1, tmp_path, warm=False)
    assert tally.faults == []
    assert tally.kills == kills


def test_half_a_file_would_be_found(tmp_path):
    for name in ("a.json", "b.jsonl", "c.toml", "d.safetensors", "e.npy", "f.png"):
        (tmp_path / name).write_bytes(b'{"half": ')
    (tmp_path / ".hidden.json").write_bytes(b"{")
    assert [fault[:2] for fault in unreadable(tmp_path)] == ["a.", "b.", "c.", "d.", "e.", "f."]


def test_only_times_are_left_out():
    one = {"micro_f1": 0.5, "seconds": 1.0, "rows": [{"epochs": 3, "ms_per_epoch": 2.0}]}
    assert timeless(one) == {"micro_f1": 0.5, "rows": [{"epochs": 3}]}
    assert {"train", "tune", "table"} <= set(PROBLEMS)
