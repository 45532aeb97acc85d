"""For how many rows a training could prove that only the M best candidates of an earlier scoring can be selected.

python benchmarks/margins.py --datasets cora,chameleon --epochs 100

Since a row was last scored in full, the difference of two of its scores has changed by at most Σ |Δc_i| (max T_i -
min T_i) over its candidates, and by at most 2 ‖Δc‖ times the radius of their values. Where the k-th best led the one
after the M-th by more, no other candidate can be among the k best now; with M = k nothing is scored. Prints the
share of rows and heads of every layer over ten epochs each. Rows with less than k candidates count as not proven.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from asgat.bench.epoch import published_config
from asgat.data import load_dataset
from asgat.tables.row_operator import RowOperator
from asgat.training.program import EagerEpochs, one_run
from asgat.training.runner import make_task

ROWS = 400  # drawn at random
FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0)  # M / k


class Watched:
    """Some rows of a table, and what margins would have allowed for every filter."""

    def __init__(self, operator: RowOperator) -> None:
        table = operator.table
        rows = torch.randperm(table.num_nodes, generator=torch.Generator().manual_seed(0))[:ROWS]
        size = table.indptr.diff()[rows]
        column = torch.arange(int(size.max()))
        self.there = column < size.unsqueeze(1)
        self.value = table.value[(table.indptr[rows].unsqueeze(1) + column).where(self.there, 0)].float()
        self.value = self.value.where(self.there.unsqueeze(-1), self.value[:, :1])  # the first candidate again
        self.spread = self.value.amax(1) - self.value.amin(1)
        centre = self.value.mean(1, keepdim=True)
        self.radius = (self.value - centre).norm(dim=-1).amax(1)
        self.last: dict[Any, tuple[Tensor, Tensor]] = {}  # of a filter: coefficients and leads of each row and M
        self.shares: dict[Any, list[Tensor]] = defaultdict(list)

    def select(self, filter: Any, coefficients: Tensor, k: int) -> None:
        score = torch.einsum("rwp,hp->rhw", self.value, coefficients)
        best = score.where(self.there.unsqueeze(1), -torch.inf).sort(dim=-1, descending=True).values
        best = torch.cat([best, torch.full((*best.shape[:2], 4 * k + 1), -torch.inf)], dim=-1)
        lead = torch.stack([best[..., k - 1] - best[..., int(factor * k)] for factor in FACTORS], dim=-1)
        lead = lead.nan_to_num(nan=0.0, posinf=torch.inf)  # NaN in rows with less than k candidates
        now = coefficients.expand(len(FACTORS), len(score), *coefficients.shape).movedim(0, 2)  # [rows, heads, M, P]
        if filter in self.last:
            then, allowed = self.last[filter]
            change = now - then
            by_order = (change.abs() * self.spread[:, None, None]).sum(-1)
            moved = torch.minimum(by_order, 2 * change.norm(dim=-1) * self.radius[:, None, None])
            proven = moved < allowed
            self.shares[filter].append(proven.float().mean(dim=(0, 1)))
            now, lead = then.where(proven.unsqueeze(-1), now), allowed.where(proven, lead)
        self.last[filter] = now, lead


def measure(name: str, epochs: int) -> None:
    data, config = load_dataset(name), published_config(name)
    task = make_task(data, "asgat-cheb", config, torch.device("cpu"))
    watched, top_each = Watched(task.inputs[1]), RowOperator.top_each

    def watching(self: RowOperator, filters: Sequence[Any], k: int, *others: Any) -> Any:
        if not torch.is_grad_enabled():  # an evaluation; the next training step has the same coefficients
            for filter in filters:
                watched.select(filter, self.coefficients(filter), k)
        return top_each(self, filters, k, *others)

    RowOperator.top_each = watching  # type: ignore[method-assign]
    try:
        program = EagerEpochs(one_run(task, data.splits[0], config))
        for _ in range(epochs):
            program.run(1)
    finally:
        RowOperator.top_each = top_each  # type: ignore[method-assign]
    print(f"\n| {name}, epochs | layer | {' | '.join(f'M = {factor:g} k' for factor in FACTORS)} |")
    print("|---" * (2 + len(FACTORS)) + "|")
    for layer, shares in enumerate(watched.shares.values()):
        for first in range(0, len(shares), 10):
            mean = torch.stack(shares[first : first + 10]).mean(0)
            print(f"| from {first} | {layer + 1} | {' | '.join(f'{100 * share:.0f} %' for share in mean.tolist())} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--datasets", default="texas,cora,chameleon")
    parser.add_argument("--epochs", type=int, default=60)
    arguments = parser.parse_args()
    for name in arguments.datasets.split(","):
        measure(name, arguments.epochs)


if __name__ == "__main__":
    main()
