"""Bytes that operators and their scores take, as functions of numbers: nodes, orders, heads, candidates."""

from typing import NamedTuple

import torch

from asgat.tables.exact_builder import DEVICE_BYTES, WIDTH
from asgat.threads import available_threads

CACHE, BLOCK = 4 << 30, 1 << 30  # what a dense Chebyshev operator keeps, and works with at one time, at most
ARMA_ORDERS = 19  # terms of the numerator an ARMA operator fits


class OperatorSize(NamedTuple):
    """Bytes an operator holds, needs in addition while it is built, and needs for the scores of one layer."""

    held: int
    building: int
    scores: int = 0


def exact_size(nodes: int, heads: int) -> OperatorSize:
    """The eigenvectors of a graph."""
    pairs = nodes * nodes
    return OperatorSize(pairs * (8 + 4), 3 * pairs * 8, 3 * heads * pairs * 4)


def dense_size(nodes: int, orders: int, heads: int, all_pairs: bool) -> OperatorSize:
    """All orders of a Chebyshev operator, kept if they are small enough; with ``all_pairs`` no top-k is taken."""
    all_orders = 4 * orders * nodes * nodes
    held = all_orders + nodes * nodes if all_orders <= CACHE else 0
    per_row = nodes * ((orders + 3) * 4 + heads * 32)
    block = _block(nodes, per_row)
    scores = (0 if held else all_orders) + 2 * heads * nodes * nodes * 4 if all_pairs else block
    return OperatorSize(held, block if held else 0, scores)


def arma_size(nodes: int, orders: int, heads: int, all_pairs: bool) -> OperatorSize:
    """Conjugate gradients, and the matrices of the denominators where they are small enough."""
    per_row = nodes * heads * ((orders + 11) * 4 + 3 * 8)
    matrices = heads * nodes * nodes * 4
    working = nodes * per_row if all_pairs else _block(nodes, per_row)
    return OperatorSize(0, 0, working + (matrices if matrices <= BLOCK else 0))


def truncated_table_size(nodes: int, orders: int, candidates: int, item: int) -> OperatorSize:
    """A candidate table built from bounded neighbourhoods."""
    return OperatorSize(nodes * candidates * (4 + orders * item) + 9 * nodes, 64 * nodes + (64 << 20))


def exact_table_size(nodes: int, orders: int, per_node: float, item: int, device: torch.device) -> OperatorSize:
    """A candidate table built from all orders of every row; ``per_node`` candidates on average."""
    entries = round(nodes * per_node * (4 + orders * item))
    if device.type == "cpu":
        working = min(available_threads(), -(-nodes // WIDTH)) * nodes * (orders * 8 + 1) * WIDTH
    else:
        working = min(DEVICE_BYTES, nodes * nodes * orders * 8)
    # Its parts are concatenated at the end, which copies them.
    return OperatorSize(entries + nodes * (9 + 20 * orders), entries + working)


def _block(nodes: int, per_row: int) -> int:
    """Rows are worked on in blocks of bounded size, of one row at least."""
    return min(nodes * per_row, max(BLOCK, per_row))
