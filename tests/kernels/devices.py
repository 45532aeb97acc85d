"""The devices the kernels are tested on, and what every operator must survive."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

CUDA = pytest.param(
    "cuda",
    marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
)
DEVICES = ["cpu", CUDA]
EXAMPLES = 12 if torch.cuda.is_available() else 40  # on CUDA nearly every shape compiles a kernel


def opcheck(operator: Any, *arguments: Any) -> None:
    """Schema, fake tensors, autograd registration and tracing with dynamic shapes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf")  # opcheck of torch 2.15
        torch.library.opcheck(getattr(operator, "registered", operator), arguments)


def close_for_any_threads(compute: Callable[[], tuple[Tensor, ...]]) -> None:
    """Results with 1 and with 2 threads differ by rounding only: two threads never write to one place."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = compute()
        torch.set_num_threads(2)
        together = compute()
    finally:
        torch.set_num_threads(before)
    for one, two in zip(alone, together, strict=True):
        torch.testing.assert_close(two, one, rtol=1e-5, atol=1e-5 * float(one.detach().abs().max()))


def captured(step: Callable[[], tuple[Tensor, ...]]) -> tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...]]:
    """A step captured as a CUDA graph, after the warm-up that compiles its kernels; replay it to fill its outputs."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = tuple(output.detach() for output in step())  # a graph kept would be one of the capture's stream
    return graph, outputs
