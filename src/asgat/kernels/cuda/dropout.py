"""CUDA kernel of :func:`asgat.kernels.dropout`."""

from functools import cache

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

BLOCK = 1024  # entries per program


def dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    out = torch.empty_like(x)
    with torch.cuda.device(x.get_device()):
        _drop_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, chance(p, x.device), seed, x.numel(), BLOCK=BLOCK)
    return out


@cache
def chance(p: float, device: torch.device) -> Tensor:
    """A probability in double precision on the device. Copied once and never freed: a CUDA graph can neither record a
    copy from the host nor hold a tensor, and numbers are passed to kernels in single precision."""
    return torch.tensor([p], dtype=torch.float64, device=device)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _mix(word: tl.tensor) -> tl.tensor:
    """As on the CPU."""
    word = word ^ (word >> 16)
    word = word * 0x7FEB352D
    word = word ^ (word >> 15)
    word = word * 0x846CA68B
    return word ^ (word >> 16)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def kept_scale(place: tl.tensor, seed: tl.tensor, chance: tl.tensor) -> tl.tensor:
    """What the entries at some places, in 64 bits, are multiplied by: 0, or 1 / (1 - chance) if they are kept.

    ``chance`` is in double precision.
    """
    low, high = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    word = _mix(_mix(place.to(tl.uint32) ^ low) + high + (place >> 32).to(tl.uint32))
    limit = tl.minimum(chance * 4294967296.0, 4294967295.0).to(tl.int64).to(tl.uint32)
    return tl.where(word >= limit, 1.0 / (1.0 - chance), 0.0)


@triton.jit(do_not_specialize=["size"])  # type: ignore[untyped-decorator,unused-ignore]
def _drop_kernel(
    x: tl.tensor, out: tl.tensor, p: tl.tensor, seed: tl.tensor, size: tl.tensor, BLOCK: tl.constexpr
) -> None:
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    within = place < size
    held = tl.load(x + place, mask=within, other=0.0)
    scale = kept_scale(place, tl.load(seed), tl.load(p)).to(held.dtype)
    kept = tl.where(scale > 0.0, held * scale, 0.0)  # also of infinite entries
    tl.store(out + place, kept.to(out.dtype.element_ty), mask=within)
