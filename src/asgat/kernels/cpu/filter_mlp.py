"""CPU kernels of :func:`asgat.kernels.filter_mlp.mlp_coefficients`: one run after the other, each as if alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asgat.kernels.cpu.jit import FUSED, compiled, view

Array = np.ndarray[Any, Any]


def mlp_coefficients(
    frequency: Tensor, matrix: Tensor, output: int, exact_bias: bool, layers: Sequence[Tensor]
) -> Tensor:
    out = torch.empty(layers[0].size(0), layers[-1].size(-1), matrix.size(1), dtype=matrix.dtype)
    _forward(view(frequency), view(matrix), *_padded(layers), len(layers) // 2 - 1, output, exact_bias, out.numpy())
    return out


def mlp_coefficients_grad(
    frequency: Tensor, matrix: Tensor, output: int, exact_bias: bool, layers: Sequence[Tensor], grad: Tensor
) -> list[Tensor]:
    grads = [torch.empty(layer.shape, dtype=layer.dtype) for layer in layers]
    arguments = view(frequency), view(matrix), *_padded(layers), len(layers) // 2 - 1, output, exact_bias
    _backward(*arguments, view(grad), *_padded(grads))
    return grads


def _padded(layers: Sequence[Tensor]) -> list[Array]:
    """Weight and bias of the first layer, of a second and third if there are, and of the last: four layers."""
    arrays = [view(layer) for layer in layers]
    return [*arrays[:-2], *arrays[-2:] * (4 - len(arrays) // 2), *arrays[-2:]]


@compiled(FUSED)
def _layer(hidden: Array, weight: Array, bias: Array, biased: bool, positive: bool) -> Array:
    """A linear map of rows, four inputs in one pass over the outputs; then a ReLU if ``positive``."""
    points, inputs, outputs = hidden.shape[0], hidden.shape[1], weight.shape[0]
    turned = weight.T.copy()
    out = np.zeros((points, outputs), hidden.dtype)
    for n in range(points):
        row = out[n]
        if biased:
            for o in range(outputs):
                row[o] = bias[o]
        i = 0
        while i + 4 <= inputs:
            a, b, c, d = hidden[n, i], hidden[n, i + 1], hidden[n, i + 2], hidden[n, i + 3]
            w, x, y, z = turned[i], turned[i + 1], turned[i + 2], turned[i + 3]
            for o in range(outputs):
                row[o] = row[o] + a * w[o] + b * x[o] + c * y[o] + d * z[o]
            i += 4
        while i < inputs:
            for o in range(outputs):
                row[o] += hidden[n, i] * turned[i, o]
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
def _forward(
    frequency: Array, matrix: Array, w0: Array, b0: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array,
    b3: Array, hidden: int, output: int, exact_bias: bool, out: Array,
) -> None:  # fmt: skip
    x = (frequency - frequency.dtype.type(1)).reshape(-1, 1)
    for run in range(out.shape[0]):
        last = _layer(x, w0[run], b0[run], True, True)
        if hidden > 1:
            last = _layer(last, w1[run], b1[run], True, True)
        if hidden > 2:
            last = _layer(last, w2[run], b2[run], True, True)
        response = _layer(last, w3[run], b3[run], not exact_bias, output == 1)
        for head in range(out.shape[1]):
            row = out[run, head]
            row[:] = 0
            for n in range(matrix.shape[0]):
                for p in range(matrix.shape[1]):
                    row[p] += response[n, head] * matrix[n, p]
            if exact_bias:
                row[0] += b3[run, head]


@compiled(FUSED)
def _backward(
    frequency: Array, matrix: Array, w0: Array, b0: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array,
    b3: Array, hidden: int, output: int, exact_bias: bool, grad: Array, dw0: Array, db0: Array, dw1: Array,
    db1: Array, dw2: Array, db2: Array, dw3: Array, db3: Array,
) -> None:  # fmt: skip
    """Computes the hidden layers again, then goes back through them."""
    x = (frequency - frequency.dtype.type(1)).reshape(-1, 1)
    for run in range(grad.shape[0]):
        one = _layer(x, w0[run], b0[run], True, True)
        two = _layer(one, w1[run], b1[run], True, True) if hidden > 1 else one
        three = _layer(two, w2[run], b2[run], True, True) if hidden > 2 else two
        back = np.zeros((matrix.shape[0], grad.shape[1]), matrix.dtype)
        for n in range(matrix.shape[0]):
            for head in range(grad.shape[1]):
                for p in range(matrix.shape[1]):
                    back[n, head] += matrix[n, p] * grad[run, head, p]
        if output == 1:
            response = _layer(three, w3[run], b3[run], True, True)
            for n in range(response.shape[0]):
                for head in range(response.shape[1]):
                    if response[n, head] <= 0:
                        back[n, head] = 0
        back = _layer_grad(back, three, w3[run], dw3[run], db3[run], not exact_bias)
        if exact_bias:
            for head in range(grad.shape[1]):
                db3[run, head] = grad[run, head, 0]
        if hidden > 2:
            back = _layer_grad(back, two, w2[run], dw2[run], db2[run], True)
        if hidden > 1:
            back = _layer_grad(back, one, w1[run], dw1[run], db1[run], True)
        _layer_grad(back, x, w0[run], dw0[run], db0[run], True)
