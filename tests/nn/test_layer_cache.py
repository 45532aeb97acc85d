import copy
import pickle

import pytest
from tests.strategies import ZOO

from asgat.nn import ASGATConv
from asgat.nn.layer_cache import LayerCache
from asgat.spectral import ChebyshevOperator


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))])
def test_a_copy_is_empty(copied):
    cache = LayerCache()
    cache.attention = ((), ASGATConv(2, 2).attention(ChebyshevOperator(ZOO["path"], order=2)))
    assert copied(cache).attention is None
