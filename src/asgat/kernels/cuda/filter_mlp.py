"""CUDA kernels of :func:`asgat.kernels.filter_mlp.mlp_coefficients`: one program does all."""

from collections.abc import Sequence

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor


def mlp_coefficients(
    frequency: Tensor, matrix: Tensor, output: int, exact_bias: bool, layers: Sequence[Tensor]
) -> Tensor:
    out = matrix.new_empty(layers[-1].size(0), matrix.size(1))
    with torch.cuda.device(matrix.get_device()):
        _forward_kernel[(1,)](*_arguments(frequency, matrix, layers), out, **_sizes(
            frequency, matrix, output, exact_bias, layers
        ))  # fmt: skip
    return out


def mlp_coefficients_grad(
    frequency: Tensor, matrix: Tensor, output: int, exact_bias: bool, layers: Sequence[Tensor], grad: Tensor
) -> list[Tensor]:
    grads = [torch.empty_like(layer, memory_format=torch.contiguous_format) for layer in layers]
    with torch.cuda.device(matrix.get_device()):
        _backward_kernel[(1,)](
            *_arguments(frequency, matrix, layers), grad.contiguous(), *_padded(grads), **_sizes(
                frequency, matrix, output, exact_bias, layers
            )
        )  # fmt: skip
    return grads


def _padded(layers: Sequence[Tensor]) -> list[Tensor]:
    """Weight and bias of the first layer, of a second and third if there are, and of the last: four layers."""
    first, *between, last = [tuple(layers[i : i + 2]) for i in range(0, len(layers), 2)]
    return [part for layer in (first, *between, *[last] * (2 - len(between)), last) for part in layer]


def _arguments(frequency: Tensor, matrix: Tensor, layers: Sequence[Tensor]) -> list[Tensor]:
    return [frequency.contiguous(), matrix.contiguous(), *(layer.contiguous() for layer in _padded(layers))]


