"""The same numbers every time, on devices too."""

from __future__ import annotations

import os
from typing import Any

NOTE = "--deterministic changes nothing on the CPU, where the same seed gives the same numbers anyway."


def be_deterministic(device: Any) -> str | None:
    """From now on the same seed gives the same numbers on this device, bit by bit; returns a note where it did before.

    On CUDA, sums that are otherwise added in whatever order threads arrive get a fixed order, which costs time, and an
    operation that has none is refused.

    Args:
        device: a ``torch.device``. To be called before anything is computed on it.
    """
    import torch

    if device.type == "cpu":
        return NOTE
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when it is first used
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    return None
