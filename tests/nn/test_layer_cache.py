import copy
import pickle
from typing import Any, cast

import pytest
import torch
from tests.strategies import ZOO

from asgat.filters import HeatFilter, MLPFilter
from asgat.nn import ASGATConv
from asgat.nn.layer_cache import LayerCache
from asgat.nn.stacking import stack
from asgat.spectral import ChebyshevOperator


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))])
def test_a_copy_is_empty(copied):
    cache = LayerCache()
    cache.attention = ((), ASGATConv(2, 2).attention(ChebyshevOperator(ZOO["path"], order=2)))
    assert copied(cache).attention is None


def test_the_filter_of_stacked_runs_is_one_object_until_it_is_replaced():
    cache, plain = LayerCache(), HeatFilter(2)
    assert cache.filter_of(plain, None) is plain
    layer = stack([ASGATConv(2, 2, filter=HeatFilter) for _ in range(3)])
    stacked = cache.filter_of(layer.filter, 3)
    assert stacked.heads == 3
    assert cache.filter_of(layer.filter, 3) is stacked
    other = stack([ASGATConv(2, 2, filter=HeatFilter) for _ in range(3)])
    assert cache.filter_of(other.filter, 3) is not stacked


def test_the_filter_of_a_stack_of_one_is_that_of_its_run():
    layer: Any = stack([ASGATConv(2, 2, heads=2)])
    cache = LayerCache()
    one = cast(Any, cache.filter_of(layer.filter, 1))
    assert cache.filter_of(layer.filter, 1) is one
    assert one.heads == 2
    single = MLPFilter(2)
    single.load_state_dict({name: value[0] for name, value in layer.filter.state_dict().items()})
    points = torch.linspace(0, 2, 5)
    assert torch.equal(one(points), single(points))
