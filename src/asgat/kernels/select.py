"""The k best entries of every ragged row, scored on the fly."""

from typing import Any

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.kernels.backend import compute_dtype, kernel
from asgat.kernels.operator import Operator
from asgat.kernels.ragged_rows import RaggedRows


def select_top(
    value: Tensor, rows: RaggedRows, coefficients: Tensor, k: int, hint: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""The k largest scores

    .. math:: s^{(h)}_e = \sum_{p} coefficients_{hp} \, value_{ep}

    among the entries e of each row, for every head h: largest first, ties to the lower position. Rows with fewer than
    k entries are padded with position -1 and score -∞; an entry whose score is NaN or -∞ is never selected.

    The gradient goes to ``coefficients`` only, through the selected entries. ``value`` may be stored in half precision;
    sums are float32, or float64 if either input is. O(entries · P · H) time; not all scores are stored at once.

    Args:
        value: values of each entry, [entries, P].
        rows: the entries of each row.
        coefficients: weights of each head, [H, P].
        k: how many entries to select.
        hint: positions selected for similar coefficients, or an empty tensor; on the CPU this saves time and does not
            change the result, but positions are then of its type, which may be int32.

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
    elif hint.numel() and hint.shape != (coefficients.size(0), rows.num_rows, k):
        shape = [coefficients.size(0), rows.num_rows, k]
        raise AsgatError(f"hint must have shape {shape}, but has {list(hint.shape)}.")
    wide = coefficients.to(compute_dtype(value, coefficients))
    score, position = _select_top(value, rows.indptr, rows.order, rows.widths, rows.counts, wide, k, hint)
    narrow = coefficients.dtype == torch.float32 and score.dtype == torch.float64
    return position, score.to(coefficients.dtype) if narrow else score


def nodes_at(nodes: Tensor, position: Tensor) -> Tensor:
    """``nodes[position]`` for positions that :func:`select_top` returned; that of padding, -1, is the last node."""
    if nodes.device.type != "cpu" or not nodes.numel() or torch.compiler.is_compiling():
        return nodes[position]
    found: Tensor = _nodes_at(nodes, position)
    return found


def rescore(value: Tensor, coefficients: Tensor, position: Tensor, score: Tensor) -> Tensor:
    """Scores that :func:`select_top` returned for the same coefficients, with a new gradient to them, for a copy."""
    again: Tensor = _rescore(value, coefficients, position, score)
    return again


def _fake(value: Tensor, indptr: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    *_, coefficients, k, hint = others
    shape = coefficients.size(0), indptr.numel() - 1, k
    return coefficients.new_empty(shape), hint.new_empty(shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(inputs[0], output[1])
    ctx.set_materialize_grads(False)  # there is none to positions


def _backward(ctx: Any, grad: Tensor | None, grad_position: None) -> tuple[Tensor | None, ...]:
    value, position = ctx.saved_tensors
    to_coefficients = None if grad is None else _select_top_grad(value, position, grad)
    return None, None, None, None, None, to_coefficients, None, None


def _rescore_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], inputs[2])


def _rescore_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    value, position = ctx.saved_tensors
    return None, _select_top_grad(value, position, grad), None, None


_nodes_at = kernel("select", "nodes_at")
_select_top_grad = Operator(
    "asgat::select_top_grad",
    "(Tensor value, Tensor position, Tensor grad) -> Tensor",
    kernel("select", "select_top_grad"),
    lambda value, position, grad: grad.new_empty(position.size(0), value.size(1)),
)
_select_top = Operator(
    "asgat::select_top",
    "(Tensor value, Tensor indptr, Tensor order, SymInt[] widths, SymInt[] counts, Tensor coefficients, SymInt k,"
    " Tensor hint) -> (Tensor, Tensor)",
    kernel("select", "select_top"),
    _fake,
    _setup_context,
    _backward,
)
_rescore = Operator(
    "asgat::rescore",
    "(Tensor value, Tensor coefficients, Tensor position, Tensor score) -> Tensor",
    lambda value, coefficients, position, score: score.clone(),
    lambda value, coefficients, position, score: torch.empty_like(score),
    _rescore_context,
    _rescore_backward,
)
