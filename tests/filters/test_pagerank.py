import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.filters import PageRankFilter

FREQUENCY = torch.linspace(0, 2, 9, dtype=torch.float64)


@given(st.integers(0, 12), st.integers(1, 3))
def test_is_the_sum_of_weighted_powers(steps, heads):
    filter = PageRankFilter(heads, steps).double()
    torch.nn.init.normal_(filter.gamma)
    gamma = filter.gamma.tolist()
    expected = [[sum(gamma[j][m] * (1 - f) ** j for j in range(steps + 1)) for m in range(heads)] for f in FREQUENCY]
    torch.testing.assert_close(filter(FREQUENCY), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_starts_as_a_personalised_pagerank(alpha):
    """With many steps: α (I − (1 − α) Ā)⁻¹, whose response is α / (1 − (1 − α)(1 − λ))."""
    inside = FREQUENCY[1:-1]
    response = PageRankFilter(2, 400, alpha).double()(inside)
    expected = alpha / (1.0 - (1.0 - alpha) * (1.0 - inside))
    torch.testing.assert_close(response, expected.unsqueeze(-1).expand(-1, 2), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("steps", [0, 1, 10])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
def test_a_constant_signal_passes_unchanged_at_the_start(steps, alpha):
    response = PageRankFilter(1, steps, alpha).double()(FREQUENCY)
    assert response[0].item() == pytest.approx(1.0, abs=1e-6)
    if alpha == 1.0:
        torch.testing.assert_close(response, torch.ones_like(response))


def test_reset_goes_back_to_the_start():
    filter = PageRankFilter(2, 3, 0.2)
    before = filter.gamma.clone()
    assert before[:, 0].tolist() == pytest.approx([0.2, 0.16, 0.128, 0.512])
    torch.nn.init.normal_(filter.gamma)
    filter.reset_parameters()
    assert torch.equal(filter.gamma, before)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"steps": -1}, "steps of a walk must not be negative, but are -1"),
        ({"alpha": 1.5}, r"alpha is a probability, but is 1\.5"),
        ({"alpha": -0.1}, r"alpha is a probability, but is -0\.1"),
        ({"alpha": float("nan")}, "alpha is a probability, but is nan"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(AsgatError, match=sentence):
        PageRankFilter(1, **arguments)


def test_repr():
    assert repr(PageRankFilter(2, 5, 0.25)) == "PageRankFilter(heads=2, steps=5, alpha=0.25)"
