import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.filters import BandStop, HeatFilter, MLPFilter

FREQUENCY = torch.linspace(0, 2, 41, dtype=torch.float64)


@given(st.integers(-5, 44), st.integers(1, 50))
def test_silences_its_band_and_nothing_else(start, width):
    low, high = start / 20, (start + width) / 20
    plain = MLPFilter(3).double()
    response, free = BandStop(plain, low, high)(FREQUENCY), plain(FREQUENCY)
    for i, frequency in enumerate(FREQUENCY.tolist()):
        stopped = low <= frequency < high or (high >= 2 and frequency >= low)
        assert torch.equal(response[i], torch.zeros_like(response[i]) if stopped else free[i])


def test_neighbouring_bands_share_no_frequency_and_miss_none():
    plain = HeatFilter(1).double()
    edges = np.linspace(0, 2, 6)
    kept = sum(BandStop(plain, low, high)(FREQUENCY) for low, high in itertools.pairwise(edges))
    torch.testing.assert_close(kept, 4 * plain(FREQUENCY))


def test_a_band_to_the_end_takes_in_frequencies_rounded_beyond_two():
    beyond = torch.tensor([2.0, 2.0000002])
    assert (BandStop(HeatFilter(1), 1.5, 2.0)(beyond) == 0).all()


def test_gradients_come_from_outside_the_band_alone():
    plain = MLPFilter(2).double()
    outside = (FREQUENCY < 0.5) | (FREQUENCY >= 1.0)
    expected = torch.autograd.grad(plain(FREQUENCY)[outside].sum(), list(plain.parameters()))
    actual = torch.autograd.grad(BandStop(plain, 0.5, 1.0)(FREQUENCY).sum(), list(plain.parameters()))
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e)


def test_parameters_are_shared_and_reset_reaches_them():
    plain: Any = MLPFilter(2)
    stop = BandStop(plain, 0.5, 1.0)
    assert next(stop.parameters()) is next(plain.parameters())
    before = plain.layers[0].weight.clone()
    stop.reset_parameters()
    assert not torch.equal(plain.layers[0].weight, before)


def test_bands_can_be_nested():
    both = BandStop(BandStop(HeatFilter(1).double(), 0.0, 0.5), 1.5, 2.0)(FREQUENCY).squeeze(-1)
    assert torch.equal(both > 0, (FREQUENCY >= 0.5) & (FREQUENCY < 1.5))


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (1.0, 0.5), (math.nan, 1.0)])
def test_an_empty_band_is_refused(low, high):
    with pytest.raises(AsgatError, match=f"starts at {low} and ends at {high}"):
        BandStop(HeatFilter(1), low, high)


def test_repr():
    assert "low=0.5, high=1.0" in repr(BandStop(HeatFilter(1), 0.5, 1.0))
