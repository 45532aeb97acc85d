from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from tests.distributed.ranks import free_port
from torch import multiprocessing

from asgat.distributed.exchange import Exchange, block_bounds
from asgat.distributed.process_group import Group


@given(st.integers(0, 100), st.integers(1, 9))
def test_blocks_cover_all_nodes_and_are_of_one_size(nodes, ranks):
    bounds = block_bounds(nodes, ranks)
    sizes = np.diff(bounds)
    assert (bounds[0], bounds[-1]) == (0, nodes)
    assert sizes.max() - sizes.min() <= 1


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 9))
def test_blocks_cost_the_same_up_to_a_node(costs, ranks):
    before = np.concatenate([[0], np.cumsum(costs)])
    bounds = block_bounds(len(costs), ranks, lambda v: float(before[v]))
    assert (bounds[0], bounds[-1]) == (0, len(costs))
    assert (np.diff(bounds) >= 0).all()
    assert np.diff(before[bounds]).max() <= before[-1] / ranks + max(costs)


def check(rank, ranks, port):
    """Rows arrive where they were asked for, and what they count for comes back."""
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    group = Group(rank, ranks, torch.device("cpu"))
    bounds = np.array([0, 4, 7, 7])[: ranks + 1]  # a third rank owns nothing
    nodes = torch.arange(7.0, dtype=torch.float64)
    whole = torch.stack([nodes, nodes**2], dim=1).requires_grad_()
    first, last = bounds[rank], bounds[rank + 1]
    others = np.array([u for u in range(7) if not first <= u < last])
    needed = others[:: rank + 1]
    weight = torch.arange(1.0, 1 + (last - first) + len(needed), dtype=torch.float64).unsqueeze(1) * (rank + 1)
    exchange = Exchange(group, bounds, torch.from_numpy(np.concatenate([needed[::-1], needed, np.arange(first, last)])))
    assert exchange.needed.tolist() == needed.tolist()
    assert exchange.numbers()[np.concatenate([np.arange(first, last), needed])].tolist() == list(range(len(weight)))
    own = whole.detach()[first:last].clone().requires_grad_()
    gathered = exchange(own)
    assert torch.equal(gathered, whole[np.concatenate([np.arange(first, last), needed])])
    (gathered * weight).sum().backward()
    # The same sum in one place: every rank's weights, added up node by node.
    everywhere: list[Any] = [None] * ranks
    dist.all_gather_object(everywhere, (np.concatenate([np.arange(first, last), needed]), weight))
    total = torch.zeros(7, 1, dtype=torch.float64)
    for index, part in everywhere:
        total.index_add_(0, torch.from_numpy(index), part)
    assert own.grad is not None
    assert torch.equal(own.grad, total[first:last].expand(-1, 2))
    assert group.sum(torch.tensor([1.0])).item() == ranks
    assert group.gather(rank) == list(range(ranks))
    assert group.from_first(lambda: "said") == "said"
    dist.destroy_process_group()


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_rows_and_their_gradients_travel(ranks):
    spawn: Any = multiprocessing.spawn  # type: ignore[attr-defined]
    spawn(check, (ranks, free_port()), nprocs=ranks)