def _sizes(
    frequency: Tensor, matrix: Tensor, output: int, exact_bias: bool, layers: Sequence[Tensor]
) -> dict[str, int | bool]:
    widths = [layer.size(0) for layer in layers[:-2:2]]  # of the hidden layers
    first, second, third = widths + [1] * (3 - len(widths))
    held = {
        "POINTS": frequency.numel(), "ORDERS": matrix.size(1), "HEADS": layers[-1].size(0), "FIRST": first,
        "SECOND": second, "THIRD": third,
    }  # fmt: skip
    tiles = {f"{name}_TILE": max(16, triton.next_power_of_2(size)) for name, size in held.items()}
    return {**held, **tiles, "HIDDEN": len(widths), "OUTPUT": output, "EXACT_BIAS": exact_bias}


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _vector(source: tl.tensor, SIZE: tl.constexpr, TILE: tl.constexpr) -> tl.tensor:
    """Some numbers, padded with zeros."""
    place = tl.arange(0, TILE)
    return tl.load(source + place, mask=place < SIZE, other=0.0)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _tile(
    source: tl.tensor, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ROW_TILE: tl.constexpr, COLUMN_TILE: tl.constexpr
) -> tl.tensor:
    """A matrix, padded with zeros."""
    row, column = tl.arange(0, ROW_TILE)[:, None], tl.arange(0, COLUMN_TILE)[None, :]
    return tl.load(source + row * COLUMNS + column, mask=(row < ROWS) & (column < COLUMNS), other=0.0)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _store_vector(target: tl.tensor, held: tl.tensor, SIZE: tl.constexpr, TILE: tl.constexpr) -> None:
    place = tl.arange(0, TILE)
    tl.store(target + place, held, mask=place < SIZE)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _store_tile(
    target: tl.tensor, held: tl.tensor, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ROW_TILE: tl.constexpr,
    COLUMN_TILE: tl.constexpr,
) -> None:  # fmt: skip
    row, column = tl.arange(0, ROW_TILE)[:, None], tl.arange(0, COLUMN_TILE)[None, :]
    tl.store(target + row * COLUMNS + column, held, mask=(row < ROWS) & (column < COLUMNS))


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _product(left: tl.tensor, right: tl.tensor) -> tl.tensor:
    return tl.dot(left, right, input_precision="ieee")


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _hidden_layer(
    hidden: tl.tensor, weight: tl.tensor, bias: tl.tensor, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr,
    INPUT_TILE: tl.constexpr, OUTPUT_TILE: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    held = _tile(weight, OUTPUTS, INPUTS, OUTPUT_TILE, INPUT_TILE)
    return tl.maximum(_product(hidden, tl.trans(held)) + _vector(bias, OUTPUTS, OUTPUT_TILE)[None, :], 0.0)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _hidden_layer_grad(
    grad: tl.tensor, hidden: tl.tensor, weight: tl.tensor, to_weight: tl.tensor, to_bias: tl.tensor,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, INPUT_TILE: tl.constexpr, OUTPUT_TILE: tl.constexpr,
    BIAS: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Stores the gradients of a layer with input ``hidden``; returns that to the layer before its ReLU."""
    if BIAS:
        _store_vector(to_bias, tl.sum(grad, axis=0), OUTPUTS, OUTPUT_TILE)
    _store_tile(to_weight, _product(tl.trans(grad), hidden), OUTPUTS, INPUTS, OUTPUT_TILE, INPUT_TILE)
    held = _tile(weight, OUTPUTS, INPUTS, OUTPUT_TILE, INPUT_TILE)
    return tl.where(hidden > 0.0, _product(grad, held), 0.0)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _forward_kernel(
    frequency: tl.tensor, matrix: tl.tensor, w0: tl.tensor, b0: tl.tensor, w1: tl.tensor, b1: tl.tensor,
    w2: tl.tensor, b2: tl.tensor, w3: tl.tensor, b3: tl.tensor, out: tl.tensor,
    POINTS: tl.constexpr, ORDERS: tl.constexpr, HEADS: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr,
    THIRD: tl.constexpr, POINTS_TILE: tl.constexpr, ORDERS_TILE: tl.constexpr, HEADS_TILE: tl.constexpr,
    FIRST_TILE: tl.constexpr, SECOND_TILE: tl.constexpr, THIRD_TILE: tl.constexpr, HIDDEN: tl.constexpr,
    OUTPUT: tl.constexpr, EXACT_BIAS: tl.constexpr,
) -> None:  # fmt: skip
    x = _vector(frequency, POINTS, POINTS_TILE) - 1.0  # padded points are multiplied by rows of zeros at the end
    w, b = _vector(w0, FIRST, FIRST_TILE), _vector(b0, FIRST, FIRST_TILE)
    one = tl.maximum(x[:, None] * w[None, :] + b[None, :], 0.0)
    bias = _vector(b3, HEADS, HEADS_TILE)
    if HIDDEN == 1:
        last = _tile(w3, HEADS, FIRST, HEADS_TILE, FIRST_TILE)
        response = _product(one, tl.trans(last))
    else:
        two = _hidden_layer(one, w1, b1, FIRST, SECOND, FIRST_TILE, SECOND_TILE)
        if HIDDEN == 2:
            last = _tile(w3, HEADS, SECOND, HEADS_TILE, SECOND_TILE)
            response = _product(two, tl.trans(last))
        else:
            three = _hidden_layer(two, w2, b2, SECOND, THIRD, SECOND_TILE, THIRD_TILE)
            last = _tile(w3, HEADS, THIRD, HEADS_TILE, THIRD_TILE)
            response = _product(three, tl.trans(last))
    if not EXACT_BIAS:
        response += bias[None, :]
    if OUTPUT == 1:
        response = tl.maximum(response, 0.0)
    transform = _tile(matrix, POINTS, ORDERS, POINTS_TILE, ORDERS_TILE)
    coefficients = _product(tl.trans(response), transform)
    if EXACT_BIAS:
        coefficients += tl.where(tl.arange(0, ORDERS_TILE)[None, :] == 0, bias[:, None], 0.0)
    _store_tile(out, coefficients, HEADS, ORDERS, HEADS_TILE, ORDERS_TILE)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _backward_kernel(
    frequency: tl.tensor, matrix: tl.tensor, w0: tl.tensor, b0: tl.tensor, w1: tl.tensor, b1: tl.tensor,
    w2: tl.tensor, b2: tl.tensor, w3: tl.tensor, b3: tl.tensor, grad: tl.tensor,
    dw0: tl.tensor, db0: tl.tensor, dw1: tl.tensor, db1: tl.tensor, dw2: tl.tensor, db2: tl.tensor, dw3: tl.tensor,
    db3: tl.tensor,
    POINTS: tl.constexpr, ORDERS: tl.constexpr, HEADS: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr,
    THIRD: tl.constexpr, POINTS_TILE: tl.constexpr, ORDERS_TILE: tl.constexpr, HEADS_TILE: tl.constexpr,
    FIRST_TILE: tl.constexpr, SECOND_TILE: tl.constexpr, THIRD_TILE: tl.constexpr, HIDDEN: tl.constexpr,
    OUTPUT: tl.constexpr, EXACT_BIAS: tl.constexpr,
) -> None:  # fmt: skip
    """Computes the hidden layers again, then goes back through them."""
    x = _vector(frequency, POINTS, POINTS_TILE) - 1.0
    w, b = _vector(w0, FIRST, FIRST_TILE), _vector(b0, FIRST, FIRST_TILE)
    one = tl.maximum(x[:, None] * w[None, :] + b[None, :], 0.0)
    to_coefficients = _tile(grad, HEADS, ORDERS, HEADS_TILE, ORDERS_TILE)
    transform = _tile(matrix, POINTS, ORDERS, POINTS_TILE, ORDERS_TILE)
    back = _product(transform, tl.trans(to_coefficients))  # to the responses [points, heads]; 0 at padded points
    bias = _vector(b3, HEADS, HEADS_TILE)
    if HIDDEN == 1:
        if OUTPUT == 1:
            last = _tile(w3, HEADS, FIRST, HEADS_TILE, FIRST_TILE)
            back = tl.where(_product(one, tl.trans(last)) + bias[None, :] > 0.0, back, 0.0)
        to_one = _hidden_layer_grad(
            back, one, w3, dw3, db3,
            FIRST, HEADS, FIRST_TILE, HEADS_TILE, not EXACT_BIAS,
        )  # fmt: skip
    else:
        two = _hidden_layer(one, w1, b1, FIRST, SECOND, FIRST_TILE, SECOND_TILE)
        if HIDDEN == 2:
            if OUTPUT == 1:
                last = _tile(w3, HEADS, SECOND, HEADS_TILE, SECOND_TILE)
                back = tl.where(_product(two, tl.trans(last)) + bias[None, :] > 0.0, back, 0.0)
            to_two = _hidden_layer_grad(
                back, two, w3, dw3, db3,
                SECOND, HEADS, SECOND_TILE, HEADS_TILE, not EXACT_BIAS,
            )  # fmt: skip
        else:
            three = _hidden_layer(two, w2, b2, SECOND, THIRD, SECOND_TILE, THIRD_TILE)
            if OUTPUT == 1:
                last = _tile(w3, HEADS, THIRD, HEADS_TILE, THIRD_TILE)
                back = tl.where(_product(three, tl.trans(last)) + bias[None, :] > 0.0, back, 0.0)
            to_three = _hidden_layer_grad(
                back, three, w3, dw3, db3,
                THIRD, HEADS, THIRD_TILE, HEADS_TILE, not EXACT_BIAS,
            )  # fmt: skip
            to_two = _hidden_layer_grad(
                to_three, two, w2, dw2, db2,
                SECOND, THIRD, SECOND_TILE, THIRD_TILE, True,
            )  # fmt: skip
        to_one = _hidden_layer_grad(
            to_two, one, w1, dw1, db1,
            FIRST, SECOND, FIRST_TILE, SECOND_TILE, True,
        )  # fmt: skip
    if EXACT_BIAS:
        at_zero = tl.where(tl.arange(0, ORDERS_TILE)[None, :] == 0, to_coefficients, 0.0)
        _store_vector(db3, tl.sum(at_zero, axis=1), HEADS, HEADS_TILE)
    _store_vector(dw0, tl.sum(to_one * x[:, None], axis=0), FIRST, FIRST_TILE)
    _store_vector(db0, tl.sum(to_one, axis=0), FIRST, FIRST_TILE)
