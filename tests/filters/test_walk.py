import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.filters import WalkFilter

FREQUENCY = torch.linspace(0, 2, 9, dtype=torch.float64)


@given(st.integers(1, 12), st.integers(1, 3))
def test_is_the_sum_of_powers_for_every_head(window, heads):
    response = WalkFilter(heads, window)(FREQUENCY)
    expected = [[sum((1 - f) ** r for r in range(1, window + 1))] * heads for f in FREQUENCY.tolist()]
    torch.testing.assert_close(response, torch.tensor(expected, dtype=torch.float64))


def test_nothing_is_learned_and_nothing_changes():
    filter = WalkFilter(2, window=3)
    before = filter(FREQUENCY)
    filter.reset_parameters()
    assert list(filter.state_dict()) == []
    assert torch.equal(filter(FREQUENCY), before)


def test_keeps_the_precision_it_is_given():
    assert WalkFilter(1, 4)(FREQUENCY.float()).dtype == torch.float32


def test_a_window_without_a_step_is_refused():
    with pytest.raises(AsgatError, match="window of a walk must be at least 1, but is 0"):
        WalkFilter(1, window=0)


def test_repr():
    assert repr(WalkFilter(2, window=3)) == "WalkFilter(heads=2, window=3)"
