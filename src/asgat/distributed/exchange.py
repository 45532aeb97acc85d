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
    to their owners, who add it up: O(needed · F) numbers each way. With ``everything`` all ranks send all their rows to
    all others, O(N · F): simpler, and what a backend without all-to-all falls back to.

    Args:
        group: the ranks.
        bounds: first nodes of the ranks' blocks, [ranks + 1].
        needed: nodes of other ranks, ascending.
        everything: exchange all rows instead of those that are needed.

    Shapes:
        x [own, F] → [own + needed, F], the rank's own rows first.
    """

    def __init__(
        self, group: Group, bounds: npt.NDArray[np.int64], needed: npt.NDArray[np.int64], everything: bool = False
    ) -> None:
        self.group = group
        self.sizes = np.diff(bounds).tolist()
        self.own = self.sizes[group.rank]
        self.receives = np.diff(np.searchsorted(needed, bounds)).tolist()
        asked = torch.from_numpy(np.ascontiguousarray(needed)).to(group.device)
        counts = torch.tensor(self.receives, device=group.device)
        sends = torch.empty_like(counts)
        self.everything = everything
        if not everything:
            try:
                dist.all_to_all_single(sends, counts)
                self.sends = sends.tolist()
                wanted = asked.new_empty(int(sends.sum()))
                dist.all_to_all_single(wanted, asked, self.sends, self.receives)
                self.rows = wanted - int(bounds[group.rank])
            except RuntimeError as error:
                if "support" not in str(error):
                    raise
                self.everything = True
        self.place = asked - torch.from_numpy(np.repeat(bounds[:-1], self.receives)).to(group.device)
        owner = torch.from_numpy(np.repeat(np.arange(group.size), self.receives)).to(group.device)
        self.place += owner * max(self.sizes, default=0)  # in the blocks of all ranks, padded to the largest

    @property
    def num_needed(self) -> int:
        return int(self.place.numel())

    def __call__(self, x: Tensor) -> Tensor:
        out: Tensor = _Exchange.apply(x, self)  # type: ignore[no-untyped-call]
        return out

    def shared(self, weight: Tensor) -> Tensor:
        """A weight that all ranks hold, in double precision: its gradient is summed over them, and then rounded."""
        out: Tensor = _Shared.apply(weight, self.group)  # type: ignore[no-untyped-call]
        return out

    def forward(self, x: Tensor) -> Tensor:
        out = x.new_empty(self.own + self.num_needed, x.size(1))
        out[: self.own] = x
        if self.everything:
            blocks = x.new_zeros(self.group.size, max(self.sizes), x.size(1))
            padded = x.new_zeros(max(self.sizes), x.size(1))
            padded[: self.own] = x
            dist.all_gather(list(blocks.unbind()), padded)
            torch.index_select(blocks.flatten(0, 1), 0, self.place, out=out[self.own :])
        else:
            dist.all_to_all_single(out[self.own :], x.index_select(0, self.rows), self.receives, self.sends)
        return out

    def backward(self, grad: Tensor) -> Tensor:
        own, theirs = grad[: self.own].clone(), grad[self.own :].contiguous()
        if self.everything:
            blocks = grad.new_zeros(self.group.size * max(self.sizes), grad.size(1)).index_add_(0, self.place, theirs)
            self.group.sum(blocks)
            first = self.group.rank * max(self.sizes)
            return own + blocks[first : first + self.own]
        back = grad.new_empty(self.rows.numel(), grad.size(1))
        dist.all_to_all_single(back, theirs, self.sends, self.receives)
        return own.index_add_(0, self.rows, back)


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, exchange: Exchange) -> Tensor:
        ctx.exchange = exchange
        return exchange.forward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.exchange.backward(grad), None


class _Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, group: Group) -> Tensor:
        ctx.group, ctx.dtype = group, weight.dtype
        return weight.to(torch.float64, copy=True)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.group.sum(grad.clone(memory_format=torch.contiguous_format)).to(ctx.dtype), None
