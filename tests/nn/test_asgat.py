import copy
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests import dense
from tests.strategies import ZOO, generic_graph

from asgat.errors import AsgatError
from asgat.filters import HeatFilter
from asgat.nn import ASGAT, ASGATConv
from asgat.nn.asgat import with_adjacency
from asgat.nn.attention import SparseAttention
from asgat.spectral import ExactOperator

GRAPH = ZOO["generic"]
X = torch.randn(14, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
AFTER = {"every": (True, True), "hidden": (True, False), "last": (False, True), "none": (False, False)}


def model(**arguments):
    torch.manual_seed(0)
    return ASGAT(3, 5, 2, **{"heads": 2, "k": 3, "operator": "exact", **arguments}).double()


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("elu", AFTER)
def test_is_its_layers_one_after_the_other(elu, num_layers):
    net = model(elu=elu, num_layers=num_layers, root=True, out_heads=3)
    assert len(net.layers) == num_layers
    after_hidden, after_last = AFTER[elu]
    x = X
    for conv in net.layers[:-1]:
        x = conv(x, GRAPH)
        x = F.elu(x) if after_hidden else x
    x = net.layers[-1](x, GRAPH)
    torch.testing.assert_close(net(X, GRAPH), F.elu(x) if after_last else x)


@pytest.mark.parametrize("elu", AFTER)
@pytest.mark.parametrize("num_layers", [1, 3])
def test_a_jump_adds_a_map_of_the_input_to_the_last_layer(num_layers, elu):
    net = model(elu=elu, num_layers=num_layers, jump=True)
    after_hidden, after_last = AFTER[elu]
    x = X
    for conv in net.layers[:-1]:
        x = F.elu(conv(x, GRAPH)) if after_hidden else conv(x, GRAPH)
    x = net.layers[-1](x, GRAPH) + X @ net.jump_weight
    torch.testing.assert_close(net(X, GRAPH), F.elu(x) if after_last else x)
    before = net.jump_weight.clone()
    net.reset_parameters()
    assert not torch.equal(before, net.jump_weight)
    assert model().jump_weight is None


@pytest.mark.parametrize("elu", AFTER)
@pytest.mark.parametrize("operator", ["exact", "chebyshev", "arma"])
def test_propagation_is_a_response_over_the_whole_spectrum(operator, elu):
    """U g(Λ) Uᵀ times the logits without it, values and gradients, g the polynomial in 1 − λ."""
    net, plain = (model(elu=elu, operator=operator, propagate=on, alpha=0.3, jump=True) for on in (True, False))
    start = [0.3 * 0.7**j for j in range(10)] + [0.7**10]
    assert net.propagation.gamma.flatten().tolist() == pytest.approx(start)
    torch.nn.init.normal_(net.propagation.gamma, std=0.3)
    plain.load_state_dict({k: v for k, v in net.state_dict().items() if not k.startswith("propagation")})
    value, vector = (torch.from_numpy(part) for part in np.linalg.eigh(dense.laplacian(GRAPH.adjacency.toarray())))
    gamma = net.propagation.gamma.detach().clone().requires_grad_()
    response = sum(gamma[j] * (1.0 - value) ** j for j in range(11))
    expected = vector @ (response.unsqueeze(1) * (vector.t() @ plain(X, GRAPH)))
    close: Any = {"rtol": 1e-4, "atol": 1e-5} if operator == "arma" else {}  # a rational fit, by conjugate gradients
    out, attentions = net(X, GRAPH, return_attention_weights=True)
    torch.testing.assert_close(out, expected, **close)
    assert len(attentions) == 2
    weight = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    (out * weight).sum().backward()
    (expected * weight).sum().backward()
    close = {"rtol": 1e-2, "atol": 1e-3} if operator == "arma" else {}
    torch.testing.assert_close(net.propagation.gamma.grad, gamma.grad, **close)
    for (name, one), other in zip(plain.named_parameters(), [p for _, p in net.named_parameters()], strict=False):
        torch.testing.assert_close(other.grad, one.grad, msg=name, **close)
    net.reset_parameters()
    assert net.propagation.gamma.flatten().tolist() == pytest.approx(start)
    assert plain.propagation is None


def test_propagation_that_goes_back_at_once_changes_nothing():
    torch.testing.assert_close(model(propagate=True, alpha=1.0)(X, GRAPH), model()(X, GRAPH))


@pytest.mark.parametrize("elu", AFTER)
def test_a_linear_last_layer_is_a_map_of_every_node_alone(elu):
    net = model(linear=True, elu=elu)
    out, (attention,) = net(X, GRAPH, return_attention_weights=True)
    conv, linear = net.layers
    after_hidden, after_last = AFTER[elu]
    hidden = (attention.to_dense() @ (X @ conv.weight)).transpose(0, 1).flatten(1) + conv.bias
    truth = F.linear(F.elu(hidden) if after_hidden else hidden, linear.weight, linear.bias)
    torch.testing.assert_close(out, F.elu(truth) if after_last else truth)


def test_of_a_linear_last_layer_the_others_attend_and_all_are_drawn_again():
    net = model(linear=True, num_layers=3)
    assert net.convs == list(net.layers[:2])
    assert len(net.certificates(net.convs[0].operator_for(X, GRAPH))) == 2
    before = {name: value.clone() for name, value in net.state_dict().items()}
    net.reset_parameters()
    changed = {name for name, value in net.state_dict().items() if not torch.equal(value, before[name])}
    assert {"layers.0.weight", "layers.1.weight", "layers.2.weight"} <= changed


def test_dropout_acts_on_a_linear_last_layer_too():
    net = model(linear=True, heads=1, dropout=0.9, elu="none").train()
    conv, linear = net.layers
    with torch.no_grad():  # attention that gives the same to all: only the last dropout can tell nodes apart
        conv.weight.zero_()
        conv.bias.fill_(1.0)
        linear.weight.fill_(1.0)
    assert net(X, GRAPH)[:, 0].unique().numel() > 1


def test_a_layer_applied_alone_includes_jump_and_activation():
    net = model(jump=True, num_layers=3)
    operator = net.convs[0].operator_for(X, GRAPH)
    hidden = X
    for index in range(3):
        hidden = net.apply_layer(index, hidden, operator, X)
    assert torch.equal(hidden, net(X, GRAPH))


def test_adjacency_rows_are_features_with_weights_of_their_own():
    """[X, Ā] in the first layer is X W + Ā V, attended to and as a root term."""
    wide = torch.from_numpy(with_adjacency(X.numpy(), GRAPH).toarray())
    adjacency = dense.laplacian(GRAPH.adjacency.toarray())
    torch.testing.assert_close(wide[:, :3], X.float())
    torch.testing.assert_close(wide[:, 3:], (torch.eye(14).double() - torch.from_numpy(adjacency)).float())
    net = model(num_nodes=14, num_layers=1, root=True, elu="none")
    conv = net.layers[0]
    assert conv.weight.shape == (17, 2)
    out, (attention,) = net(wide.double(), GRAPH, return_attention_weights=True)
    (a,) = attention.to_dense()
    x, rows = wide.double().split([3, 14], dim=1)
    both = [x @ w[:3] + rows @ w[3:] for w in (conv.weight, conv.root_weight)]
    torch.testing.assert_close(out, a @ both[0] + both[1] + conv.bias)


def test_weights_of_nodes_refuse_another_graph():
    net = model(num_nodes=14)
    other = generic_graph(1, 20)
    with pytest.raises(AsgatError, match=r"weights for the 14 nodes .* cannot run on one with 20.*adjacency=false"):
        net(torch.from_numpy(with_adjacency(np.zeros((20, 3), np.float32), other).toarray()).double(), other)


@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_hidden_layers_concatenate_and_the_last_averages(num_layers):
    net = model(num_layers=num_layers, heads=3, out_heads=2)
    shapes = [(c.in_channels, c.out_channels, c.heads, c.concat) for c in net.layers]
    hidden = [(3, 5, 3, True), *[(15, 5, 3, True)] * (num_layers - 2)][: num_layers - 1]
    assert shapes == [*hidden, (3 if num_layers == 1 else 15, 2, 2, False)]
    assert net(X, GRAPH).shape == (14, 2)


def test_arguments_reach_every_layer():
    net = model(k=4, dropout=0.3, root=True, include_unreachable=True, filter=partial(HeatFilter, scale=2.0))
    for conv in net.layers:
        assert isinstance(conv, ASGATConv)
        assert (conv.k, conv.dropout, conv.include_unreachable) == (4, 0.3, True)
        assert conv.root_weight is not None
        assert isinstance(conv.filter, HeatFilter)
    assert [conv.filter.heads for conv in net.layers] == [2, 1]
    assert net.layers[0].filter is not net.layers[1].filter
    chebyshev = model(operator="chebyshev", order=7)
    assert chebyshev.layers[0].operator_for(X, GRAPH).order == 7


def test_layers_share_one_operator():
    built = []

    def factory(graph, **where):
        built.append(graph)
        return ExactOperator(graph, **where)

    net = model(operator=factory, num_layers=3)
    first = net(X, GRAPH)
    assert len(built) == 1
    assert torch.equal(net(X, GRAPH), first)
    assert len(built) == 2
    cached = model(operator=factory, num_layers=3, cached=True)
    assert torch.equal(cached(X, GRAPH), cached(X, GRAPH))
    assert len(built) == 3
    operator = ExactOperator(GRAPH, dtype=torch.float64)
    assert torch.equal(net(X, operator), first)
    assert len(built) == 3


def test_attention_of_every_layer_is_returned():
    net = model()
    out, attentions = net(X, GRAPH, return_attention_weights=True)
    assert torch.equal(out, net(X, GRAPH))
    assert [type(a) for a in attentions] == [SparseAttention, SparseAttention]
    assert [a.heads for a in attentions] == [2, 1]
    for conv, attention in zip(net.layers, attentions, strict=True):
        inputs = torch.zeros(14, conv.in_channels, dtype=torch.float64)
        expected = conv(inputs, GRAPH, return_attention_weights=True)[1]
        assert torch.equal(attention.to_dense(), expected.to_dense()), "it depends on the graph alone"


def test_edges_and_weights_are_read():
    net = model()
    edges, weight = torch.from_numpy(GRAPH.edge_index()), torch.from_numpy(GRAPH.adjacency.tocoo().data)
    assert torch.equal(net(X, edges, weight), net(X, GRAPH))
    assert not torch.allclose(net(X, edges), net(X, GRAPH))


def test_runs_on_a_graph_it_was_not_trained_on():
    net, other = model(), generic_graph(3, 26)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(X, GRAPH).square().sum().backward()
    optimizer.step()
    fresh = model()
    fresh.load_state_dict(net.state_dict())
    x = torch.randn(26, 3, dtype=torch.float64)
    assert torch.equal(fresh(x, other), net(x, other))


def test_reset_parameters_reaches_every_layer():
    net = model(root=True)
    before = [conv.weight.clone() for conv in net.layers]
    net.reset_parameters()
    assert all(not torch.equal(conv.weight, b) for conv, b in zip(net.layers, before, strict=True))


def test_dropout_acts_in_training_alone():
    net = model(dropout=0.5)
    assert not torch.equal(net(X, GRAPH), net(X, GRAPH))
    net.eval()
    assert torch.equal(net(X, GRAPH), net(X, GRAPH))


def test_it_learns():
    """Labels that only the graph tells: the component of a node."""
    torch.manual_seed(0)
    y = torch.from_numpy(GRAPH.components) % 2
    net: Any = ASGAT(14, 8, 2, heads=2, k=5, root=True, elu="hidden")
    operator = net.layers[0].operator_for(torch.eye(14), GRAPH)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for _ in range(25):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(torch.eye(14), operator), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_after_a_forward_with_a_cached_operator(copied):
    """A deep copy shares the operator, which never changes; a pickled one does without it."""
    net = model(operator="chebyshev", cached=True, propagate=True, filter=HeatFilter)
    expected = net(X, GRAPH)
    other = copied(net)
    held = other.convs[0].operators.kept
    assert held is (net.convs[0].operators.kept if copied is copy.deepcopy else None)
    assert torch.equal(other(X, GRAPH), expected)
    with torch.no_grad():
        other.convs[0].weight.zero_()
    assert torch.equal(net(X, GRAPH), expected)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"num_layers": 0}, "num_layers must be at least 1, but is 0: one attends"),
        ({"num_layers": 1, "linear": True}, "at least 2, but is 1: one attends before the linear one"),
        ({"elu": "first"}, "elu must be every, hidden, last or none, not 'first'"),
        ({"k": 0}, "k must be at least 1"),
        ({"out_heads": 0}, "heads must be at least 1"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(AsgatError, match=sentence):
        ASGAT(3, 5, 2, **arguments)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("operator", ["exact", "chebyshev"])
def test_cuda_agrees_with_cpu(operator):
    net = model(operator=operator)
    expected = net(X, GRAPH)
    torch.testing.assert_close(net.cuda()(X.cuda(), GRAPH).cpu(), expected)
