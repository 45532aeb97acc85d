"""All parameters of a model in one tensor, so that one CUDA kernel updates or copies them."""

from collections.abc import Sequence

import torch
from torch import Tensor

ALIGNED = 64  # entries: matrix products are slower on addresses that are not multiples of 256 bytes


class FlatParameters:
    """Moves parameters into one tensor; they become views of it.

    Args:
        parameters: of one dtype and device.

    Attributes:
        value: the tensor, with gaps between parameters.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.shapes = [parameter.shape for parameter in parameters]
        self.begins, size = [], 0
        for shape in self.shapes:
            self.begins.append(size)
            size += -(-shape.numel() // ALIGNED) * ALIGNED
        self.value = parameters[0].new_zeros(size).detach()
        self._gaps = [
            self.value.new_zeros(end - begin - shape.numel())
            for begin, end, shape in zip(self.begins, [*self.begins[1:], size], self.shapes, strict=True)
        ]
        with torch.no_grad():
            for parameter, own in zip(parameters, self.views(self.value), strict=True):
                own.copy_(parameter)
                parameter.data = own

    def views(self, flat: Tensor) -> list[Tensor]:
        """The parts of a tensor of the same layout, [..., size], that belong to each parameter."""
        return [
            flat[..., begin : begin + shape.numel()].view(*flat.shape[:-1], *shape)
            for begin, shape in zip(self.begins, self.shapes, strict=True)
        ]

    def join(self, gradients: Sequence[Tensor]) -> Tensor:
        """Tensors of the parameters' shapes as one of the layout of ``value``."""
        return torch.cat([part for pair in zip(gradients, self._gaps, strict=True) for part in _flat(pair)])

    def blocks(self, runs: int, size: int) -> Tensor:
        """Begin, end and run of pieces of at most ``size`` entries of one run and parameter, [pieces, 3]."""
        rows = []
        for begin, shape in zip(self.begins, self.shapes, strict=True):
            own = shape.numel() // runs
            for run in range(runs):
                first, last = begin + run * own, begin + (run + 1) * own
                rows += [(start, min(start + size, last), run) for start in range(first, last, size)]
        return torch.tensor(rows, dtype=torch.int64, device=self.value.device).view(-1, 3)


def _flat(pair: tuple[Tensor, Tensor]) -> list[Tensor]:
    gradient, gap = pair
    return [gradient.reshape(-1), gap] if gap.numel() else [gradient.reshape(-1)]
