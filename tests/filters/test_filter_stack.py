import pytest
import torch
from tests.kernels.devices import CUDA

from asgat.filters import BandStop, HeatFilter, MLPFilter, PageRankFilter, PolynomialFilter
from asgat.filters.filter_stack import FilterStack
from asgat.nn.stacking import stack

RUNS = 4
FORMS = [
    lambda: MLPFilter(3, hidden=(5, 4)),
    lambda: MLPFilter(2, hidden=(6,), output_activation="relu"),
    lambda: MLPFilter(3, hidden=(5, 4), exact_bias=True),
    lambda: HeatFilter(2, scale=0.7, learned=True),
    lambda: HeatFilter(2),
    lambda: PolynomialFilter(3, degree=2),
    lambda: PageRankFilter(1, steps=3),
    lambda: BandStop(MLPFilter(2, hidden=(5,)), 0.5, 1.0),
]


def filters_and_stack(make, dtype, device="cpu", runs=RUNS):
    filters = []
    for run in range(runs):
        torch.manual_seed(run)
        own = make().to(device, dtype)
        with torch.no_grad():
            for value in own.parameters():
                value.add_(0.1 * torch.randn_like(value))
        own.stackable = True  # as part of a layer
        filters.append(own)
    return filters, FilterStack(stack(filters), runs)


def results(filter, dtype, device="cpu"):
    points, transform = (part.to(device, dtype) for part in (torch.linspace(0.0, 2.0, 7), torch.eye(7) + 0.1))
    return filter(points).t(), filter.transformed(points, transform)


def compare(make, dtype, device, check):
    filters, stacked = filters_and_stack(make, dtype, device)
    singles = [results(own, dtype, device) for own in filters]
    for out, expected in zip(results(stacked, dtype, device), zip(*singles, strict=True), strict=True):
        check(out, torch.cat(expected))
        parameters = list(stacked.filter.parameters())
        factor = torch.randn_like(out)
        if not parameters:
            continue
        gradients = torch.autograd.grad((out * factor).sum(), parameters)
        for run, part in enumerate(factor.split(len(factor) // RUNS)):
            own = torch.autograd.grad((expected[run] * part).sum(), list(filters[run].parameters()))
            for ours, theirs in zip(gradients, own, strict=True):
                check(ours[run], theirs)


def same(a, b):
    assert torch.equal(a, b)


@pytest.mark.parametrize("make", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_run_responds_to_the_last_bit_as_alone(make, dtype):
    compare(make, dtype, "cpu", same)


@pytest.mark.parametrize("make", FORMS)
@pytest.mark.parametrize("device", [CUDA])
def test_on_cuda_all_runs_at_once(make, device):
    compare(make, torch.float64, device, torch.testing.assert_close)


def test_each_is_always_the_same_objects_with_the_present_weights():
    filters, stacked = filters_and_stack(FORMS[0], torch.float32)
    before = stacked.each()
    frequency = torch.rand(5)
    with torch.no_grad():
        for value in (*stacked.filter.parameters(), *(p for own in filters for p in own.parameters())):
            value.mul_(2.0)
    after = stacked.each()
    assert all(a is b for a, b in zip(before, after, strict=True))
    assert all(torch.equal(a(frequency), own(frequency)) for a, own in zip(after, filters, strict=True))


def test_the_parameters_remain_the_filters():
    _, stacked = filters_and_stack(FORMS[0], torch.float32)
    assert not list(stacked.parameters())
    assert repr(stacked) == "FilterStack(runs=4, heads=12)"
    assert not stacked.fixed
    assert filters_and_stack(FORMS[4], torch.float32)[1].fixed
