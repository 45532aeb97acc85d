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
    return import_module(f"asgat.kernels.{device}.{operator}" if _has_compiler(device) else "asgat.kernels.plain")


@cache
def _has_compiler(device: str) -> bool:
    return device in COMPILER and find_spec(COMPILER[device]) is not None


def is_compiled(device: torch.device) -> bool:
    """Whether kernels on this device are compiled ones; elsewhere they are PyTorch's operators."""
    return _has_compiler(device.type)


def compute_dtype(*tensors: Tensor) -> torch.dtype:
    """float64 if any of the tensors is, otherwise float32: the precision the kernels compute in."""
    return torch.float64 if any(tensor.dtype == torch.float64 for tensor in tensors) else torch.float32
