from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import ZOO, generic_graph, graphs, permuted
from torch_geometric.data import Batch, Data

from asgat.errors import AsgatError
from asgat.filters import HeatFilter, MLPFilter, PolynomialFilter
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn import ASGATConv
from asgat.spectral import ArmaOperator, ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator

ORDER = 4
OPERATORS = ["exact", "chebyshev"]
FILTERS = {
    "mlp": partial(MLPFilter, hidden=(7, 5)),
    "heat": partial(HeatFilter, learned=True),
    "polynomial": PolynomialFilter,
}
EDGES = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 4]])


def features(graph, size=3, seed=0):
    return torch.randn(graph.num_nodes, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def layer(operator="exact", seed=0, **arguments):
    torch.manual_seed(seed)
    arguments = {"heads": 2, "k": 3, "order": ORDER, "filter": FILTERS["mlp"], **arguments}
    conv = ASGATConv(3, 4, operator=operator, **arguments).double()
    for parameter in (conv.bias, conv.mix):
        if parameter is not None:
            torch.nn.init.normal_(parameter)
    return conv


def dense_scores(conv, graph, operator):
    """U g(Λ) Uᵀ or U p(Λ) Uᵀ, and who reaches whom."""
    hops = dense.hops(graph)
    if operator == "exact":
        return dense.exact_scores(graph, conv.filter), hops >= 0
    return dense.interpolant_scores(graph, conv.filter, ORDER), (hops >= 0) & (hops <= ORDER)


def dense_layer(conv, x, attention):
    """The layer's equation with an N×N attention, head by head."""
    share = torch.ones(conv.heads) if conv.mix is None else conv.heads * conv.mix.exp() / conv.mix.exp().sum()
    outputs = [conv.gain * part * (a @ x @ conv.weight) for part, a in zip(share, attention, strict=True)]
    out = torch.cat(outputs, dim=1) if conv.concat else sum(outputs) / len(outputs)
    if conv.root_weight is not None:
        out = out + x @ conv.root_weight
    return out + conv.bias if conv.bias is not None else out


def check_against_dense(graph, operator, k, include=False, **arguments):
    """Values to 1e-9, gradients to 1e-8; rows in which rounding chooses among equals are compared by rank."""
    conv, x = layer(operator, k=k, include_unreachable=include, **arguments), features(graph).requires_grad_()
    score, reached = dense_scores(conv, graph, operator)
    score = score * torch.from_numpy(reached)
    allowed = np.ones_like(reached) if include else reached
    truth = dense.attention(score, k, allowed)
    out, attention = conv(x, graph, return_attention_weights=True)
    actual = attention.to_dense()
    torch.testing.assert_close(actual.sort(-1).values, truth.sort(-1).values, atol=1e-9, rtol=0)
    clear = torch.from_numpy(~dense.tied_rows(score, k, allowed))
    torch.testing.assert_close(actual[clear], truth[clear], atol=1e-9, rtol=0)

    rows = clear.all(dim=0)
    expected = dense_layer(conv, x, truth)
    torch.testing.assert_close(out[rows], expected[rows], atol=1e-8, rtol=0)
    cotangent = torch.randn(out.shape, dtype=torch.float64) * rows.unsqueeze(1)
    inputs = [x, *conv.parameters()]
    grads = [torch.autograd.grad((o * cotangent).sum(), inputs, allow_unused=True) for o in (out, expected)]
    for a, e in zip(*grads, strict=True):
        zero = torch.zeros(())
        torch.testing.assert_close(
            zero if a is None else a, zero if e is None else e, atol=1e-8, rtol=1e-8, check_dtype=False
        )
    return rows


# -- the paper's attention ---------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", OPERATORS)
@given(graph=graphs(max_nodes=9), k=st.none() | st.integers(1, 10), include=st.booleans())
def test_attention_output_and_gradients_are_the_dense_ones_on_any_graph(operator, graph, k, include):
    check_against_dense(graph, operator, k, include)


@pytest.mark.parametrize("k", [1, 3, None])
@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("size", [14, 26])
def test_attention_output_and_gradients_are_the_dense_ones(size, operator, filter, k):
    """Isolated nodes and several components, weights that leave no ties: no row is passed over."""
    for seed in range(2):
        rows = check_against_dense(generic_graph(seed, size), operator, k, filter=FILTERS[filter])
        # beyond its degree in hops a polynomial is 0, and zeros tie
        assert rows.double().mean() > 0.8 if filter == "polynomial" else rows.all()


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(
    "arguments",
    [
        {"concat": False},
        {"root": True},
        {"root": True, "concat": False},
        {"bias": False},
        {"heads": 1},
        {"heads": 5, "concat": False, "bias": False, "root": True},
        {"mix": True},
        {"mix": True, "heads": 3, "concat": False, "root": True},
        {"mix": True, "heads": 1},
        {"gain": 0.25, "root": True},
        {"gain": 3.0, "root": True, "mix": True, "concat": False},
    ],
    ids=str,
)
def test_every_form_of_the_layer_is_the_dense_one(operator, arguments):
    assert check_against_dense(ZOO["generic"], operator, 3, **arguments).all()


@pytest.mark.parametrize("concat", [True, False])
def test_a_learned_mix_starts_as_the_plain_layer_and_learns(concat):
    plain, mixed = layer(concat=concat), layer(concat=concat, mix=True)
    mixed.load_state_dict({**plain.state_dict(), "mix": torch.zeros(2)})
    graph = ZOO["generic"]
    out = mixed(features(graph), graph)
    torch.testing.assert_close(out, plain(features(graph), graph))
    out.square().sum().backward()
    assert (mixed.mix.grad != 0).all()
    mixed.reset_parameters()
    assert torch.equal(mixed.mix, torch.zeros(2, dtype=torch.float64))
    assert plain.mix is None


def test_a_gain_belongs_to_the_attention_beside_a_root_term():
    graph, x = ZOO["generic"], features(ZOO["generic"])
    assert (layer(root=True, gain=0.25).gain, layer(gain=0.25).gain) == (0.25, 1.0)
    torch.testing.assert_close(layer(gain=0.25)(x, graph), layer()(x, graph))


def test_chebyshev_attention_converges_to_exact_as_the_order_grows():
    graph = generic_graph(5, 20)
    weights = {}
    for operator, order in [("exact", 1), *(("chebyshev", r) for r in (2, 6, 20))]:
        conv = layer(operator, k=None, order=order, filter=partial(HeatFilter, scale=2.0), include_unreachable=True)
        weights[operator, order] = conv(features(graph), graph, return_attention_weights=True)[1].to_dense()
    errors = [(weights["chebyshev", r] - weights["exact", 1]).abs().max().item() for r in (2, 6, 20)]
    assert errors[0] > 10 * errors[1]
    assert errors[2] < 1e-8


# -- graphs as arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", OPERATORS)
def test_edges_graph_operator_and_pyg_data_agree(operator):
    conv, graph = layer(operator), ZOO["generic"]
    x = features(graph)
    edges, weight = torch.from_numpy(graph.edge_index()), torch.from_numpy(graph.adjacency.tocoo().data)
    expected = conv(x, graph)
    assert torch.equal(conv(x, edges, weight), expected)
    one_way = edges[0] <= edges[1]
    assert torch.equal(conv(x, edges[:, one_way], weight[one_way]), expected), "edges are read as undirected"
    data = Data(x=x, edge_index=edges, edge_weight=weight)
    assert torch.equal(conv(data.x, Graph.from_pyg(data)), expected)
    made: Any = {"exact": ExactOperator, "chebyshev": partial(ChebyshevOperator, order=ORDER)}[operator]
    assert torch.equal(conv(x, made(graph, dtype=torch.float64)), expected)
    assert torch.equal(layer(made)(x, graph), expected), "a factory in place of a name"


def test_edge_weights_are_used():
    conv, x = layer(), torch.randn(5, 3, dtype=torch.float64)
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    plain, weighted = conv(x, EDGES), conv(x, EDGES, weight)
    assert not torch.allclose(plain, weighted)
    torch.testing.assert_close(weighted, conv(x, EDGES, 7 * weight))  # their unit is not
    torch.testing.assert_close(plain, conv(x, EDGES, torch.ones(5)))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("k", [3, None])
def test_a_batch_gives_what_its_graphs_give_alone(operator, k):
    conv = layer(operator, k=k, root=True)
    parts = []
    for seed, size in ((0, 14), (1, 11), (2, 8)):
        graph = generic_graph(seed, size)
        edges, weight = torch.from_numpy(graph.edge_index()), torch.from_numpy(graph.adjacency.tocoo().data)
        parts.append(Data(x=features(graph, seed=seed), edge_index=edges, edge_weight=weight))
    batch = Batch.from_data_list(parts)
    alone = torch.cat([conv(part.x, part.edge_index, part.edge_weight) for part in parts])
    torch.testing.assert_close(conv(batch.x, batch.edge_index, batch.edge_weight), alone)
    torch.testing.assert_close(conv(batch.x, Graph.from_pyg(batch)), alone)


@pytest.mark.parametrize("operator", OPERATORS)
def test_renamed_nodes_give_renamed_outputs(operator):
    conv, graph = layer(operator, root=True), ZOO["generic too"]
    x, order = features(graph), np.random.default_rng(0).permutation(graph.num_nodes)
    torch.testing.assert_close(conv(x[order], permuted(graph, order)), conv(x, graph)[order])


def test_nothing_in_the_state_depends_on_the_graph():
    trained = layer(seed=1, cached=True, root=True)
    trained(features(ZOO["generic"]), ZOO["generic"])
    state = trained.state_dict()
    assert not any(ZOO["generic"].num_nodes in tensor.shape for tensor in state.values())
    other = layer(seed=2, root=True)
    other.load_state_dict(state)
    small = generic_graph(7, 9)
    trained.operators.cached, trained.operators.kept = False, None
    assert torch.equal(other(features(small), small), trained(features(small), small))


@pytest.mark.parametrize("name", ["no nodes", "one node", "no edges", "one loop"])
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("k", [3, None])
def test_the_smallest_graphs(name, operator, k):
    graph = ZOO[name]
    conv = layer(operator, k=k)
    out = conv(features(graph), graph)
    assert out.shape == (graph.num_nodes, 8)
    torch.testing.assert_close(out, (features(graph) @ conv.weight).repeat(1, 2) + conv.bias)


# -- caching -----------------------------------------------------------------------------------------------


def test_cached_builds_the_operator_once():
    built = []

    def factory(graph, **where):
        built.append(graph)
        return ExactOperator(graph, **where)

    x = features(ZOO["generic"])
    conv = layer(factory, cached=True)
    first = conv(x, ZOO["generic"])
    assert torch.equal(conv(x, ZOO["generic"]), first)
    assert len(built) == 1
    conv.reset_parameters()
    conv(x, ZOO["generic"])
    assert len(built) == 2, "a new start forgets the graph"
    plain = layer(factory)
    plain(x, ZOO["generic"])
    plain(x, ZOO["generic"])
    assert len(built) == 4


def test_a_cached_layer_says_so_when_sizes_do_not_fit():
    conv = layer(cached=True)
    conv(features(ZOO["generic"]), ZOO["generic"])
    with pytest.raises(AsgatError, match=r"x has 6 rows, but the graph \(kept from an earlier call.*\) has 14 nodes"):
        conv(features(ZOO["path"]), ZOO["path"])


# -- dropout -----------------------------------------------------------------------------------------------


def test_dropout_acts_in_training_alone():
    conv, graph = layer(dropout=0.5, root=True), ZOO["generic"]
    x = features(graph)
    assert not torch.equal(conv(x, graph), conv(x, graph))
    conv.eval()
    assert torch.equal(conv(x, graph), conv(x, graph))
    torch.testing.assert_close(conv(x, graph), layer(root=True)(x, graph))


def test_dropout_leaves_the_expected_output_unchanged():
    """Five hundred copies of one edge: their mean is near what a layer without dropout gives."""
    graph = Graph.from_edges([np.arange(0, 1000, 2), np.arange(1, 1000, 2)])
    conv, x = layer("chebyshev", dropout=0.3), features(ZOO["one edge"]).repeat(500, 1)
    operator = conv.operator_for(x, graph)
    torch.manual_seed(0)
    mean = torch.stack([conv(x, operator) for _ in range(4)]).view(-1, 2, 8).mean(0)
    torch.testing.assert_close(mean, conv.eval()(x, operator)[:2], atol=0.1, rtol=0)


def test_dropout_acts_on_attention_and_input_alike():
    """With one feature, one channel and one attended node an output is 0 if either was dropped."""
    torch.manual_seed(0)
    conv = ASGATConv(1, 1, k=1, dropout=0.5, bias=False, order=1)
    zero = conv(torch.ones(2000, 1), Graph.from_edges([[], []], 2000)) == 0
    assert 0.71 < zero.float().mean() < 0.79


def test_attention_is_returned_without_dropout():
    conv, graph = layer(dropout=0.5), ZOO["generic"]
    _, attention = conv(features(graph), graph, return_attention_weights=True)
    torch.testing.assert_close(attention.weight.sum(-1), torch.ones(2, 14, dtype=torch.float64))


# -- the rest ----------------------------------------------------------------------------------------------


def test_repr():
    assert repr(ASGATConv(8, 4, heads=2, k=3)) == "ASGATConv(8, 4, heads=2, k=3)"
    assert repr(ASGATConv(8, 4, k=None)) == "ASGATConv(8, 4, heads=1, k=None)"


def test_defaults_are_single_precision_chebyshev_of_order_15():
    conv, x = ASGATConv(3, 4), torch.randn(5, 3)
    operator = conv.operator_for(x, EDGES)
    assert isinstance(operator, ChebyshevOperator)
    assert (operator.order, operator.dtype) == (15, torch.float32)
    assert conv(x, EDGES).dtype == torch.float32


def test_arma_is_by_conjugate_gradients_and_near_the_exact_form():
    graph, filter = generic_graph(1, 20), partial(HeatFilter, scale=2.0)
    conv, exact = layer("arma", filter=filter), layer("exact", filter=filter)
    x = features(graph)
    operator = conv.operator_for(x, graph)
    assert type(operator) is ArmaOperator
    assert torch.equal(conv(x, operator), conv(x, graph))
    torch.testing.assert_close(conv(x, graph), exact(x, graph), atol=1e-6, rtol=0)


@pytest.mark.parametrize("operator", OPERATORS)
def test_single_precision_is_near(operator):
    conv, graph = layer(operator, k=None), ZOO["generic"]
    x = features(graph)
    expected = conv(x, graph)
    torch.testing.assert_close(conv.float()(x.float(), graph).double(), expected, atol=1e-5, rtol=1e-4)


def test_reset_parameters_gives_a_new_start():
    conv = layer(root=True)
    before = {name: tensor.clone() for name, tensor in conv.state_dict().items()}
    conv.reset_parameters()
    after = conv.state_dict()
    assert (after["bias"] == 0).all()
    assert all(not torch.equal(after[name], before[name]) for name in before if "bias" not in name)


def test_every_parameter_is_trained():
    conv, graph = layer(root=True), ZOO["generic"]
    conv(features(graph), graph).square().sum().backward()
    for name, parameter in conv.named_parameters():
        assert parameter.grad is not None, name
        if name != "filter.layers.2.bias":  # adds a multiple of I, which need not matter to a row of one
            assert (parameter.grad != 0).any(), name


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"k": 0}, "k must be at least 1, but is 0"),
        ({"k": -4}, "k must be at least 1, but is -4"),
        ({"heads": 0}, "heads must be at least 1, but is 0"),
        ({"order": 0}, "order must be at least 1, but is 0"),
        ({"operator": "exakt"}, "Unknown operator 'exakt'. Did you mean 'exact'"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, but is 1.0"),
        ({"dropout": -0.1}, "but is -0.1"),
        ({"dropout": float("nan")}, "but is nan"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(AsgatError, match=sentence):
        ASGATConv(3, 4, **arguments)


def test_sizes_that_do_not_fit():
    conv, x = layer(), torch.randn(5, 3, dtype=torch.float64)
    with pytest.raises(AsgatError, match="x has 5 rows, but the graph has 6 nodes"):
        conv(x, ZOO["path"])
    with pytest.raises(AsgatError, match="x has 5 rows, but the graph has 6 nodes"):
        conv(x, ExactOperator(ZOO["path"], dtype=torch.float64))
    with pytest.raises(AsgatError, match="names node 5, but the graph has nodes 0 to 4"):
        conv(x, torch.tensor([[0], [5]]))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("k", [3, None])
def test_cuda_agrees_with_cpu(operator, k):
    conv, graph = layer(operator, k=k, root=True), ZOO["generic"]
    x = features(graph)
    expected = conv(x, graph)
    expected.sum().backward()
    grads = [p.grad.clone() for p in conv.parameters()]
    conv.cuda().zero_grad()
    out = conv(
        x.cuda(),
        torch.from_numpy(graph.edge_index()).cuda(),
        torch.from_numpy(graph.adjacency.tocoo().data).cuda(),
    )
    out.sum().backward()
    torch.testing.assert_close(out.cpu(), expected)
    for parameter, grad in zip(conv.parameters(), grads, strict=True):
        torch.testing.assert_close(parameter.grad.cpu(), grad)
    conv.reset_parameters()


# -- candidate tables, sparse features, compilation, autocast ----------------------------------------------


def table(nodes=50, **arguments):
    """A table that leaves something out, in single precision unless told otherwise."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(0, nodes, (2, 3 * nodes)), nodes, rng.uniform(0.5, 2.0, 3 * nodes))
    operator = TableOperator(graph, 5, **{"candidates": 6, "cap": 3, **arguments})
    assert not operator.table.complete.all()
    return operator


def output_and_gradients(conv, run, *inputs, seed=0):
    """What a call gives, and the gradients of one number made of it."""
    conv.zero_grad()
    torch.manual_seed(seed)
    out = run(*inputs)
    weight = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    (out * weight).sum().backward()
    return [out.detach(), *(p.grad.clone() for p in conv.parameters())]


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("arguments", [{}, {"root": True, "dropout": 0.4}, {"concat": False, "bias": False}], ids=str)
def test_compiled_without_a_graph_break(arguments, backend, form, monkeypatch):
    for place in ("asgat.kernels.dropout", "asgat.nn.attention.dropout"):  # what is compiled draws PyTorch's numbers
        monkeypatch.setattr(place, F.dropout)
    monkeypatch.setattr("asgat.nn.attention.fits_attention_sum", lambda *_: False)
    torch.manual_seed(0)
    conv, operator = ASGATConv(6, 4, heads=2, k=3, **arguments), table()
    x: Any = torch.randn(50, 6) * (torch.rand(50, 6) < 0.5)
    if form == "sparse":
        x = SparseFeatures.from_dense(x)
    expected = output_and_gradients(conv, conv, x, operator)
    assert all((value != 0).any() for value in expected)
    counters = torch._dynamo.utils.counters
    torch._dynamo.reset()
    counters.clear()
    # With fullgraph=True a break is an error; by eager dropout draws the same numbers.
    compiled = torch.compile(conv, fullgraph=True, backend=backend)
    actual = output_and_gradients(conv, compiled, x, operator)
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, atol=1e-5, rtol=1e-4)
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    torch._dynamo.reset()


@pytest.mark.parametrize("arguments", [{}, {"root": True}, {"concat": False}], ids=str)
def test_sparse_features_give_what_dense_ones_give(arguments):
    x = features(ZOO["generic"], seed=3) * (torch.rand(14, 3, generator=torch.Generator().manual_seed(0)) < 0.5)
    conv, sparse = layer("chebyshev", **arguments), SparseFeatures.from_dense(x, dtype=torch.float64)
    dense_form = output_and_gradients(conv, conv, x, ZOO["generic"])
    sparse_form = output_and_gradients(conv, conv, sparse, ZOO["generic"])
    for a, e in zip(sparse_form, dense_form, strict=True):
        torch.testing.assert_close(a, e)
    assert (sparse_form[0] != 0).any()


def test_dropout_on_sparse_features_leaves_the_expected_output_unchanged():
    conv, operator = ASGATConv(6, 4, heads=2, k=3, dropout=0.3, root=True), table()
    torch.manual_seed(0)
    x = SparseFeatures.from_dense(torch.randn(50, 6) * (torch.rand(50, 6) < 0.5))
    with torch.no_grad():
        draws = torch.stack([conv(x, operator) for _ in range(150)])
        still = conv.eval()(x, operator)
    assert draws.std(dim=0).mean() > 0.1
    assert (draws.mean(dim=0) - still).abs().mean() < 0.1 * draws.std(dim=0).mean()


@pytest.mark.parametrize("storage", [torch.float32, torch.float16])
def test_autocast_leaves_the_selection_alone(storage):
    """The table's products stay in single precision: the same nodes, with the same weights."""
    torch.manual_seed(0)
    conv, operator, x = ASGATConv(6, 4, heads=2, k=3), table(storage=storage), torch.randn(50, 6)
    out, plain = conv(x, operator), conv.attention(operator, certified=True)
    assert plain.certificate is not None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast_out, cast = conv(x, operator), conv.attention(operator, certified=True)
        assert (x @ conv.weight).dtype == torch.bfloat16, "autocast is on"
    assert torch.equal(cast.index, plain.index)
    assert torch.equal(cast.weight, plain.weight)
    assert cast.weight.dtype == torch.float32
    assert cast.certificate is not None
    assert torch.equal(cast.certificate.bound, plain.certificate.bound)
    assert not torch.equal(cast_out, out), "features do take part in it"
    torch.testing.assert_close(cast_out.float(), out, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_a_complete_table_gives_what_all_pairs_give(seed):
    graph = generic_graph(seed)
    conv, x = layer("chebyshev", seed=seed), features(graph)
    whole = TableOperator(graph, ORDER, dtype=torch.float64, candidates=14, cap=14, storage=torch.float64)
    for a, e in zip(*(output_and_gradients(conv, conv, x, g) for g in (whole, graph)), strict=True):
        torch.testing.assert_close(a, e, atol=1e-9, rtol=1e-9)


def test_attention_carries_a_certificate_where_it_is_asked_for():
    conv, operator, x = ASGATConv(6, 4, heads=2, k=3), table(), torch.randn(50, 6)
    out, attention = conv(x, operator, return_attention_weights=True)
    assert attention.certificate is None
    assert torch.equal(conv(x, operator, return_attention_weights=False), out)
    attention = conv.attention(operator, certified=True)
    assert attention.certificate is not None
    assert attention.certificate.bound.shape == (2, 50)
    assert 0 < attention.certificate.max_bound < float("inf")


def test_attention_of_a_fixed_filter_is_computed_once(monkeypatch):
    graph, other = generic_graph(seed=1), generic_graph(seed=2)
    x = torch.randn(graph.num_nodes, 4, dtype=torch.float64)
    operators = [ChebyshevOperator(each, order=6, dtype=torch.float64) for each in (graph, other)]
    asked = []
    top = ChebyshevOperator.top

    def counted(self, *arguments):
        asked.append(self)
        return top(self, *arguments)

    monkeypatch.setattr(ChebyshevOperator, "top", counted)
    conv = ASGATConv(4, 3, heads=2, k=3, filter=partial(HeatFilter, scale=2.0)).double()
    first = conv(x, operators[0])
    first.sum().backward()
    torch.testing.assert_close(conv(x, operators[0]), first, rtol=0, atol=0)
    assert len(asked) == 1
    conv(x, operators[1])  # another graph
    conv.k = 2
    conv(x, operators[1])
    assert len(asked) == 3
    conv.k = 3
    conv.filter.load_state_dict({"log_scale": torch.tensor([0.1, 2.0], dtype=torch.float64)})
    fresh = ASGATConv(4, 3, heads=2, k=3, filter=partial(HeatFilter, scale=2.0)).double()
    fresh.load_state_dict(conv.state_dict())
    torch.testing.assert_close(conv(x, operators[0]), fresh(x, operators[0]), rtol=0, atol=0)
    assert not torch.equal(conv(x, operators[0]), first)
    learned = ASGATConv(4, 3, heads=2, k=3, filter=partial(HeatFilter, learned=True)).double()
    asked.clear()
    learned(x, operators[0])
    learned(x, operators[0])
    assert len(asked) == 2


# -- as PyG's layers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [{}, {"root": True}, {"root": True, "directed": True, "concat": False}], ids=str)
def test_the_size_of_the_input_may_be_found_in_the_first_call(arguments):
    x = torch.randn(5, 6, dtype=torch.float64)
    torch.manual_seed(0)
    lazy = ASGATConv(-1, 4, heads=2, k=3, **arguments).double()
    assert repr(lazy) == "ASGATConv(-1, 4, heads=2, k=3)"
    lazy.reset_parameters()
    weight = lazy.weight
    out = lazy(x, EDGES)
    assert lazy.weight is weight, "an optimiser that has it keeps it"
    assert repr(lazy) == "ASGATConv(6, 4, heads=2, k=3)"
    out.square().sum().backward()
    assert all(parameter.grad is not None for parameter in lazy.parameters())
    plain = ASGATConv(6, 4, heads=2, k=3, **arguments).double()
    plain.load_state_dict(lazy.state_dict())
    assert torch.equal(plain(x, EDGES), out)
    loaded = ASGATConv(-1, 4, heads=2, k=3, **arguments).double()
    loaded.load_state_dict(plain.state_dict())
    assert loaded.in_channels == 6
    assert torch.equal(loaded(x, EDGES), out)
    before = lazy.weight.detach().clone()
    lazy.reset_parameters()
    assert not torch.equal(lazy.weight, before)
    assert ASGATConv(-1, 4)(SparseFeatures.from_dense(x.float()), EDGES).shape == (5, 4)


@pytest.mark.parametrize("directed", [False, True])
def test_a_transposed_adjacency_matrix_gives_what_its_edges_give(directed):
    conv, x = layer(directed=directed), torch.randn(5, 3, dtype=torch.float64)
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    adj_t = torch.sparse_coo_tensor(EDGES.flip(0), weight, (5, 5), check_invariants=True)
    expected = conv(x, EDGES, weight)
    for matrix in (adj_t, adj_t.to_sparse_csr()):
        assert torch.equal(conv(x, matrix), expected)


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", [*OPERATORS, "arma"])
@pytest.mark.parametrize("arguments", [{}, {"root": True, "mix": True, "gain": 0.5}, {"directed": True}], ids=str)
def test_training_under_bfloat16_autocast(device, operator, arguments):
    """Features come in bfloat16 from a layer before; attention is that without autocast, the output near it."""
    torch.manual_seed(0)
    before, conv = torch.nn.Linear(6, 6), ASGATConv(6, 4, heads=2, k=3, operator=operator, **arguments)
    before, conv, x = before.to(device), conv.to(device), torch.randn(14, 6).to(device)
    edges = torch.from_numpy(ZOO["generic"].edge_index()).to(device)
    out, attention = conv(before(x), edges, return_attention_weights=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        hidden = before(x)
        assert hidden.dtype == torch.bfloat16
        cast_out, cast = conv(hidden, edges, return_attention_weights=True)
    assert torch.equal(cast.index, attention.index)
    torch.testing.assert_close(cast.weight, attention.weight)
    torch.testing.assert_close(cast_out.float(), out, atol=0.1, rtol=0.1)
    cast_out.float().square().sum().backward()
    for parameter in (*before.parameters(), *conv.parameters()):
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()


METADATA = (["a", "b"], [("a", "to", "b"), ("b", "to", "a"), ("a", "is", "a")])


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = ASGATConv(-1, 4)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index).relu()


def test_graphs_with_kinds_of_nodes_are_refused():
    from torch_geometric.nn import HeteroConv, to_hetero

    x = {"a": torch.randn(5, 8), "b": torch.randn(4, 8)}
    edges = {kind: torch.tensor([[0, 1], [1, 2]]) for kind in METADATA[1]}
    with pytest.raises(AsgatError, match=r"to_hetero and HeteroConv.* are not supported"):
        to_hetero(ASGATConv(8, 4), METADATA)
    with pytest.raises(AsgatError, match=r"to_homogeneous\(\) of the data first"):
        to_hetero(Network(), METADATA)(x, edges)
    with pytest.raises(AsgatError, match="one graph with one kind of node"):
        HeteroConv({kind: ASGATConv(8, 4) for kind in METADATA[1]})(x, edges)


def test_pygs_explainer_finds_the_features_that_count():
    """A mask of features, learned by GNNExplainer; a mask of edges has no gradient, and PyG says so."""
    from torch_geometric.explain import Explainer, GNNExplainer

    torch.manual_seed(0)
    conv, x = ASGATConv(6, 2, k=3), torch.randn(14, 6)
    with torch.no_grad():
        conv.weight[3:] = 0.0  # half of the features are not used
    edges = torch.from_numpy(ZOO["generic"].edge_index())

    def explain(edge_mask):
        return Explainer(
            conv,
            GNNExplainer(epochs=5),
            explanation_type="model",
            node_mask_type="attributes",
            edge_mask_type=edge_mask,
            model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
        )(x, edges)

    mask = explain(None).node_mask
    assert (mask[:, 3:] == 0).all()
    assert (mask[:, :3] > 0).any()
    with pytest.raises(ValueError, match="Could not compute gradients for edges"):
        explain("object")
