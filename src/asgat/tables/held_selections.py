"""Selections that an evaluation leaves for the training step that follows it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from asgat.filters.spectral_filter import SpectralFilter

Selection = tuple[Tensor, Tensor, Tensor]  # nodes, entries of the table, scores
Key = tuple[Any, SpectralFilter, int]  # an operator, a filter and k


class HeldSelections:
    """Selections that one part of a recorded CUDA graph leaves for another, always at the same addresses.

    Between an evaluation and the next training step no filter changes, so that both select the same. On the CPU
    operators notice that themselves; comparing coefficients on a device would wait for it.
    """

    def __init__(self) -> None:
        self.of: dict[Key, Selection] = {}

    @contextmanager
    def _active(self, giving: bool) -> Iterator[None]:
        global _current
        _current = self, giving
        try:
            yield
        finally:
            _current = None

    def keeping(self) -> Any:
        """A context in which what is selected is kept."""
        return self._active(False)

    def giving(self) -> Any:
        """A context in which what was kept is given instead of selecting again."""
        return self._active(True)


_current: tuple[HeldSelections, bool] | None = None


def held_selection(key: Key) -> Selection | None:
    """What to use instead of selecting, if there is anything."""
    return _current[0].of.get(key) if _current is not None and _current[1] else None


@torch.no_grad()
def hold_selection(key: Key, selection: Selection) -> None:
    """Keeps a selection inside :meth:`HeldSelections.keeping`; elsewhere it does nothing."""
    if _current is None or _current[1]:
        return
    held = _current[0].of.setdefault(key, selection)
    for to, value in zip(held, selection, strict=True):
        if to is not value:
            to.copy_(value)
