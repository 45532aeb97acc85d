"""On the CPU every run is computed as alone, to the last bit; elsewhere to rounding."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from tests.kernels.devices import DEVICES
from torch import Tensor

from asgat.kernels.each_run import aligned, each_run, matmul

RUNS, ODD = 5, (37, 11)  # sizes after which the next run begins anywhere in memory


def compare(function, stacked: list[Tensor], shared: list[Tensor] | None = None) -> None:
    """Values and gradients of a function of all runs, and of each run alone."""
    shared = shared or []
    together = [value.clone().requires_grad_() for value in stacked]
    out = function(*shared, *together)
    factor = torch.randn_like(out)
    gradients = torch.autograd.grad((out * factor).sum(), together)
    check = torch.equal if out.device.type == "cpu" else partial(torch.allclose, rtol=1e-4, atol=1e-5)
    for run in range(RUNS):
        alone = [value[run].clone(memory_format=torch.contiguous_format).requires_grad_() for value in stacked]
        expected = function(*shared, *alone)
        assert check(out[run], expected)
        for ours, theirs in zip(gradients, torch.autograd.grad((expected * factor[run]).sum(), alone), strict=True):
            assert check(ours[run], theirs)


@pytest.fixture(params=DEVICES)
def random(request):
    def draw(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(shape, dtype=dtype, device=request.param)

    return draw


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 3, 16, 33])
def test_products(random, dtype, width):
    n, f = ODD
    compare(matmul, [random(RUNS, n, f, dtype=dtype), random(RUNS, f, width, dtype=dtype)])
    compare(matmul, [random(RUNS, f, width, dtype=dtype)], [random(n, f, dtype=dtype)])
    compare(
        lambda x, weight: matmul(x, weight.mT), [random(RUNS, n, f, dtype=dtype), random(RUNS, width, f, dtype=dtype)]
    )


def test_a_gradient_to_shared_features(random):
    x, weight = random(4, 3).requires_grad_(), random(RUNS, 3, 2)
    (grad,) = torch.autograd.grad(matmul(x, weight).sum(), x)
    torch.testing.assert_close(grad, weight.sum(dim=(0, 2)).expand(4, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_elementwise_functions_and_sums(random, dtype):
    n, f = ODD
    compare(partial(each_run, 2, F.elu), [random(RUNS, n, f, dtype=dtype)])
    compare(partial(each_run, 2, lambda x, b: x + b.unsqueeze(-2)), [random(RUNS, n, f), random(RUNS, f)])
    compare(partial(each_run, 3, lambda x: x.mean(dim=-3)), [random(RUNS, 3, n, f, dtype=dtype)])


def test_aligned_copies_what_begins_elsewhere():
    x = torch.randn(64)
    assert aligned(x) is x
    moved = aligned(x[1:])
    assert moved.data_ptr() % 64 == 0
    assert torch.equal(moved, x[1:])


def test_stacked_runs_have_one_dimension_more():
    x, seen = torch.randn(3, 4, 2), []

    def function(x: Tensor) -> Tensor:
        seen.append(x.shape)
        return 2 * x

    assert torch.equal(each_run(2, function, x), 2 * x)
    assert torch.equal(each_run(3, function, x), 2 * x)
    assert seen == [(4, 2), (4, 2), (4, 2), (3, 4, 2)]
    with pytest.raises(ValueError, match="zip"):
        each_run(2, torch.add, x, x[:2])
