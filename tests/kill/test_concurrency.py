"""Concurrent processes: one writes, the others are refused or wait, and all readers read the same."""

import json
import threading

from tests.kill.campaign import PROBLEMS, finish, start, wait_for, write_tables

from asgat.files.atomic import write_atomic

LONG = PROBLEMS["train"].command.replace("epochs=25", "epochs=400").replace("patience=99", "patience=400")


def test_the_second_of_two_trainings_into_one_folder_is_refused(tmp_path):
    first = start(LONG, tmp_path)
    wait_for(tmp_path / "run/unfinished.safetensors", first)
    second = start(LONG + " --fresh", tmp_path)
    finish(second)
    assert first.is_alive(), "or the two did not overlap"
    log = " ".join((tmp_path / "log.txt").read_text().split())
    assert second.exitcode == 2, log
    assert "error: Another process is writing run; wait until it has ended, or choose another --out." in log
    first.kill()
    first.join()
    third = start(PROBLEMS["train"].command + " --fresh", tmp_path)
    finish(third)
    assert third.exitcode == 0, "the lock ended with the process that held it"
    assert json.loads((tmp_path / "run/result.json").read_text())["finished"]


def test_ten_predictions_at_once_are_equal(tmp_path):
    write_tables(tmp_path)
    fitted = start(PROBLEMS["fit"].command, tmp_path)
    finish(fitted)
    assert fitted.exitcode == 0, (tmp_path / "log.txt").read_text()
    ten = [start(f"predict run -o {i}.csv --json {i}.json", tmp_path) for i in range(10)]
    for process in ten:
        finish(process)
    assert [process.exitcode for process in ten] == [0] * 10, (tmp_path / "log.txt").read_text()
    answers = {(tmp_path / f"{i}.csv").read_bytes() for i in range(10)}
    assert len(answers) == 1
    assert len(answers.pop().splitlines()) == 61


def test_whoever_reads_what_others_write_finds_one_of_their_files(tmp_path):
    """As caches and logs are written, by several at once and without a lock."""
    contents = {bytes([65 + i]) * 300_000 for i in range(4)}
    path = tmp_path / "cache" / "positions.npz"

    def write(content):
        for _ in range(15):
            write_atomic(path, content)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    seen = set()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            seen.add(path.read_bytes())
    assert seen
    assert seen <= contents
    assert [file.name for file in path.parent.iterdir()] == [path.name]
