from types import SimpleNamespace

from asgat.tuning.trial_order import next_position, out_of_order, position, unqueued


def study(*trials):
    """Trials by their states: (state, number of the trial it repeats, whether it is surplus)."""
    made = []
    for number, (state, retry_of, surplus) in enumerate(trials):
        attributes = {} if retry_of is None else {"retry_of": retry_of}
        attributes |= {"surplus": True} if surplus else {}
        made.append(SimpleNamespace(number=number, state=SimpleNamespace(name=state), user_attrs=attributes))
    return made


def plain(state):
    return state, None, False


def retry(state, of):
    return state, of, False


def test_a_retry_has_the_position_of_the_trial_it_repeats():
    trials = study(plain("COMPLETE"), plain("FAIL"), plain("COMPLETE"), retry("FAIL", 1), retry("COMPLETE", 3))
    assert [position(trial, trials) for trial in trials] == [0, 1, 2, 1, 1]
    assert next_position(trials) == 3


def test_surplus_trials_have_no_position():
    trials = study(plain("COMPLETE"), ("FAIL", None, True), plain("COMPLETE"))
    assert position(trials[2], trials) == 1
    assert next_position(trials) == 2
    assert unqueued(trials) == []


def test_the_queue_comes_before_new_trials():
    trials = study(plain("COMPLETE"), plain("FAIL"), plain("COMPLETE"), retry("WAITING", 1))
    assert next_position(trials) == 1


def test_unqueued_trials():
    trials = study(plain("FAIL"), plain("FAIL"), plain("COMPLETE"), retry("WAITING", 1))
    assert [trial.number for trial in unqueued(trials)] == [0]


def test_trials_out_of_order():
    failed = [plain("FAIL")] * 3
    assert out_of_order(study(*failed, *(retry("WAITING", of) for of in (0, 1, 2)))) == []
    mixed = study(*failed, *(retry("WAITING", of) for of in (2, 1, 0)))
    assert [trial.number for trial in out_of_order(mixed)] == [4, 3], "positions 1 and 2 are queued behind position 0"
