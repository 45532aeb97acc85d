"""Rows of a layer's features between ranks, forward and, as gradients, back."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from asgat.distributed.process_group import Group


def block_bounds(num_nodes: int, ranks: int) -> npt.NDArray[np.int64]:
    """Where the blocks of nodes begin and end, [ranks + 1]: contiguous, their sizes at most one apart."""
    return np.arange(ranks + 1, dtype=np.int64) * num_nodes // ranks


class Exchange:
    r"""Gathers, for the nodes a rank attends to, their rows from the ranks that own them.

    A rank owns the nodes ``bounds[rank]`` to ``bounds[rank + 1] - 1`` and names once the nodes of others it needs.
    Every call then sends each rank what it asked for and nothing else, and the gradient of the rows received goes back
    to their owners, who add it up: O(needed · F) numbers each way.

    Args:
        group: the ranks.
        bounds: first nodes of the ranks' blocks, [ranks + 1].
        needed: nodes of other ranks, ascending.

    Shapes:
        x [own, F] → [own + needed, F], the rank's own rows first.
    """

    def __init__(self, group: Group, bounds: npt.NDArray[np.int64], needed: npt.NDArray[np.int64]) -> None:
        self.group, self.num_needed = group, len(needed)
        first, last = bounds[group.rank : group.rank + 2].tolist()
        self.own = last - first
        counts = torch.from_numpy(np.diff(np.searchsorted(needed, bounds))).to(group.device)
        asked = torch.empty_like(counts)
        dist.all_to_all_single(asked, counts)
        self.receives, self.sends = counts.tolist(), asked.tolist()
        wanted = asked.new_empty(sum(self.sends))
        dist.all_to_all_single(
            wanted, torch.from_numpy(np.ascontiguousarray(needed)).to(group.device), self.sends, self.receives
        )
        self.rows = wanted - first

    def __call__(self, x: Tensor) -> Tensor:
        out: Tensor = _Exchange.apply(x, self)  # type: ignore[no-untyped-call]
        return out

    def shared(self, weight: Tensor) -> Tensor:
        """A weight that all ranks hold, in double precision: its gradient is summed over them, and then rounded."""
        out: Tensor = _Shared.apply(weight, self.group)  # type: ignore[no-untyped-call]
        return out


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, exchange: Exchange) -> Tensor:
        ctx.exchange = exchange
        out = x.new_empty(exchange.own + exchange.num_needed, x.size(1))
        out[: exchange.own] = x
        sent = x.index_select(0, exchange.rows)
        dist.all_to_all_single(out[exchange.own :], sent, exchange.receives, exchange.sends)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        exchange = ctx.exchange
        back = grad.new_empty(exchange.rows.numel(), grad.size(1))
        dist.all_to_all_single(back, grad[exchange.own :].contiguous(), exchange.sends, exchange.receives)
        return grad[: exchange.own].clone().index_add_(0, exchange.rows, back), None


class _Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, group: Group) -> Tensor:
        ctx.group, ctx.dtype = group, weight.dtype
        return weight.to(torch.float64, copy=True)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.group.sum(grad.clone(memory_format=torch.contiguous_format)).to(ctx.dtype), None
