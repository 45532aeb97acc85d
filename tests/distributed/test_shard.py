import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from tests.distributed.ranks import free_port
from torch import multiprocessing

from asgat.data.synthetic import contextual_sbm
from asgat.distributed.process_group import Group
from asgat.distributed.shard import Exchange, InMemory, block_bounds, build_shard, check_distributed, shard_features
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.from_config import make_operator
from asgat.nn.registry import make_config

DATA = contextual_sbm(num_nodes=60, num_features=4, seed=1)
PLAIN = dict(form="table", order=4, heads=2, hidden=4, k=3, candidates=6)
CPU = torch.device("cpu")


def config(model="asgat-cheb", **changes) -> Any:
    return make_config(model, **{**PLAIN, **changes})


@given(st.integers(0, 59), st.integers(0, 60))
def test_a_block_of_a_split_is_that_part_of_it(first, size):
    source = InMemory(DATA, config())
    last = min(60, first + size)
    for name, nodes in source.split(2, first, last).parts().items():
        whole = DATA.splits[2].parts()[name]
        assert (nodes + first).tolist() == [v for v in whole if first <= v < last]


@pytest.fixture
def lonely(monkeypatch):
    """The second of three ranks, as far as building goes: nothing is exchanged."""
    monkeypatch.setattr(
        "asgat.distributed.shard.Exchange",
        lambda group, bounds, needed: SimpleNamespace(needed=needed, shared=torch.Tensor.double),
    )
    return Group(1, 3, CPU)


@pytest.mark.parametrize("builder", ["exact", "truncated"])
def test_a_rank_holds_its_rows_of_the_table_under_numbers_of_its_own(lonely, builder):
    settings = config(builder=builder)
    shard = build_shard(InMemory(DATA, settings), "asgat-cheb", settings, lonely)
    operator: Any = make_operator(DATA.graph, settings)
    whole = operator.table.take(torch.arange(20, 40))
    exchange: Any = shard.exchange
    needed = exchange.needed
    table = shard.operator.table
    assert (shard.first, shard.last, shard.operator.num_inputs) == (20, 40, 20)
    assert torch.equal(table.value, whole.value)
    assert torch.equal(table.indptr, whole.indptr)
    nodes = torch.cat([torch.arange(20, 40), torch.from_numpy(needed)])
    assert torch.equal(nodes[table.index.long()], whole.index.long())
    assert shard.y.tolist() == DATA.y[20:40].tolist()
    assert set(needed) == set(whole.index.tolist()) - set(range(20, 40))


def test_features_are_sparse_or_dense_by_their_zeros():
    dense, sparse = np.ones((4, 10), dtype=np.float32), np.eye(4, 40, dtype=np.float32)
    plain, scaled = config(normalize_features=False), config(normalize_features=True)
    kept: Any = shard_features(dense, plain, CPU, torch.float64)
    assert torch.equal(kept, torch.ones(4, 10, dtype=torch.float64))
    kept = shard_features(dense, scaled, CPU, torch.float32)
    assert torch.allclose(kept, torch.full((4, 10), 0.1))
    assert isinstance(shard_features(sparse, plain, CPU, torch.float32), SparseFeatures)


@pytest.mark.parametrize(
    ("model", "changes", "words"),
    [
        ("gcn", {}, "gcn cannot be trained in parts"),
        ("asgat-plus", {"propagate": True, "form": "table"}, "propagate = True cannot be trained in parts"),
        ("asgat-exact", {"form": "auto"}, "operator = exact cannot"),
        ("asgat-arma", {}, "operator = arma cannot"),
        ("asgat-cheb", {"form": "dense"}, "form=table"),
        ("asgat-cheb", {"form": "auto"}, "form=table"),
        ("asgat-cheb", {"tolerance": 1e-3}, "tolerance = 0.001 cannot"),
        ("asgat-plus", {"balanced": True}, "balanced = True cannot"),
        ("asgat-plus", {"adjacency": True}, "adjacency = True cannot"),
    ],
)
def test_what_ranks_cannot_share_is_refused(model, changes, words):
    own = {} if model == "gcn" else {**PLAIN, **changes}
    settings = make_config(model, **own)
    source = InMemory(DATA, config())
    with pytest.raises(AsgatError, match=words):
        check_distributed(model, settings, source)


def test_a_directed_graph_is_refused():
    directed = Graph(DATA.graph.adjacency, directed=True)
    source = InMemory(dataclasses.replace(DATA, graph=directed), config())
    with pytest.raises(AsgatError, match="directed graph cannot be trained in parts; leave out --distributed"):
        check_distributed("asgat-cheb", config(), source)


def test_a_graph_on_disk_has_its_own_self_loops():
    fields = [("num_nodes", int), ("num_entries", int), ("directed", bool)]
    stored = dataclasses.make_dataclass("Stored", fields)(500, 1000, False)
    assert check_distributed("asgat-cheb", config(), stored) == "exact table"
    with pytest.raises(AsgatError, match="convert it with --self-loops"):
        check_distributed("asgat-cheb", config(self_loops="add"), stored)


@given(st.integers(0, 100), st.integers(1, 9))
def test_blocks_cover_all_nodes_and_are_of_one_size(nodes, ranks):
    bounds = block_bounds(nodes, ranks)
    sizes = np.diff(bounds)
    assert (bounds[0], bounds[-1]) == (0, nodes)
    assert sizes.max() - sizes.min() <= 1


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
    exchange = Exchange(group, bounds, needed)
    assert exchange.num_needed == len(needed)
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
    # Halves of a last bit add up to one before the sum is rounded, and to none after.
    weight = torch.ones(2, requires_grad=True)
    (exchange.shared(weight) * (1.0 if rank == 0 else 2.0**-24 * (1 + 2.0**-20))).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [float(np.nextafter(np.float32(1.0), np.float32(2.0)))] * 2
    assert exchange.shared(weight).dtype == torch.float64
    assert group.sum(torch.tensor([1.0])).item() == ranks
    assert group.gather(rank) == list(range(ranks))
    assert group.from_first(lambda: "said") == "said"
    dist.destroy_process_group()


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_rows_and_their_gradients_travel(ranks):
    spawn: Any = multiprocessing.spawn  # type: ignore[attr-defined]
    spawn(check, (ranks, free_port()), nprocs=ranks)
