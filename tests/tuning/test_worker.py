"""A worker is known to be alive by its lock."""

import multiprocessing
import os
import signal
import threading
import time
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest

from asgat.errors import AsgatError
from asgat.tuning.worker import Worker, heartbeat, last_stamp, stamp


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


class Trial:
    """A trial that counts its stamps, and fails at some of them."""

    def __init__(self, fails=False):
        self.fails, self.count, self.user_attrs = fails, 0, {}

    def set_user_attr(self, key, value):
        self.count += 1
        if self.fails:
            raise RuntimeError("the trial was failed by another worker")
        self.user_attrs[key] = value


def made(fails=False):
    return Trial(fails)


def frozen(start, attributes):
    return SimpleNamespace(datetime_start=start, user_attrs=attributes)


def test_stamps_are_renewed_until_the_body_ends_also_if_one_trial_fails():
    broken, sound = made(fails=True), made()
    with heartbeat([broken, sound], 0.01):
        deadline = time.monotonic() + 30
        while min(broken.count, sound.count) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    count = sound.count
    assert min(broken.count, count) >= 3
    time.sleep(0.05)
    assert sound.count == count


def test_the_last_stamp_is_the_later_of_start_and_stamp():
    trial = made()
    before = time.time()
    stamp(trial)
    late = datetime.now() + timedelta(hours=1)
    assert last_stamp(frozen(None, trial.user_attrs)) >= before
    assert last_stamp(frozen(late, trial.user_attrs)) == late.timestamp()
    assert last_stamp(frozen(None, {})) == 0.0
