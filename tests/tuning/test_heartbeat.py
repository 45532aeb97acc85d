import time
from datetime import datetime, timedelta
from types import SimpleNamespace

from asgat.tuning.heartbeat import heartbeat, last_stamp, stamp


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
