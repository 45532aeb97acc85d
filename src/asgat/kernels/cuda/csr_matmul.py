"""CUDA kernel of :func:`asgat.kernels.csr_matmul`."""

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor


def csr_matmul(indptr: Tensor, index: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    rows, features = indptr.numel() - 1, dense.size(1)
    out = dense.new_empty(rows, features)
    if out.numel() == 0 or index.numel() == 0:
        return out.zero_()
    # About half a row of entries at once, so that long rows have many loads in flight and short ones little idle.
    entries = min(64, max(4, triton.next_power_of_2(index.numel() // rows) // 2))
    block = min(2048 // entries, max(16, triton.next_power_of_2(features)))
    with torch.cuda.device(dense.get_device()):
        _csr_kernel[rows, triton.cdiv(features, block)](
            indptr.contiguous(), index.contiguous(), value.contiguous(), dense.contiguous(), out, features,
            ENTRIES=entries, BLOCK=block,
        )  # fmt: skip
    return out


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _csr_kernel(
    indptr: tl.tensor, index: tl.tensor, value: tl.tensor, dense: tl.tensor, out: tl.tensor, features: tl.tensor,
    ENTRIES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """One program sums one row, over a block of features."""
    row = tl.program_id(0).to(tl.int64)
    feature = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_features = feature < features
    begin = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    total = tl.zeros([ENTRIES, BLOCK], dtype=out.dtype.element_ty)
    for start in range(begin, end, ENTRIES):
        entry = start + tl.arange(0, ENTRIES)
        weight = tl.load(value + entry, mask=entry < end, other=0.0)
        source = tl.load(index + entry, mask=entry < end, other=0).to(tl.int64)
        used = weight != 0.0
        place = dense + source[:, None] * features + feature[None, :]
        total += weight[:, None] * tl.load(place, mask=used[:, None] & in_features[None, :], other=0.0)
    tl.store(out + row * features + feature, tl.sum(total, axis=0), mask=in_features)
