import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asgat.training.early_stopping import EarlyStopping

# Few different values, so that ties and exact returns to an earlier best are common.
FIGURES = st.lists(st.tuples(st.integers(0, 6).map(float), st.integers(0, 6).map(float)), min_size=1, max_size=40)
NAN = math.nan


def replay(figures, patience):
    """The paper's rule as it is written, looking back over everything: kept and last epoch, from 0."""
    kept, without = None, 0
    for epoch, (loss, score) in enumerate(figures):
        losses, scores = zip(*figures[:epoch], strict=True) if epoch else ((), ())
        if all(loss <= other for other in losses) and all(score >= other for other in scores):
            kept = epoch
        improved = all(loss < other for other in losses) or all(score > other for other in scores)
        without = 0 if improved else without + 1
        if without == patience:
            return kept, epoch
    return kept, len(figures) - 1


def follow(figures, patience):
    stopping = EarlyStopping(patience)
    kept = None
    for epoch, (loss, score) in enumerate(figures):
        if stopping.update(loss, score):
            kept = epoch
        if stopping.stop:
            return kept, epoch
    return kept, len(figures) - 1


@settings(deadline=None, max_examples=300)
@given(FIGURES, st.integers(1, 8))
@example([(1.0, 1.0)] * 10, 3)
@example([(2.0, 1.0), (1.0, 0.0), (1.5, 1.0), (1.0, 1.0)], 8)
def test_follows_the_rule(figures, patience):
    assert follow(figures, patience) == replay(figures, patience)


def test_the_kept_epoch_must_match_the_best_of_both():
    stopping = EarlyStopping(patience=100)
    figures = [(2.0, 0.5), (1.0, 0.4), (1.5, 0.6), (1.0, 0.6), (1.0, 0.6), (0.9, 0.5)]
    assert [stopping.update(*f) for f in figures] == [True, False, False, True, True, False]


@settings(deadline=None, max_examples=100)
@given(FIGURES, st.integers(1, 8), st.sampled_from([(NAN, 3.0), (3.0, NAN), (NAN, NAN)]), st.data())
def test_nan_is_worse_than_any_number(figures, patience, spoilt, data):
    place = data.draw(st.integers(0, len(figures)))
    with_nan = [*figures[:place], spoilt, *figures[place:]]
    worst = [(math.inf if math.isnan(a) else a, -math.inf if math.isnan(b) else b) for a, b in with_nan]
    assert follow(with_nan, patience) == follow(worst, patience)


@pytest.mark.parametrize("spoilt", [(NAN, 0.9), (0.1, NAN), (NAN, NAN)])
def test_nan_does_not_stick(spoilt):
    stopping = EarlyStopping(patience=2)
    stopping.update(*spoilt)
    assert stopping.update(0.05, 0.95)
    assert not stopping.stop
    assert not stopping.update(NAN, NAN)
    assert not stopping.update(NAN, NAN)
    assert stopping.stop
