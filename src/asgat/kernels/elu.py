"""The exponential linear unit."""

import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.kernels.operator import elementwise


def elu(x: Tensor) -> Tensor:
    """``torch.nn.functional.elu(x)``, several times as fast on the CPU, where every entry is computed alike: the result
    does not depend on how many are computed in one call.

    Cost: O(entries) time forward and backward, no memory in addition to the output.
    """
    if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
        return F.elu(x)
    out: Tensor = _elu(x)
    return out


_elu, _elu_grad = elementwise("elu")
