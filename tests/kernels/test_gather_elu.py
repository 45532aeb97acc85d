"""gather_elu against the operators it joins."""

import pytest
import torch
import torch.nn.functional as F
from tests.kernels.devices import CUDA, DEVICES, captured
from torch import Tensor

from asgat.kernels import gather_elu
from asgat.kernels.dropout import seeded_dropout

P = 0.3
SHAPES = [(3, 17, 5, 20), (3, 7, 5, 20), (1, 9, 3, 5), (2, 9, 3, 33), (9, 40, 11, 300), (2, 20, 20, 4)]


def problem(
    heads: int, nodes: int, k: int, f: int, bias: bool, device: str, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    generator = torch.Generator().manual_seed(10 * heads + 100 * k)
    rows = nodes * heads
    x = torch.randn(nodes, f, generator=generator, dtype=dtype)
    index = torch.randint(0, max(1, nodes), (rows, k), generator=generator)
    weight = torch.randn(rows, k, generator=generator, dtype=dtype)
    weight[torch.rand(rows, k, generator=generator) < 0.3] = 0  # dropped ones
    shift = torch.randn(heads, f, generator=generator, dtype=dtype) if bias else None
    moved = [None if part is None else part.to(device).requires_grad_() for part in (x, weight, shift)]
    assert moved[0] is not None
    assert moved[1] is not None
    return moved[0], index.to(device), moved[1], moved[2]


def drawn(device: str) -> Tensor:
    return torch.tensor([2**61 + 12345], device=device)


def plain(x: Tensor, index: Tensor, weight: Tensor, bias: Tensor | None, seed: Tensor | None = None) -> Tensor:
    out = (weight[:, :, None] * x[index]).sum(dim=1)
    if bias is not None:
        out = (out.view(-1, *bias.shape) + bias).view(out.shape)
    out = F.elu(out)
    return out if seed is None else out * seeded_dropout(torch.ones_like(out), P, seed)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fixed_order", [False, True])
@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients(
    device: str, fixed_order: bool, drops: bool, bias: bool, shape: tuple[int, int, int, int]
) -> None:
    x, index, weight, shift = problem(*shape, bias, device)
    seed = drawn(device) if drops else None
    inputs = [x, weight] if shift is None else [x, weight, shift]
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(fixed_order)
    try:
        out, expected = gather_elu(x, index, weight, shift, P, seed), plain(x, index, weight, shift, seed)
        direction = torch.linspace(-1, 2, out.numel(), device=device).view_as(out)
        found, true = (torch.autograd.grad(made, inputs, direction) for made in (out, expected))
    finally:
        torch.use_deterministic_algorithms(before)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(found, true, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_double_precision(device: str) -> None:
    x, index, weight, bias = problem(3, 17, 5, 20, True, device, torch.float64)
    torch.testing.assert_close(gather_elu(x, index, weight, bias), plain(x, index, weight, bias))


@pytest.mark.parametrize("device", DEVICES)
def test_small_negative_sums_keep_their_digits(device: str) -> None:
    x = -torch.logspace(-30, 2, 200, device=device).unsqueeze(1)
    index = torch.arange(200, device=device).unsqueeze(1)
    out = gather_elu(x, index, torch.ones(200, 1, device=device))
    torch.testing.assert_close(out.double(), torch.expm1(x.double()), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("device", DEVICES)
def test_no_rows(device: str) -> None:
    x, index, weight, bias = problem(3, 0, 5, 20, True, device)
    out = gather_elu(x, index, weight, bias, P, drawn(device))
    assert out.shape == (0, 20)
    assert bias is not None
    to_x, to_bias = torch.autograd.grad(out.sum(), (x, bias))
    assert to_x.shape == (0, 20)
    assert not to_bias.any()


@pytest.mark.parametrize("device", [CUDA])
def test_captured_step(device: str) -> None:
    x, index, weight, bias = problem(2, 30, 4, 40, True, device)
    assert bias is not None
    seed = drawn(device)

    def step() -> tuple[Tensor, ...]:
        out = gather_elu(x, index, weight, bias, P, seed)
        return out, *torch.autograd.grad(out.square().sum(), (x, weight, bias))

    graph, outputs = captured(step)
    seed.add_(1)
    graph.replay()
    for ours, theirs in zip(outputs, step(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
