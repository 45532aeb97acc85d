"""gather_sum against indexing and a sum."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.devices import CUDA, DEVICES, EXAMPLES, captured, close_for_any_threads, opcheck
from torch import Tensor

from asgat.errors import AsgatError
from asgat.kernels import gather_sum
from asgat.kernels.gather_sum import _gather_sum, gather_sum_grad_weight, gather_sum_grad_x


def plain(x: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    return (weight[:, :, None] * x[index.long()]).sum(dim=1)


def problem(
    m: int = 7, b: int = 9, k: int = 3, f: int = 5, dtype: torch.dtype = torch.float64, device: str = "cpu"
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(m + 10 * b + 100 * k + 1000 * f)
    x = torch.randn(m, f, generator=generator, dtype=dtype)
    index = torch.randint(0, m, (b, k), generator=generator) if m else torch.zeros(b, k, dtype=torch.int64)
    weight = torch.randn(b, k, generator=generator, dtype=dtype)
    weight[torch.rand(b, k, generator=generator) < 0.3] = 0  # dropped ones
    return x.to(device).requires_grad_(), index.to(device), weight.to(device).requires_grad_()


def gradients(out: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    direction = torch.linspace(-1, 2, out.numel(), dtype=out.dtype, device=out.device).view_as(out)
    return torch.autograd.grad(out, (x, weight), direction)


@pytest.mark.parametrize("device", DEVICES)
@given(m=st.integers(1, 6), b=st.integers(0, 12), k=st.integers(0, 5), f=st.integers(0, 20))
@settings(max_examples=EXAMPLES, deadline=None)
def test_values_and_gradients_of_any_shape(device: str, m: int, b: int, k: int, f: int) -> None:
    x, index, weight = problem(m, b, k, f, device=device)
    out, expected = gather_sum(x, index, weight), plain(x, index, weight)
    torch.testing.assert_close(out, expected)
    for ours, theirs in zip(gradients(out, x, weight), gradients(expected, x, weight), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("b", "k", "f"), [(4000, 6, 88), (500, 20, 512), (9000, 8, 16), (300, 1, 1500)])
def test_large_problems_in_float32(device: str, b: int, k: int, f: int) -> None:
    x, index, weight = problem(257, b, k, f, torch.float32, device)
    out, expected = gather_sum(x, index, weight), plain(x, index, weight)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)
    for ours, theirs in zip(gradients(out, x, weight), gradients(expected, x, weight), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_gradcheck(device: str) -> None:
    x, index, weight = problem(device=device)
    assert torch.autograd.gradcheck(gather_sum, (x, index, weight), nondet_tol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_no_rows_to_gather_from(device: str) -> None:
    x, index, weight = problem(m=0, b=0, device=device)
    out = gather_sum(x, index, weight)
    assert out.shape == (0, 5)
    assert [grad.shape for grad in gradients(out, x, weight)] == [(0, 5), (0, 3)]


@pytest.mark.parametrize("device", DEVICES)
def test_int32_indices_and_memory_in_other_orders(device: str) -> None:
    x, index, weight = problem(device=device)
    expected = plain(x, index, weight)
    index32 = index.to(torch.int32).t().contiguous().t()
    assert not index32.is_contiguous()
    x_t, weight_t = x.detach().t().contiguous().t().requires_grad_(), weight.detach().t().contiguous().t()
    out = gather_sum(x_t, index32, weight_t.requires_grad_())
    torch.testing.assert_close(out, expected)
    grads = torch.autograd.grad(out.sum(), (x_t, weight_t))  # the gradient of a sum is an expanded scalar
    for ours, theirs in zip(grads, torch.autograd.grad(expected.sum(), (x, weight)), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("wanted", ["x", "weight"])
def test_gradients_that_are_not_wanted_are_not_there(device: str, wanted: str) -> None:
    x, index, weight = problem(device=device)
    (weight if wanted == "x" else x).requires_grad_(False)
    out = gather_sum(x, index, weight)
    out.sum().backward()
    assert (x.grad is not None) == (wanted == "x")
    assert (weight.grad is not None) == (wanted == "weight")


@pytest.mark.parametrize("device", DEVICES)
def test_zero_weights_have_a_gradient(device: str) -> None:
    x, index, weight = problem(device=device)
    weight = torch.zeros_like(weight, requires_grad=True)
    gather_sum(x, index, weight).sum().backward()
    torch.testing.assert_close(weight.grad, x.detach().sum(1)[index])


@pytest.mark.parametrize("device", DEVICES)
def test_half_precision_is_promoted(device: str) -> None:
    x, index, weight = (t.detach() for t in problem(device=device))
    out = gather_sum(x.to(torch.bfloat16), index, weight.half())
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.double(), plain(x.to(torch.bfloat16).double(), index, weight.half().double()),
                               rtol=1e-5, atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@given(b=st.integers(0, 4), biases=st.integers(1, 3), k=st.integers(0, 3), f=st.integers(1, 20))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_bias_is_added_in_turn(device: str, b: int, biases: int, k: int, f: int) -> None:
    x, index, weight = problem(6, b * biases, k, f, device=device)
    bias = torch.linspace(-1, 1, biases * f, dtype=x.dtype, device=device).view(biases, f).requires_grad_()
    out = gather_sum(x, index, weight, bias)
    expected = plain(x, index, weight) + bias.repeat(b, 1)
    torch.testing.assert_close(out, expected)
    direction = torch.linspace(-1, 2, out.numel(), dtype=out.dtype, device=device).view_as(out)
    ours, theirs = (torch.autograd.grad(y, (x, weight, bias), direction) for y in (out, expected))
    for a, c in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, c)


@pytest.mark.parametrize("bad", [-1, 7])
def test_indices_out_of_range_are_refused(bad: int) -> None:
    x, index, weight = problem()
    index[3, 1] = bad
    with pytest.raises(RuntimeError, match=r"range|idx"):
        gather_sum(x, index, weight)


def test_shapes_that_do_not_fit_are_refused() -> None:
    x, index, weight = problem()
    with pytest.raises(AsgatError, match="the same shape"):
        gather_sum(x, index, weight[:, :2])
    with pytest.raises(AsgatError, match="divisor of 9"):
        gather_sum(x, index, weight, torch.zeros(2, 5))


def test_several_threads() -> None:
    x, index, weight = problem(300, 20_000, 6, 32, torch.float32)

    def compute() -> tuple[Tensor, ...]:
        out = gather_sum(x, index, weight)
        return out, *gradients(out, x, weight)

    close_for_any_threads(compute)


@pytest.mark.parametrize("device", DEVICES)
def test_operators_are_well_formed(device: str) -> None:
    x, index, weight = problem(device=device)
    grad = torch.randn(9, 5, dtype=torch.float64, device=device)
    opcheck(_gather_sum, x, index, weight, None)
    opcheck(_gather_sum, x, index, weight, torch.randn(3, 5, dtype=torch.float64, device=device, requires_grad=True))
    opcheck(gather_sum_grad_x, grad, index, weight.detach(), 7)
    opcheck(gather_sum_grad_weight, grad, x.detach(), index)


@pytest.mark.parametrize("device", DEVICES)
def test_compiles_without_a_break(device: str) -> None:
    x, index, weight = problem(device=device)
    out = torch.compile(gather_sum, fullgraph=True, backend="aot_eager")(x, index, weight)
    torch.testing.assert_close(out, plain(x, index, weight))
    for ours, theirs in zip(gradients(out, x, weight), gradients(plain(x, index, weight), x, weight), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("device", [CUDA])
@pytest.mark.usefixtures("deterministic")
def test_deterministic_on_request(device: str) -> None:
    x, index, weight = problem(50, 30_000, 6, 33, torch.float32, device)
    expected = gradients(plain(x.double(), index, weight.double()).float(), x, weight)
    first = gradients(gather_sum(x, index, weight), x, weight)
    for _ in range(3):
        again = gradients(gather_sum(x, index, weight), x, weight)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    for ours, theirs in zip(first, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("device", [CUDA])
def test_captured_step_replays(device: str) -> None:
    x, index, weight = problem(100, 500, 6, 40, torch.float32, device)

    def step() -> tuple[Tensor, ...]:
        out = gather_sum(x, index, weight)
        return out, *gradients(out, x, weight)

    graph, outputs = captured(step)
    with torch.no_grad():
        x.mul_(-2.0)
        index.copy_(index.flip(0))
    graph.replay()
    expected = plain(x, index, weight)
    for ours, theirs in zip(outputs, (expected, *gradients(expected, x, weight)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
