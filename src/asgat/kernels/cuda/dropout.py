"""CUDA kernel of :func:`asgat.kernels.dropout_runs`."""

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

BLOCK = 1024  # entries per program


def dropout_runs(x: Tensor, p: Tensor, seed: Tensor) -> Tensor:
    size = x.size(1)
    out = x.new_empty(p.numel(), size)
    with torch.cuda.device(x.get_device()):
        _drop_kernel[triton.cdiv(size, BLOCK), p.numel()](
            x, out, p, seed.contiguous(), size, 0 if x.size(0) == 1 else size, BLOCK=BLOCK
        )
    return out


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _mix(word: tl.tensor) -> tl.tensor:
    """As on the CPU, in the low half of 64 bits, to avoid conversions."""
    word = word ^ (word >> 16)
    word = (word * 0x7FEB352D) & 0xFFFFFFFF
    word = word ^ (word >> 15)
    word = (word * 0x846CA68B) & 0xFFFFFFFF
    return word ^ (word >> 16)


@triton.jit(do_not_specialize=["size", "stride"])  # type: ignore[untyped-decorator,unused-ignore]
def _drop_kernel(
    x: tl.tensor, out: tl.tensor, p: tl.tensor, seed: tl.tensor, size: tl.tensor, stride: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    within = place < size
    drawn = tl.load(seed + run)
    low, high = drawn & 0xFFFFFFFF, drawn >> 32
    word = _mix((_mix((place & 0xFFFFFFFF) ^ low) + high + (place >> 32)) & 0xFFFFFFFF)
    held = tl.load(x + run * stride + place, mask=within, other=0.0)
    chance = tl.load(p + run)  # in double precision
    limit = tl.minimum(chance * 4294967296.0, 4294967295.0).to(tl.int64)
    kept = tl.where(word >= limit, held * (1.0 / (1.0 - chance)).to(held.dtype), 0.0)
    tl.store(out + run * size + place, kept.to(out.dtype.element_ty), mask=within)
