"""CUDA kernel of :class:`asgat.training.adam.Adam`: many parameters in one launch."""

import math

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor


def adam_step(
    value: Tensor, grad: Tensor, mean: Tensor, square: Tensor, blocks: Tensor, rates: Tensor, steps: Tensor,
    beta1: float, beta2: float, eps: float, decoupled: bool, size: int,
) -> None:  # fmt: skip
    """Updates ``value``, ``mean`` and ``square`` in place.

    Args:
        value, mean, square: parameters and the two moments, one dimension each.
        grad: gradients of some of the parameters, one dimension.
        blocks: begin and end of each program's entries, and where their gradients begin, [programs, 3].
        rates: learning rate and weight decay, [2], in double precision.
        steps: number of this step, of which the first entry counts, [parameters].
        size: entries per program at most, a power of two.
    """
    with torch.cuda.device(value.get_device()):
        _adam_kernel[(blocks.size(0),)](
            value, grad, mean, square, blocks, rates, steps, BETA1=beta1, BETA2=beta2,
            LOG_BETA1=math.log(beta1), LOG_BETA2=math.log(beta2), EPS=eps, DECOUPLED=decoupled, BLOCK=size,
        )  # fmt: skip


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _adam_kernel(
    value: tl.tensor, grad: tl.tensor, mean: tl.tensor, square: tl.tensor, blocks: tl.tensor, rates: tl.tensor,
    steps: tl.tensor, BETA1: tl.constexpr, BETA2: tl.constexpr, LOG_BETA1: tl.constexpr,
    LOG_BETA2: tl.constexpr, EPS: tl.constexpr, DECOUPLED: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    block = blocks + 3 * tl.program_id(0)
    place = tl.load(block) + tl.arange(0, BLOCK)
    within = place < tl.load(block + 1)
    rate, decay = tl.load(rates), tl.load(rates + 1)
    count = tl.load(steps).to(tl.float64)
    p = tl.load(value + place, mask=within, other=0.0)
    g = tl.load(grad + tl.load(block + 2) + tl.arange(0, BLOCK), mask=within, other=0.0)
    m = tl.load(mean + place, mask=within, other=0.0)
    v = tl.load(square + place, mask=within, other=0.0)
    if DECOUPLED:
        p = p * (1.0 - rate * decay).to(p.dtype)
    else:
        g += decay.to(p.dtype) * p
    m += (1.0 - BETA1) * (g - m)
    v = BETA2 * v + (1.0 - BETA2) * g * g
    first = (rate / (1.0 - tl.exp(count * LOG_BETA1))).to(p.dtype)
    second = tl.sqrt(1.0 - tl.exp(count * LOG_BETA2)).to(p.dtype)
    p -= first * m / (tl.sqrt(v) / second + EPS)
    tl.store(value + place, p, mask=within)
    tl.store(mean + place, m, mask=within)
    tl.store(square + place, v, mask=within)
