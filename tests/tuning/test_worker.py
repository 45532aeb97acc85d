"""Whether a worker lives is seen from its lock."""

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


def test_a_killed_worker_is_gone_at_once(tmp_path):
    context = multiprocessing.get_context("fork")
    names = context.Queue()
    process = context.Process(target=live, args=(tmp_path, names))
    process.start()
    name, other = names.get(timeout=60), Worker(tmp_path)
    assert not other.gone(name)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert other.gone(name)
    assert other.gone(name), "and stays so after its lock is cleared away"


def test_a_worker_that_ended_is_gone_and_leaves_nothing(tmp_path):
    one, other = Worker(tmp_path), Worker(tmp_path)
    with one.alive():
        assert not other.gone(one.name)
        assert not one.gone(one.name)
        assert len(list(tmp_path.iterdir())) == 1
    assert other.gone(one.name)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_known_is_not_said(tmp_path):
    assert not Worker(None).gone(Worker(tmp_path).name)
    assert not Worker(tmp_path).gone("0123456789abcdef@elsewhere")
    assert not Worker(tmp_path).gone(None)
    with Worker(None).alone() as alone, Worker(None).alive():
        assert not alone


def test_one_at_a_time(tmp_path):
    order = []

    def enter():
        with Worker(tmp_path).alone() as alone:
            order.append(("second", alone))

    with Worker(tmp_path).alone() as alone:
        thread = threading.Thread(target=enter)
        thread.start()
        time.sleep(0.2)
        order.append(("first", alone))
    thread.join()
    assert order == [("first", True), ("second", True)]


def test_a_folder_that_cannot_be_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(AsgatError, match=r"cannot be written: .*\. Choose another --storage"),
        Worker(tmp_path / "file").alive(),
    ):
        pass
