"""One writer at a time, across processes and threads."""

import os
import subprocess
import sys
import threading

import pytest

from asgat.errors import AsgatError
from asgat.files.lock import LockedError, locked

HOLD = """
import sys
from asgat.files.lock import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path, holder):
    sentence = "Another process is writing .*run; wait until it has ended, or choose another --out"
    with pytest.raises(LockedError, match=sentence), locked(tmp_path / "run"):
        pass
    holder.kill()
    holder.wait()
    with locked(tmp_path / "run"):
        pass


def test_a_second_process_may_wait(tmp_path, holder):
    calls, order = [], []

    def end():
        order.append("ended")
        holder.kill()

    def waiting():
        calls.append(1)
        threading.Timer(0.3, end).start()

    with locked(tmp_path / "run", wait=True, waiting=waiting):
        order.append("held")
    assert calls == [1]
    assert order == ["ended", "held"]


def test_who_holds_it_holds_it_once_more(tmp_path):
    with locked(tmp_path), locked(tmp_path):
        pass
    with locked(tmp_path):
        assert refused_in_a_thread(tmp_path) == [True]
        with locked(tmp_path):
            pass
        assert refused_in_a_thread(tmp_path) == [True], "the outer one still holds it"
    assert refused_in_a_thread(tmp_path) == [False]


def refused_in_a_thread(folder):
    found = []

    def attempt():
        try:
            with locked(folder):
                found.append(False)
        except LockedError:
            found.append(True)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return found


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AsgatError, match=r"cannot be written: .*\. Choose another place"), locked(tmp_path / "file"):
        pass
    if os.geteuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(AsgatError, match="Permission denied"), locked(tmp_path / "closed"):
            pass
