"""The blocked map of joined rows, against sums, concatenation and product."""

import importlib

import pytest
import torch
from tests.kernels.devices import close_for_any_threads
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from asgat.kernels import gather_linear

module = importlib.import_module("asgat.kernels.gather_linear")
SHAPES = [(1, 1, 1, ()), (5, 2, 3, (4,)), (33, 3, 2, (1, 6)), (0, 2, 3, (4,))]  # rows, heads, k, widths of other parts


class Sizes(TorchDispatchMode):
    """Numbers of entries of all tensors that are made."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[int] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        self.found += [value.numel() for value in (out if isinstance(out, tuple) else (out,)) if torch.is_tensor(value)]
        return out


def problem(rows: int, heads: int, k: int, others: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """x, weight, matrix, bias, first and others, then the index."""
    generator = torch.Generator().manual_seed(rows)
    width, features, out = 3, 5, 4
    shapes = [(7, features), (heads, rows, k), (width + heads * features + sum(others), out), (out,), (rows, width)]
    shapes += [(rows, other) for other in others]
    made = [torch.randn(shape, dtype=dtype, generator=generator).requires_grad_() for shape in shapes]
    return [*made, torch.randint(7, (rows, heads, k), generator=generator, dtype=torch.int32)]


def blocked(x: Tensor, weight: Tensor, matrix: Tensor, bias: Tensor, first: Tensor, *others: Tensor) -> Tensor:
    *parts, index = others
    return gather_linear(x, index, weight.transpose(0, 1), first, parts, matrix, bias)


def whole(x: Tensor, weight: Tensor, matrix: Tensor, bias: Tensor, first: Tensor, *others: Tensor) -> Tensor:
    *parts, index = others
    sums = (weight.transpose(0, 1).unsqueeze(-1) * x[index.long()]).sum(dim=2)
    return torch.cat([first, sums.flatten(1), *parts], dim=1) @ matrix + bias


def with_gradients(function, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    out = function(*inputs)
    grad = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    return out.detach(), *torch.autograd.grad(out, inputs[:-1], grad)


@pytest.mark.parametrize("rows", [1, 4, 8, 1000])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients(monkeypatch, shape, rows):
    monkeypatch.setattr(module, "ROWS", rows)
    inputs = problem(*shape)
    for ours, theirs in zip(with_gradients(blocked, inputs), with_gradients(whole, inputs), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


def test_what_is_computed_again_is_the_same():
    """Twice backward through one output: nothing depends on the first."""
    inputs = problem(9, 2, 3, (4,), torch.float32)
    out = blocked(*inputs)
    first, second = (torch.autograd.grad(out.sum(), inputs[:-1], retain_graph=True) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("fixed", range(6))
def test_an_input_without_a_gradient(fixed):
    """Such as the weights of a filter that training does not change."""
    inputs = problem(9, 2, 3, (4,))
    expected = list(with_gradients(whole, inputs)[1:])
    inputs[fixed] = inputs[fixed].detach()
    out = blocked(*inputs)
    grad = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    expected.pop(fixed)
    found = torch.autograd.grad(out, [value for value in inputs if value.requires_grad], grad)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


def test_only_inputs_are_saved():
    inputs = problem(40, 3, 2, (6,))
    saved: list[Tensor] = []

    def save(tensor):
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        blocked(*inputs)
    known = {tensor.data_ptr() for tensor in inputs}
    assert saved
    assert all(tensor.data_ptr() in known for tensor in saved)


def test_no_array_is_much_larger_than_the_output(monkeypatch):
    """Neither the joined rows nor the sums of all heads are stored, nor are their gradients."""
    monkeypatch.setattr(module, "ROWS", 16)
    inputs = problem(400, 6, 2, (4,))
    with Sizes() as sizes:
        with_gradients(blocked, inputs)
    assert max(sizes.found) <= 400 * 6 * 2, "the weights of the sums are the largest"


@pytest.mark.parametrize("rows", [512, module.ROWS])
def test_several_threads(monkeypatch, rows):
    monkeypatch.setattr(module, "ROWS", rows)
    inputs = problem(3000, 4, 8, (16,), torch.float32)
    close_for_any_threads(lambda: with_gradients(blocked, inputs))
