from typing import Any

import pytest
import torch
from tests.strategies import ZOO

from asgat.nn.asgat import ASGAT
from asgat.nn.ensemble import AveragedModels, Ensemble
from asgat.nn.registry import make_config, model_spec
from asgat.tables import TableOperator

SIZES = 3, 2, 9  # features, classes, nodes


def ensemble(members=3, **settings) -> Any:
    config = make_config("asgat-plus", members=members, **{"hidden": 4, "heads": 2, "k": 3, "order": 4, **settings})
    torch.manual_seed(0)
    return model_spec("asgat-plus").make(config, *SIZES).double().eval()


def problem() -> Any:
    graph = ZOO["generic"]
    x = torch.randn(graph.num_nodes, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return x, TableOperator(graph, order=4, candidates=4, dtype=torch.float64)


def test_it_averages_the_probabilities_of_networks_that_share_nothing():
    net, (x, operator) = ensemble(), problem()
    each = torch.stack([member(x, operator).softmax(-1) for member in net.members])
    assert (each[0] - each[1]).abs().max() > 1e-3
    torch.testing.assert_close(net(x, operator).softmax(-1), each.mean(0))
    torch.testing.assert_close(net(x, operator).exp().sum(-1), torch.ones(len(x), dtype=torch.float64))


def test_huge_logits_do_not_overflow():
    net, (x, operator) = ensemble(2), problem()
    for member in net.members:
        for conv in member.convs:
            conv.weight.data.mul_(1e4)
    assert net(x, operator).isfinite().all()


def test_what_is_looked_at_is_the_first_members():
    net, (x, operator) = ensemble(), problem()
    assert not isinstance(net, ASGAT)
    first = net.members[0]
    assert net.convs == first.convs
    out, attentions = net(x, operator, return_attention_weights=True)
    torch.testing.assert_close(out, net(x, operator))
    _, own = first(x, operator, return_attention_weights=True)
    assert all(torch.equal(a.index, b.index) for a, b in zip(attentions, own, strict=True))
    assert len(net.certificates(operator)) == 6


def test_one_member_is_the_network_itself():
    assert type(ensemble(1)) is ASGAT
    assert type(ensemble(2)) is Ensemble
    before = [value.clone() for value in ensemble(2).parameters()]
    again = ensemble(2)
    again.reset_parameters()
    assert any(not torch.equal(a, b) for a, b in zip(before, again.parameters(), strict=True))


@pytest.mark.parametrize("model", ["asgat-cheb", "asgat-exact", "asgat-arma", "asgat-heat", "asgat-linear"])
def test_the_papers_models_are_single(model):
    assert model_spec(model).fixed["members"] == 1


@pytest.mark.parametrize("name", ["mlp", "gcn", "linkx"])
def test_a_baseline_can_have_members(name):
    config = make_config(name, members=2, hidden=4, dropout=0.0)
    model = model_spec(name).make(config, 3, 2, 5)
    assert isinstance(model, AveragedModels)
    edges = [] if name == "mlp" else [torch.tensor([[0, 1, 2], [1, 2, 3]])]
    x = torch.randn(5, 3)
    out = model.eval()(x, *edges)
    each = torch.stack([member(x, *edges).softmax(-1) for member in model.members])
    torch.testing.assert_close(out.exp(), each.mean(0))
    assert not torch.equal(each[0], each[1])
