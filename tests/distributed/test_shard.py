import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asgat.data.synthetic import contextual_sbm
from asgat.distributed.exchange import Exchange, block_bounds
from asgat.distributed.process_group import Group
from asgat.distributed.shard import InMemory, build_shard, check_distributed, divide, rows_of, shard_features
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.asgat import with_adjacency
from asgat.nn.memory_plan import choose_form, step_size, table_settings
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
    """The second of three ranks with 20 nodes each, as far as building goes: nothing is exchanged."""
    monkeypatch.setattr(Exchange, "_request", lambda self, bounds: None)
    monkeypatch.setattr("asgat.distributed.shard.divide", lambda source, *_: block_bounds(source.num_nodes, 3))
    return Group(1, 3, CPU)


@pytest.mark.parametrize("builder", ["exact", "truncated"])
def test_a_rank_holds_its_rows_of_the_table_under_numbers_of_its_own(lonely, builder):
    settings = config(builder=builder)
    shard = build_shard(InMemory(DATA, settings), "asgat-cheb", settings, lonely)
    form = choose_form(DATA.graph, settings)
    whole = table_settings(60, settings, form).build(DATA.graph.shifted, range(20, 40))
    assert shard.operator.attention is not None
    needed, table = shard.operator.attention.exchange.needed, shard.operator.attention.rows.table
    assert (shard.first, shard.last, shard.operator.num_nodes) == (20, 40, 20)
    assert torch.equal(table.value, whole.value)
    assert torch.equal(table.indptr, whole.indptr)
    nodes = torch.cat([torch.arange(20, 40), needed])
    assert torch.equal(nodes[table.index.long()], whole.index.long())
    assert shard.y.tolist() == DATA.y[20:40].tolist()
    assert set(needed.tolist()) == set(whole.index.tolist()) - set(range(20, 40))
    assert shard.figures()["needed_rows"] == len(needed)
    received = 4 * len(needed) * 4 * 4  # two layers, and two more copies, of 4 numbers of 4 bytes
    assert shard.step_bytes(settings) == sum(step_size(settings, 20, 20, 3, CPU)) + received
    assert shard.figures()["boundary_rows"] == 0


@pytest.mark.parametrize("directed", [False, True])
def test_a_rank_holds_its_rows_of_the_graph(lonely, directed):
    """Of X for filters, of the mean over neighbours, and of the adjacency after the features."""
    data = dataclasses.replace(DATA, graph=Graph(DATA.graph.adjacency, directed=directed))
    settings = config("asgat-deep", channels="attention+filters+mean", adjacency=True, normalize_features=False)
    shard = build_shard(InMemory(data, settings), "asgat-deep", settings, lonely, torch.float64)
    operator, copies = shard.operator, 2 if directed else 1
    assert operator.num_nodes == 20 * copies
    cover = data.graph.spectral_graph
    rows = slice(20 * copies, 40 * copies)
    assert operator.filters is not None
    assert operator.means is not None
    indptr, index, value = (part.numpy() for part in operator.filters.arrays)
    others = operator.filters.boundary.needed
    names = torch.cat([torch.arange(60 * copies)[rows], others]).numpy()
    found = np.zeros((20 * copies, 60 * copies))
    np.add.at(found, (np.repeat(np.arange(20 * copies), np.diff(indptr)), names[index]), value)
    np.testing.assert_allclose(found, -cover.normalised_adjacency.toarray()[rows])
    assert shard.figures()["boundary_rows"] == len(others)
    names = torch.cat([torch.arange(20, 40), operator.means.exchange.needed]).numpy()
    found = np.zeros((20 * copies, 60))
    found[:, names] = operator.means.matrix.to_dense().numpy()
    mean = cover.mean_adjacency.toarray()[rows].reshape(20 * copies, 60, copies).sum(axis=2)
    np.testing.assert_allclose(found, mean)
    x = shard.x if isinstance(shard.x, torch.Tensor) else shard.x.to_dense()
    np.testing.assert_array_equal(x.numpy(), with_adjacency(data.x, data.graph).toarray()[20:40])


