import pytest
import torch

from asgat.filters import MLPFilter
from asgat.tables.held_selections import HeldSelections, held_selection, hold_selection


def selection(value):
    return tuple(torch.full((2, 3), value + i) for i in range(3))


@pytest.fixture
def key():
    return object(), MLPFilter(2), 3


def test_nothing_is_kept_or_given_outside_of_the_contexts(key):
    held = HeldSelections()
    hold_selection(key, selection(1))
    assert not held.of
    with held.keeping():
        hold_selection(key, selection(1))
        assert held_selection(key) is None
    assert held_selection(key) is None


def test_what_was_kept_is_given_and_later_selections_take_its_place_in_memory(key):
    held = HeldSelections()
    with held.keeping():
        hold_selection(key, selection(1))
    with held.giving():
        first = held_selection(key)
        assert first is not None
        hold_selection(key, selection(5))  # a step does not keep what it selects
    assert torch.equal(first[0], torch.full((2, 3), 1))
    with held.keeping():
        hold_selection(key, selection(7))
    with held.giving():
        second = held_selection(key)
        assert second is not None
        assert held_selection((key[0], key[1], 4)) is None
    assert [part.data_ptr() for part in second] == [part.data_ptr() for part in first]
    assert torch.equal(first[2], torch.full((2, 3), 9))


def test_an_error_ends_the_context(key):
    held = HeldSelections()
    with pytest.raises(ValueError, match="stop"), held.keeping():
        raise ValueError("stop")
    hold_selection(key, selection(1))
    assert not held.of
