"""Rows of numbers of all nodes that are kept between the steps of mini-batches."""

import math
import tempfile

import numpy as np
import torch
from torch import Tensor

from asgat.config import KEPT_BYTES


class KeptRows:
    """Allocates tensors of all nodes: on a device up to a gibibyte in all, beyond that in files without a name."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        self.device, self.dtype, self.left = device, dtype, KEPT_BYTES

    def new(self, *shape: int) -> Tensor:
        """Zeros of a shape."""
        size = math.prod(shape) * self.dtype.itemsize
        if size <= self.left:
            self.left -= size
            return torch.zeros(shape, dtype=self.dtype, device=self.device)
        with tempfile.NamedTemporaryFile() as file:  # its space is freed with the map
            mapped = np.memmap(file.name, mode="w+", dtype=str(self.dtype).removeprefix("torch."), shape=shape)
        return torch.from_numpy(mapped)

    def take(self, kept: Tensor, nodes: Tensor) -> Tensor:
        """Rows of a tensor made by :meth:`new`, on the device."""
        return kept[nodes.to(kept.device)].to(self.device)
