"""CPU kernels of :func:`asgat.kernels.filter_mlp.mlp_coefficients`."""

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from asgat.kernels.cpu.jit import FUSED, compiled, pointer, view
from asgat.kernels.filter_mlp import MAX_HIDDEN

Array = np.ndarray[Any, Any]
MOST = MAX_HIDDEN + 1  # layers
carray: Any = numba.carray  # type: ignore[attr-defined]


def mlp_coefficients(
    frequency: Tensor, matrix: Tensor, output: int, exact_bias: bool, layers: Sequence[Tensor]
) -> Tensor:
    out = torch.empty(layers[-1].size(0), matrix.size(1), dtype=matrix.dtype)
    held = [layer.contiguous() for layer in layers]
    sizes, places = _sizes(held), _places(held)
    _forward(view(frequency), view(matrix), places, sizes, len(layers) // 2, output, exact_bias, out.numpy())
    return out


def mlp_coefficients_grad(
    frequency: Tensor, matrix: Tensor, output: int, exact_bias: bool, layers: Sequence[Tensor], grad: Tensor
) -> list[Tensor]:
    grads = [torch.empty(layer.shape, dtype=layer.dtype) for layer in layers]
    held = [layer.contiguous() for layer in layers]
    sizes, places, targets = _sizes(held), _places(held), _places(grads)
    arguments = view(frequency), view(matrix), places, sizes, len(layers) // 2, output, exact_bias
    _backward(*arguments, view(grad), targets)
    return grads


def _sizes(layers: Sequence[Tensor]) -> tuple[int, ...]:
    """Inputs of the first layer and outputs of every layer, padded: compiled for one number of layers, not for each."""
    widths = [layer.size(0) for layer in layers[1::2]]
    return 1, *widths, *[0] * (MOST - len(widths))


def _places(layers: Sequence[Tensor]) -> tuple[int, ...]:
    """Where weight and bias of every layer are in memory."""
    return *(layer.data_ptr() for layer in layers), *[0] * (2 * MOST - len(layers))


@compiled(FUSED)
def _layer(hidden: Array, weight: Array, bias: Array, biased: bool, positive: bool) -> Array:
    """A linear map of rows, four inputs in one pass over the outputs; then a ReLU if ``positive``."""
    points, inputs, outputs = hidden.shape[0], hidden.shape[1], weight.shape[0]
    transposed = weight.T.copy()
    out = np.zeros((points, outputs), hidden.dtype)
    for n in range(points):
        row = out[n]
        if biased:
            for o in range(outputs):
                row[o] = bias[o]
        i = 0
        while i + 4 <= inputs:
            a, b, c, d = hidden[n, i], hidden[n, i + 1], hidden[n, i + 2], hidden[n, i + 3]
            w, x, y, z = transposed[i], transposed[i + 1], transposed[i + 2], transposed[i + 3]
            for o in range(outputs):
                row[o] = row[o] + a * w[o] + b * x[o] + c * y[o] + d * z[o]
            i += 4
        while i < inputs:
            for o in range(outputs):
                row[o] += hidden[n, i] * transposed[i, o]
            i += 1
        if positive:
            for o in range(outputs):
                row[o] = row[o] if row[o] > 0 or row[o] != row[o] else hidden.dtype.type(0)  # NaN stays
    return out


@compiled(FUSED)
def _layer_grad(back: Array, hidden: Array, weight: Array, to_weight: Array, to_bias: Array, biased: bool) -> Array:
    """Writes the gradients of a layer with input ``hidden``; returns that to the layer before, before its ReLU."""
    (points, inputs), outputs = hidden.shape, weight.shape[0]
    before = np.zeros((points, inputs), hidden.dtype)
    to_weight[:] = 0
    if biased:
        to_bias[:] = 0
    for n in range(points):
        row = before[n]
        for o in range(outputs):
            scale, target = back[n, o], to_weight[o]
            for i in range(inputs):
                target[i] += scale * hidden[n, i]
            for i in range(inputs):
                row[i] += scale * weight[o, i]
        if biased:
            for o in range(outputs):
                to_bias[o] += back[n, o]
        for i in range(inputs):
            row[i] = row[i] if hidden[n, i] > 0 or hidden[n, i] != hidden[n, i] else hidden.dtype.type(0)
    return before


@compiled(FUSED)
def _weight(places: Any, sizes: Any, layer: int, example: Array) -> Any:
    return carray(pointer(places[2 * layer], example), (sizes[layer + 1], sizes[layer]))


@compiled(FUSED)
def _bias(places: Any, sizes: Any, layer: int, example: Array) -> Any:
    return carray(pointer(places[2 * layer + 1], example), (sizes[layer + 1],))


@compiled(FUSED)
def _forward(
    frequency: Array, matrix: Array, places: Any, sizes: Any, layers: int, output: int, exact_bias: bool, out: Array
) -> None:
    response = (frequency - frequency.dtype.type(1)).reshape(-1, 1)
    for i in range(layers):
        last = i == layers - 1
        weight, bias = _weight(places, sizes, i, matrix), _bias(places, sizes, i, matrix)
        response = _layer(response, weight, bias, not (last and exact_bias), not last or output == 1)
    for head in range(out.shape[0]):
        row = out[head]
        row[:] = 0
        for n in range(matrix.shape[0]):
            for p in range(matrix.shape[1]):
                row[p] += response[n, head] * matrix[n, p]
        if exact_bias:
            row[0] += _bias(places, sizes, layers - 1, matrix)[head]


@compiled(FUSED)
def _backward(
    frequency: Array, matrix: Array, places: Any, sizes: Any, layers: int, output: int, exact_bias: bool, grad: Array,
    targets: Any,
) -> None:  # fmt: skip
    """Computes the hidden layers again, then goes back through them."""
    response = (frequency - frequency.dtype.type(1)).reshape(-1, 1)
    inputs = [response]
    for i in range(layers):
        last = i == layers - 1
        if last and output == 0:
            break
        weight, bias = _weight(places, sizes, i, matrix), _bias(places, sizes, i, matrix)
        response = _layer(response, weight, bias, True, True)
        inputs.append(response)
    back = np.zeros((matrix.shape[0], grad.shape[0]), matrix.dtype)
    for n in range(matrix.shape[0]):
        for head in range(grad.shape[0]):
            for p in range(matrix.shape[1]):
                back[n, head] += matrix[n, p] * grad[head, p]
            if output == 1 and response[n, head] <= 0:
                back[n, head] = 0
    for i in range(layers - 1, -1, -1):
        biased = i < layers - 1 or not exact_bias
        to_weight, to_bias = _weight(targets, sizes, i, matrix), _bias(targets, sizes, i, matrix)
        back = _layer_grad(back, inputs[i], _weight(places, sizes, i, matrix), to_weight, to_bias, biased)
        if not biased:
            for head in range(grad.shape[0]):
                to_bias[head] = grad[head, 0]