def hubs_last(directed):
    """300 nodes, the last of which have most of the edges."""
    rng = np.random.default_rng(0)
    column = np.minimum(300 * rng.random(3000) ** 0.3, 299).astype(np.int64)
    graph = Graph.from_edges(np.stack([rng.integers(0, 300, size=3000), column]), 300, directed=directed)
    data = contextual_sbm(num_nodes=300, num_features=40, seed=1)
    return dataclasses.replace(data, graph=graph, x=(data.x > 2.0).astype(np.float32))


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("directed", [False, True])
def test_table_and_features_of_a_rank_fall_with_their_number(monkeypatch, directed, ranks):
    monkeypatch.setattr(Exchange, "_request", lambda self, bounds: None)
    data = hubs_last(directed)
    settings = config("asgat-deep", channels="attention+filters", adjacency=True, candidates=8)
    source = InMemory(data, settings)

    def largest(size):
        """The largest share of a rank of the whole, in units of 1 / ranks, of the table and of the features."""
        parts = [build_shard(source, "asgat-deep", settings, Group(rank, size, CPU)).figures() for rank in range(size)]
        assert sum(part["nodes"] for part in parts) == 300
        values = {name: [part[name] for part in parts] for name in ("table_mb", "features_mb")}
        values["features_mb"] = [mb - 641 * 8 / 2**20 for mb in values["features_mb"]]  # bounds of columns
        return {name: max(mb) / sum(mb) * size for name, mb in values.items()}

    assert max(largest(ranks).values()) < 1.15
    monkeypatch.setattr("asgat.distributed.shard.divide", lambda source, *_: block_bounds(source.num_nodes, ranks))
    assert largest(ranks)["features_mb"] > 1.2, "equal numbers of nodes would do"


def test_nodes_that_cost_the_same_are_divided_into_equal_numbers():
    """Rows of a truncated table have one size, and so have dense features; entries do not matter."""
    data = dataclasses.replace(hubs_last(False), x=np.ones((300, 4), dtype=np.float32))
    settings = config(builder="truncated")
    bounds = divide(InMemory(data, settings), settings, "truncated table", Group(0, 4, CPU))
    assert bounds.tolist() == [0, 75, 150, 225, 300]


def test_a_model_without_attention_has_no_table(lonely):
    settings = make_config("asgat-deep", channels="filters+mean", hidden=8)
    shard = build_shard(InMemory(DATA, settings), "asgat-deep", settings, lonely)
    assert shard.operator.table is None
    assert shard.figures()["table_mb"] == 0.0


def test_rows_are_a_copy():
    matrix = InMemory(DATA, config()).matrix()
    rows = rows_of(matrix, 10, 30)
    np.testing.assert_array_equal(rows.toarray(), -DATA.graph.normalised_adjacency.toarray()[10:30])
    assert not np.shares_memory(rows.data, matrix.data)
    assert not np.shares_memory(rows.indices, matrix.indices)


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
        ("asgat-exact", {"form": "auto"}, "operator = exact cannot"),
        ("asgat-arma", {}, "operator = arma cannot"),
        ("asgat-cheb", {"form": "dense"}, "form=table"),
        ("asgat-cheb", {"form": "auto"}, "form=table"),
        ("asgat-deep", {"operator": "arma"}, "operator = arma cannot"),
    ],
)
def test_what_ranks_cannot_share_is_refused(model, changes, words):
    own = {} if model == "gcn" else {**PLAIN, **changes}
    settings = make_config(model, **own)
    source = InMemory(DATA, config())
    with pytest.raises(AsgatError, match=words):
        check_distributed(model, settings, source)


def test_a_directed_graph_is_refused_for_a_model_that_cannot_use_directions():
    directed = Graph(DATA.graph.adjacency, directed=True)
    source = InMemory(dataclasses.replace(DATA, graph=directed), config())
    assert check_distributed("asgat-plus", config("asgat-plus"), source) == "exact table"
    with pytest.raises(AsgatError, match=r"asgat-cheb cannot use directions. Models that can: asgat-plus, asgat-deep"):
        check_distributed("asgat-cheb", config(), source)


def test_a_graph_on_disk_has_its_own_self_loops():
    fields = [("num_nodes", int), ("num_entries", int), ("directed", bool)]
    stored = dataclasses.make_dataclass("Stored", fields)(500, 1000, False)
    assert check_distributed("asgat-cheb", config(), stored) == "exact table"
    with pytest.raises(AsgatError, match="convert it with --self-loops"):
        check_distributed("asgat-cheb", config(self_loops="add"), stored)
    with pytest.raises(AsgatError, match="set similar=0"):
        check_distributed("asgat-plus", config("asgat-plus", similar=2), stored)
