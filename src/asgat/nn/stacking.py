"""Stub."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn


def stackable(model: nn.Module) -> bool:
    return False


def stack(models: Sequence[nn.Module]) -> nn.Module:
    raise NotImplementedError


def load_run_state(model: nn.Module, row: int, state: dict[str, Tensor]) -> None:
    raise NotImplementedError


def count_dropouts(model: nn.Module, *inputs: Any) -> int:
    return 0
