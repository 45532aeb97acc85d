import numpy as np
import pytest
import torch

from asgat.errors import AsgatError
from asgat.filters import PolynomialFilter


@pytest.mark.parametrize("degree", [0, 1, 3, 8])
@pytest.mark.parametrize("heads", [1, 3])
def test_is_numpy_s_polynomial(degree, heads):
    filter = PolynomialFilter(heads, degree).double()
    frequency = torch.linspace(0, 2, 9, dtype=torch.float64)
    expected = np.polynomial.polynomial.polyval(frequency.numpy(), filter.theta.detach().numpy())
    np.testing.assert_allclose(filter(frequency).detach().numpy().T.reshape(heads, -1), expected, atol=1e-12)


def test_every_power_starts_with_about_the_same_share():
    theta = []
    for seed in range(300):
        torch.manual_seed(seed)
        theta.append(PolynomialFilter(2, degree=6).theta.detach())
    largest_share = torch.stack(theta).std(dim=(0, 2)) * 2.0 ** torch.arange(7)
    torch.testing.assert_close(largest_share, torch.ones(7), rtol=0.15, atol=0)


def test_a_negative_degree_is_refused():
    with pytest.raises(AsgatError, match="must not be negative, but is -1"):
        PolynomialFilter(1, degree=-1)


def test_repr():
    assert repr(PolynomialFilter(2, degree=4)) == "PolynomialFilter(heads=2, degree=4)"
