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

    def groups(self, most: int) -> list[list[int]]:
        """Numbers of parameters whose gradients are joined: all with at most ``most`` entries, and each other alone."""
        small = [i for i, shape in enumerate(self.shapes) if shape.numel() <= most]
        large = [[i] for i, shape in enumerate(self.shapes) if shape.numel() > most]
        return [small, *large] if small else large

    def blocks(self, group: Sequence[int], size: int) -> Tensor:
        """Pieces of at most ``size`` entries of one parameter of a group, [pieces, 3]: begin, end, and the begin in the
        joined gradients of the group."""
        rows, joined = [], 0
        for i in group:
            own, first = self.shapes[i].numel(), self.begins[i]
            for start in range(0, own, size):
                rows.append((first + start, first + min(start + size, own), joined + start))
            joined += own
        return torch.tensor(rows, dtype=torch.int64, device=self.value.device).view(-1, 3)


def joined(gradients: Sequence[Tensor]) -> Tensor:
    """The gradients of a group, one after the other; a single one is not copied."""
    parts = [gradient.reshape(-1) for gradient in gradients]
    return parts[0] if len(parts) == 1 else torch.cat(parts)
