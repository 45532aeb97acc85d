"""Bit-identical results on every device."""

import os
from typing import Any

NOTE = "--deterministic has no effect on the CPU, where the same seed always gives the same numbers."


def be_deterministic(device: Any) -> str | None:
    """Makes this process compute bit-identical numbers from the same seed; returns a note if it did so before.

    On CUDA, parallel sums get a fixed order, which costs time, and an operation without a deterministic implementation
    raises an error. The change lasts as long as the process: it is for commands, not for library code.

    Args:
        device: a ``torch.device``; nothing may have been computed on it yet.
    """
    import torch

    if device.type == "cpu":
        return NOTE
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when it is first used
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    return None
