"""Examples in docstrings run and give what they say."""

import doctest
import importlib
import pkgutil

import pytest
import torch

import asgat

SKIPPED = {"asgat.cli", "asgat.__main__"}  # commands, tested on their own
MODULES = sorted({m.name for m in pkgutil.walk_packages(asgat.__path__, "asgat.")} - SKIPPED)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    if name.startswith("asgat.kernels.cuda."):
        pytest.importorskip("triton", reason="needs triton, which comes with CUDA builds of torch")
    torch.manual_seed(0)
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.failed == 0


@pytest.mark.parametrize("name", ["asgat.graph.graph", "asgat.nn.asgat_conv", "asgat.nn.asgat", "asgat.filters.mlp"])
def test_there_are_examples(name):
    assert doctest.testmod(importlib.import_module(name)).attempted > 0
