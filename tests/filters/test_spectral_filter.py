import inspect

import pytest
import torch

import asgat.filters
from asgat.errors import AsgatError
from asgat.filters import (
    BandStop,
    HeatFilter,
    MLPFilter,
    PageRankFilter,
    PolynomialFilter,
    SpectralFilter,
)
from asgat.filters.spectral_filter import build_filter

MAKERS = {
    "MLPFilter": MLPFilter,
    "HeatFilter": HeatFilter,
    "PageRankFilter": PageRankFilter,
    "PolynomialFilter": PolynomialFilter,
    "BandStop": lambda heads: BandStop(MLPFilter(heads), 0.2, 0.4),
}
every_filter = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def test_every_filter_is_tested_here():
    exported = {name for name, item in vars(asgat.filters).items() if inspect.isclass(item)}
    assert exported - {"SpectralFilter"} == set(MAKERS)


@every_filter
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_column_per_head(make, heads, dtype):
    filter = make(heads).to(dtype)
    assert filter.heads == heads
    for size in (0, 1, 5):
        response = filter(torch.linspace(0, 2, size, dtype=dtype))
        assert response.shape == (size, heads)
        assert response.dtype == dtype


@every_filter
def test_a_frequency_s_response_depends_on_it_alone(make):
    filter, frequency = make(2).double(), torch.linspace(0, 2, 11, dtype=torch.float64)
    together = filter(frequency)
    for i, one in enumerate(frequency):
        torch.testing.assert_close(filter(one[None])[0], together[i])


@every_filter
def test_gradients_by_finite_differences(make):
    torch.manual_seed(1)
    filter, frequency = make(2).double(), torch.tensor([0.05, 0.7, 1.9], dtype=torch.float64)
    parameters = dict(filter.named_parameters())
    inputs = tuple(p.detach().clone().requires_grad_() for p in parameters.values())

    def response(*values):
        return torch.func.functional_call(filter, dict(zip(parameters, values, strict=True)), (frequency,))

    if inputs:
        assert torch.autograd.gradcheck(response, inputs, fast_mode=True)


@every_filter
def test_reset_after_any_change_gives_a_working_filter(make):
    filter = make(2)
    with torch.no_grad():
        for tensor in filter.state_dict().values():
            tensor.fill_(float("nan"))
    filter.reset_parameters()
    assert filter(torch.linspace(0, 2, 9)).isfinite().all()


@every_filter
def test_same_seed_same_start(make):
    def start(filter):
        return torch.cat([torch.empty(0), *(tensor.flatten().clone() for tensor in filter.state_dict().values())])

    def seeded(seed, action):
        torch.manual_seed(seed)
        return action()

    filter = make(2)
    assert torch.equal(seeded(4, lambda: start(make(2))), seeded(4, lambda: start(make(2))))
    resets = [seeded(seed, lambda: (filter.reset_parameters(), start(filter))[1]) for seed in (4, 5, 4)]
    assert torch.equal(resets[0], resets[2])
    if list(filter.parameters()) and make is not PageRankFilter:  # whose start is known
        assert not torch.equal(resets[0], resets[1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@every_filter
def test_reset_on_a_gpu(make):
    filter = make(2).cuda()
    filter.reset_parameters()
    assert filter(torch.linspace(0, 2, 9, device="cuda")).isfinite().all()


@pytest.mark.parametrize("heads", [0, -2])
@pytest.mark.parametrize("make", [MLPFilter, HeatFilter, PolynomialFilter])
def test_fewer_than_one_head_is_refused(make, heads):
    with pytest.raises(AsgatError, match=f"heads must be at least 1, but is {heads}"):
        make(heads)


def test_a_filter_without_response_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        SpectralFilter(1)  # type: ignore[abstract]


@pytest.mark.parametrize(
    "wrong", [MLPFilter(4), "heat", lambda heads: heads, None], ids=["object", "name", "int", "None"]
)
def test_what_is_no_class_of_filters_is_refused(wrong):
    with pytest.raises(AsgatError, match="filter must be a subclass of SpectralFilter"):
        build_filter(wrong, 4)
    assert build_filter(MLPFilter, 4).heads == 4
