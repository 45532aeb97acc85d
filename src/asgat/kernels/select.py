"""The k best entries of every ragged row, scored on the fly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.kernels.backend import compute_dtype, kernels
from asgat.kernels.operator import Operator
from asgat.kernels.ragged_rows import RaggedRows


def select_top(
    value: Tensor, rows: RaggedRows, coefficients: Tensor, k: int, hint: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""The k largest scores

    .. math:: s^{(h)}_e = \sum_{p} coefficients_{hp} \, value_{ep}

    among the entries e of each row, for every head h: largest first, ties to the lower position. Rows with fewer than
    k entries are filled up with position -1 and score -∞; an entry whose score is NaN or -∞ is never selected.

    The gradient goes to ``coefficients``, through the selected entries, and to nothing else. ``value`` may be stored
    in half precision; sums are float32, or float64 if either input is.

    Cost: O(entries · P · H) time, plus O(H · k) for each time an entry enters a row's best; memory is the two outputs
    and, for the gradient, O(H · P). The scores of all entries are never held.

    Args:
        value: what each entry holds, [entries, P].
        rows: which entries make up which row.
        coefficients: weights of each head, [H, P].
        k: how many entries to select.
        hint: what was selected for similar coefficients; the CPU is faster for it, and the result the same.

    Shapes:
        - **output**: position [H, N, k], int64, and score [H, N, k] in the dtype of ``coefficients``

    Example:
        >>> rows = RaggedRows(torch.tensor([0, 3, 4]))
        >>> position, score = select_top(torch.tensor([[1.0], [3.0], [2.0], [5.0]]), rows, torch.ones(1, 1), k=2)
        >>> position.tolist(), score.tolist()
        ([[[1, 2], [3, -1]]], [[[3.0, 2.0], [5.0, -inf]]])
    """
    if value.dim() != 2 or coefficients.dim() != 2 or value.size(1) != coefficients.size(1):
        raise AsgatError(
            f"select_top needs value [entries, P] and coefficients [H, P], but they are {list(value.shape)} and "
            f"{list(coefficients.shape)}."
        )
    if value.size(0) != rows.num_entries:
        raise AsgatError(f"value has {value.size(0)} rows, but the bounds end at {rows.num_entries}.")
    if k < 1:
        raise AsgatError(f"k must be at least 1, but is {k}.")
    if hint is None:
        hint = rows.indptr.new_empty(0, 0, 0)
    elif hint.shape != (coefficients.size(0), rows.num_rows, k):
        raise AsgatError(f"hint has shape {list(hint.shape)}, but {[coefficients.size(0), rows.num_rows, k]} was due.")
    wide = coefficients.to(compute_dtype(value, coefficients))
    score, position = _select_top(value, rows.indptr, rows.order, rows.widths, rows.counts, wide, k, hint)
    narrow = coefficients.dtype == torch.float32 and score.dtype == torch.float64
    return position, score.to(coefficients.dtype) if narrow else score


def rescore(value: Tensor, coefficients: Tensor, position: Tensor, score: Tensor) -> Tensor:
    """Scores that :func:`select_top` gave for the same coefficients, again with a gradient to these.

    Forward it costs a copy: what was selected and how it scored is known.
    """
    again: Tensor = _rescore(value, coefficients.to(score.dtype), position, score)
    return again


def _forward(
    value: Tensor,
    indptr: Tensor,
    order: Tensor,
    widths: Sequence[int],
    counts: Sequence[int],
    coefficients: Tensor,
    k: int,
    hint: Tensor,
) -> tuple[Tensor, Tensor]:
    out: tuple[Tensor, Tensor] = kernels("select", value).select_top(
        value, indptr, order, widths, counts, coefficients, k, hint
    )
    return out


def _fake(
    value: Tensor,
    indptr: Tensor,
    order: Tensor,
    widths: Sequence[int],
    counts: Sequence[int],
    coefficients: Tensor,
    k: int,
    hint: Tensor,
) -> tuple[Tensor, Tensor]:
    shape = coefficients.size(0), indptr.numel() - 1, k
    return coefficients.new_empty(shape), indptr.new_empty(shape)


def _again(value: Tensor, coefficients: Tensor, position: Tensor, score: Tensor) -> Tensor:
    return score.clone()


def _to_coefficients(value: Tensor, position: Tensor, grad: Tensor) -> Tensor:
    out: Tensor = kernels("select", value).select_top_grad(value, position, grad)
    return out


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(inputs[0], output[1])
    ctx.set_materialize_grads(False)  # positions have none


def _backward(ctx: Any, grad: Tensor | None, grad_position: None) -> tuple[Tensor | None, ...]:
    value, position = ctx.saved_tensors
    to_coefficients = None if grad is None else _select_top_grad(value, position, grad)
    return None, None, None, None, None, to_coefficients, None, None


def _rescore_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], inputs[2])


def _rescore_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    value, position = ctx.saved_tensors
    return None, _select_top_grad(value, position, grad), None, None


_select_top_grad = Operator(
    "asgat::select_top_grad",
    _to_coefficients,
    lambda value, position, grad: grad.new_empty(position.size(0), value.size(1)),
)
_select_top = Operator("asgat::select_top", _forward, _fake, _setup_context, _backward)
_rescore = Operator(
    "asgat::rescore",
    _again,
    lambda value, coefficients, position, score: torch.empty_like(score),
    _rescore_context,
    _rescore_backward,
)
