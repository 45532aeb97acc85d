import pytest
import torch
import torch.nn.functional as F
from tests.strategies import ZOO

from asgat.config import ASGATConfig
from asgat.errors import AsgatError
from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.asgat_linear import ASGATLinear
from asgat.nn.from_config import make_operator
from asgat.nn.registry import make_config, model_spec

GRAPH = ZOO["generic"]
N = GRAPH.num_nodes


def layers_of(model: ASGATLinear) -> tuple[ASGATConv, torch.nn.Linear]:
    conv, linear = model.layers
    assert isinstance(conv, ASGATConv)
    assert isinstance(linear, torch.nn.Linear)
    return conv, linear


@pytest.mark.parametrize("elu", ["every", "hidden", "last", "none"])
def test_it_is_attention_then_a_linear_map(elu):
    torch.manual_seed(0)
    model = ASGATLinear(5, 4, 3, heads=2, k=3, elu=elu).eval()
    x = torch.randn(N, 5)
    out, (attention,) = model(x, GRAPH, return_attention_weights=False)
    conv, linear = layers_of(model)
    hidden = (attention.to_dense() @ (x @ conv.weight)).transpose(0, 1).flatten(1) + conv.bias
    hidden = F.elu(hidden) if elu in ("every", "hidden") else hidden
    truth = hidden @ linear.weight.t() + linear.bias
    truth = F.elu(truth) if elu in ("every", "last") else truth
    torch.testing.assert_close(out, truth, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(x, GRAPH), out)


def test_only_attention_layers_are_listed_and_all_start_anew():
    model = ASGATLinear(5, 4, 3, num_layers=3, heads=2, k=3)
    assert len(model.convs) == 2
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.reset_parameters()
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert {"layers.0.weight", "layers.1.weight", "layers.2.weight"} <= changed


def test_a_linear_layer_alone_is_refused():
    with pytest.raises(AsgatError, match="must be one of attention"):
        ASGATLinear(5, 4, 3, num_layers=1)


def test_dropout_acts_on_the_linear_layer_too():
    torch.manual_seed(0)
    model = ASGATLinear(5, 64, 3, heads=1, k=3, dropout=0.9, elu="none")
    conv, linear = layers_of(model)
    assert conv.bias is not None
    with torch.no_grad():  # attention that gives the same to all: only the last dropout can tell nodes apart
        conv.weight.zero_()
        conv.bias.fill_(1.0)
        linear.weight.fill_(1.0)
    out = model.train()(torch.ones(N, 5), GRAPH)
    assert out[:, 0].unique().numel() > 1


def test_the_registry_has_it():
    config = make_config("asgat-linear", hidden=4, heads=2, k=3)
    assert isinstance(config, ASGATConfig)
    net = model_spec("asgat-linear").make(config, 5, 3, N)
    assert isinstance(net, ASGATLinear)
    assert len(net.certificates(make_operator(GRAPH, config))) == 1
