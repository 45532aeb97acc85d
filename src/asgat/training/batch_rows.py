"""Which rows of a layer's input some rows of its output need."""

import torch
from torch import Tensor

from asgat.nn.asgat_conv import ASGATConv
from asgat.tables import RowOperator


class BatchRows:
    """Takes rows of an operator, and numbers the nodes of a batch for it."""

    def __init__(self, operator: RowOperator) -> None:
        self.operator = operator
        self.number = torch.zeros(operator.num_nodes, dtype=torch.int32, device=operator.device)

    def attended(self, conv: ASGATConv, rows: Tensor) -> tuple[RowOperator, Tensor, Tensor]:
        """The operator of some rows, the nodes that a layer on it attends to there, ascending, and how often."""
        assert conv.k is not None
        operator = self.operator.take(rows)
        index, score = operator.top(conv.filter, conv.k)
        return operator, *torch.unique(index[score > -torch.inf].long(), return_counts=True)

    def renumbered(self, operator: RowOperator, order: Tensor) -> RowOperator:
        """The operator with its nodes numbered by their place in ``order``, which holds all it attends to."""
        self.number[order] = torch.arange(len(order), dtype=torch.int32, device=order.device)
        renumbered = operator.renumbered(self.number, len(order))
        self.number[order] = 0  # padding of short rows names any node, with weight 0, whose number must be valid
        return renumbered


def most_frequent(nodes: Tensor, times: Tensor, room: int) -> Tensor:
    """The ``room`` nodes that occur most often, ascending; ties go to the lower node. ``nodes`` is ascending."""
    if len(nodes) <= room:
        return nodes
    best = torch.sort(times, descending=True, stable=True).indices
    return nodes[best[: max(0, room)]].sort().values


def without(nodes: Tensor, times: Tensor, excluded: Tensor) -> tuple[Tensor, Tensor]:
    """The nodes that are not ``excluded``, and how often they occur."""
    other = ~torch.isin(nodes, excluded)
    return nodes[other], times[other]
