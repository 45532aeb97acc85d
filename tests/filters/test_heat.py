import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.filters import HeatFilter

FREQUENCY = torch.linspace(0, 2, 9, dtype=torch.float64)


@given(st.floats(1e-3, 50.0), st.booleans(), st.integers(1, 3))
def test_is_the_heat_kernel(scale, learned, heads):
    response = HeatFilter(heads, scale, learned).double()(FREQUENCY)
    for column in response.t():
        # the scale is kept as a single-precision logarithm until .double()
        expected = [math.exp(-scale * f) for f in FREQUENCY.tolist()]
        torch.testing.assert_close(column.tolist(), expected, rtol=1e-4, atol=1e-6)


def test_a_learned_scale_is_a_parameter_per_head_and_stays_positive():
    filter = HeatFilter(2, learned=True)
    assert [p.shape for p in filter.parameters()] == [(2,)]
    optimizer = torch.optim.SGD(filter.parameters(), lr=1.0)
    for _ in range(20):
        optimizer.zero_grad()
        (-filter(FREQUENCY.float())).sum().backward()  # pulls the scale down as far as it goes
        optimizer.step()
    assert (filter.log_scale.exp() > 0).all()
    assert (filter.log_scale < 0).all()


def test_heads_learn_their_scales_apart():
    filter: Any = HeatFilter(2, learned=True)
    filter(FREQUENCY.float())[:, 0].sum().backward()
    assert filter.log_scale.grad[0] < 0
    assert filter.log_scale.grad[1] == 0


def test_a_fixed_scale_is_state_but_no_parameter():
    filter = HeatFilter(2, scale=3.0)
    assert list(filter.parameters()) == []
    other = HeatFilter(2, scale=1.0)
    other.load_state_dict(filter.state_dict())
    assert torch.equal(other(FREQUENCY.float()), filter(FREQUENCY.float()))


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_scale_is_refused(scale):
    with pytest.raises(AsgatError, match=f"must be a positive number, but is {scale}"):
        HeatFilter(1, scale)


def test_repr():
    assert repr(HeatFilter(2, 0.5, learned=True)) == "HeatFilter(heads=2, scale=0.5, learned=True)"
