"""The Chebyshev coefficients of filters that are small multi-layer perceptrons, in one kernel."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from asgat.kernels.backend import is_compiled, kernel
from asgat.kernels.operator import Operator

MAX_HIDDEN = 3  # layers
MAX_WIDTH = 128  # of a layer: one program holds it
OUTPUTS = ("none", "relu")


def fits_one_kernel(frequency: Tensor, output: str, layers: Sequence[Tensor]) -> bool:
    """Whether :func:`mlp_coefficients` serves these layers: small ones of one precision, in float32 if on CUDA."""
    dtype, on_cpu = frequency.dtype, frequency.device.type == "cpu"
    if on_cpu and torch.compiler.is_compiling():  # PyTorch's compiler fuses its own operators
        return False
    return (
        (dtype == torch.float32 or (on_cpu and dtype == torch.float64))
        and is_compiled(frequency.device)
        and (not on_cpu or layers[0].dtype == dtype)
        and output in OUTPUTS
        and 4 <= len(layers) <= 2 * (MAX_HIDDEN + 1)
        and all(max(weight.shape) <= MAX_WIDTH for weight in layers[::2])
        and frequency.numel() <= MAX_WIDTH
    )


def mlp_coefficients(
    frequency: Tensor, matrix: Tensor, output: str, exact_bias: bool, layers: Sequence[Tensor]
) -> Tensor:
    """The responses of a multi-layer perceptron at some frequencies, as rows, times a matrix.

    What :meth:`asgat.filters.MLPFilter.transformed` computes, forward and backward in one launch each.

    Args:
        frequency: [n].
        matrix: [n, m].
        output: activation of the responses, ``"none"`` or ``"relu"``.
        exact_bias: add the last bias to the first column of the result instead of to the responses.
        layers: weight [out, in] and bias [out] of every layer in turn; the first has one input.

    Shapes:
        - **output**: [heads, m]
    """
    found: Tensor = _OPERATORS[len(layers)](frequency, matrix, OUTPUTS.index(output), exact_bias, *layers)
    return found


def _forward(frequency: Tensor, matrix: Tensor, output: int, exact_bias: bool, *layers: Tensor) -> Tensor:
    found: Tensor = _coefficients(frequency, matrix, output, exact_bias, layers)
    return found


def _fake(frequency: Tensor, matrix: Tensor, output: int, exact_bias: bool, *layers: Tensor) -> Tensor:
    return matrix.new_empty(layers[-1].size(0), matrix.size(1))


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.kind = inputs[2:4]
    ctx.save_for_backward(*inputs[:2], *inputs[4:])


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    frequency, matrix, *layers = ctx.saved_tensors
    return None, None, None, None, *_coefficients_grad(frequency, matrix, *ctx.kind, layers, grad)


_coefficients = kernel("filter_mlp", "mlp_coefficients")
_coefficients_grad = kernel("filter_mlp", "mlp_coefficients_grad")
_OPERATORS = {
    2 * count: Operator(
        f"asgat::mlp_coefficients_{count}",
        f"(Tensor frequency, Tensor matrix, int output, bool exact_bias, "
        f"{', '.join(f'Tensor w{i}, Tensor b{i}' for i in range(count))}) -> Tensor",
        _forward,
        _fake,
        _setup_context,
        _backward,
    )
    for count in range(2, MAX_HIDDEN + 2)
}
