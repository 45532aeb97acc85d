"""A worker is known to be alive by its lock."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from asgat.errors import AsgatError
from asgat.tuning.worker import Worker


def live(folder, names):
    worker = Worker(folder)
    with worker.alive():
        names.put(worker.name)
        time.sleep(600)


def test_a_killed_worker_is_dead_at_once(tmp_path):
    context = multiprocessing.get_context("fork")
    names = context.Queue()
    process = context.Process(target=live, args=(tmp_path, names))
    process.start()
    name, other = names.get(timeout=60), Worker(tmp_path)
    assert not other.is_dead(name)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert other.is_dead(name)
    assert other.is_dead(name), "also after its lock is removed"


def test_a_worker_that_ended_is_dead_and_leaves_no_file(tmp_path):
    one, other = Worker(tmp_path), Worker(tmp_path)
    with one.alive():
        assert not other.is_dead(one.name)
        assert not one.is_dead(one.name)
        assert len(list(tmp_path.iterdir())) == 1
    assert other.is_dead(one.name)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_worker_is_not_dead(tmp_path):
    assert not Worker(None).is_dead(Worker(tmp_path).name)
    assert not Worker(tmp_path).is_dead("0123456789abcdef@elsewhere")
    assert not Worker(tmp_path).is_dead(None)
    with Worker(None).exclusive() as exclusive, Worker(None).alive():
        assert not exclusive


def test_one_at_a_time(tmp_path):
    order = []

    def enter():
        with Worker(tmp_path).exclusive() as exclusive:
            order.append(("second", exclusive))

    with Worker(tmp_path).exclusive() as exclusive:
        thread = threading.Thread(target=enter)
        thread.start()
        time.sleep(0.2)
        order.append(("first", exclusive))
    thread.join()
    assert order == [("first", True), ("second", True)]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(AsgatError, match=r"cannot be written: .*\. Choose another --storage"),
        Worker(tmp_path / "file").alive(),
    ):
        pass
