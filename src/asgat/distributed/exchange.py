"""Rows of features that a rank gets from the ranks that own them."""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from asgat.distributed.process_group import Group
from asgat.kernels.once_differentiable import once_differentiable


def block_bounds(num_nodes: int, ranks: int, cost: Callable[[int], float] = float) -> npt.NDArray[np.int64]:
    """Where the blocks of nodes begin and end, [ranks + 1]: contiguous, and of the same cost up to that of a node.

    Args:
        cost: of the first v nodes, ascending in v; by default their number, so that sizes are at most one apart.
    """
    shares = [cost(num_nodes) * rank / ranks for rank in range(ranks)]
    inner = [bisect_left(range(num_nodes), share, key=cost) for share in shares]
    return np.array([*inner, num_nodes], dtype=np.int64)


class Exchange:
    r"""Gathers, for the nodes a rank attends to or has edges to, their rows from the ranks that own them.

    A rank owns the nodes ``bounds[rank]`` to ``bounds[rank + 1] - 1`` and names once the nodes of others it needs.
    Every call then sends each rank what it asked for and nothing else, and the gradient of the rows received goes back
    to their owners, who add it up: O(needed · F) numbers each way. x [own, F] becomes [own + needed, F], the rank's own
    rows first.

    Args:
        columns: numbers of nodes, in any order, own ones and repeated ones included.

    Attributes:
        needed: the nodes of others among them, ascending.
    """

    def __init__(self, group: Group, bounds: npt.NDArray[np.int64], columns: Tensor) -> None:
        self.group, self.num_nodes = group, int(bounds[-1])
        self.first, last = bounds[group.rank : group.rank + 2].tolist()
        self.own = last - self.first
        touched = torch.zeros(self.num_nodes, dtype=torch.bool)
        for part in torch.split(columns.cpu(), 1 << 22):  # a table has many, and an index takes 8 bytes for each
            touched[part.long()] = True
        touched[self.first : last] = False
        self.needed = touched.nonzero().squeeze(1)
        self.num_needed = len(self.needed)
        self._request(bounds)

    def _request(self, bounds: npt.NDArray[np.int64]) -> None:
        """Asks the owners for rows: ``rows`` are those that others asked this rank for."""
        counts = torch.searchsorted(self.needed, torch.from_numpy(bounds)).diff().to(self.group.device)
        asked = torch.empty_like(counts)
        dist.all_to_all_single(asked, counts)
        self.receives, self.sends = counts.tolist(), asked.tolist()
        wanted = asked.new_empty(sum(self.sends))
        dist.all_to_all_single(wanted, self.needed.to(self.group.device), self.sends, self.receives)
        self.rows = wanted - self.first

    def numbers(self) -> Tensor:
        """By node of the graph its row in what a call returns, int32; 0 for a node without one."""
        number = torch.zeros(self.num_nodes, dtype=torch.int32)
        number[self.first : self.first + self.own] = torch.arange(self.own, dtype=torch.int32)
        number[self.needed] = torch.arange(self.own, self.own + self.num_needed, dtype=torch.int32)
        return number.to(self.group.device)

    def __call__(self, x: Tensor) -> Tensor:
        out: Tensor = _Exchange.apply(x, self)  # type: ignore[no-untyped-call]
        return out

    def fill(self, rows: Tensor) -> None:
        """Writes the last ``num_needed`` rows of [own + num_needed, F], whose first ones are the rank's own."""
        sent = rows.index_select(0, self.rows)
        dist.all_to_all_single(rows[self.own :], sent, self.receives, self.sends)


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, exchange: Exchange) -> Tensor:
        ctx.exchange = exchange
        out = x.new_empty(exchange.own + exchange.num_needed, x.size(1))
        out[: exchange.own] = x
        exchange.fill(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        exchange = ctx.exchange
        back = grad.new_empty(exchange.rows.numel(), grad.size(1))
        dist.all_to_all_single(back, grad[exchange.own :].contiguous(), exchange.sends, exchange.receives)
        return grad[: exchange.own].clone().index_add_(0, exchange.rows, back), None
