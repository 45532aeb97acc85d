"""elu against PyTorch's."""

import pytest
import torch
import torch.nn.functional as F
from tests.kernels.devices import DEVICES, close_for_any_threads, opcheck
from torch import Tensor

from asgat.kernels import elu
from asgat.kernels.elu import _elu, _elu_grad


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 30.0, 200.0])
def test_values_and_gradients(device: str, dtype: torch.dtype, scale: float) -> None:
    x = (scale * torch.randn(2, 37, 5, dtype=dtype, device=device)).requires_grad_()
    ours, theirs = elu(x), F.elu(x)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7 * min(scale, 1.0))
    direction = torch.randn_like(x)
    torch.testing.assert_close(*(torch.autograd.grad(out, x, direction)[0] for out in (ours, theirs)))


def test_special_values() -> None:
    x = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, -1e-30, 1e-30, -100.0])
    torch.testing.assert_close(elu(x), F.elu(x), equal_nan=True)
    assert elu(torch.empty(0, 3)).shape == (0, 3)


def test_gradcheck() -> None:
    assert torch.autograd.gradcheck(elu, torch.randn(4, 5, dtype=torch.float64, requires_grad=True))


def test_half_precision_is_left_to_pytorch() -> None:
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    assert torch.equal(elu(x), F.elu(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_entry_does_not_depend_on_the_others(dtype: torch.dtype) -> None:
    x = torch.randn(3, 7, 11, dtype=dtype)
    assert torch.equal(elu(x), torch.stack([elu(part) for part in x]))
    assert torch.equal(elu(x).flatten()[5:], elu(x.flatten()[5:]))


def test_operators_are_well_formed() -> None:
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    opcheck(_elu, x)
    opcheck(_elu_grad, F.elu(x.detach()), torch.randn(3, 4, dtype=torch.float64))


def test_several_threads() -> None:
    x = torch.randn(1_000_001, requires_grad=True)

    def compute() -> tuple[Tensor, ...]:
        out = elu(x)
        return out.detach(), torch.autograd.grad((out * out).sum(), x)[0]

    close_for_any_threads(compute)
