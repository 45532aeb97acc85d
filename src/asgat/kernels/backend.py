"""Which implementation serves which device."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

COMPILER = {"cpu": "numba", "cuda": "triton"}


def kernel(operator: str, name: str) -> Callable[..., Any]:
    """A function that calls the kernel of this name for the device of its first argument; loads it on that call."""
    return lambda *arguments: getattr(_load(operator, arguments[0].device.type), name)(*arguments)


@cache
def _load(operator: str, device: str) -> Any:
    compiler = COMPILER.get(device)
    if compiler is None or find_spec(compiler) is None:
        return import_module("asgat.kernels.plain")
    return import_module(f"asgat.kernels.{device}.{operator}")


def compute_dtype(*tensors: Tensor) -> torch.dtype:
    """float64 if any of the tensors is, otherwise float32: the precision the kernels compute in."""
    return torch.float64 if any(tensor.dtype == torch.float64 for tensor in tensors) else torch.float32
