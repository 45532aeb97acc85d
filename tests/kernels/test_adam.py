"""The CUDA kernel of Adam against PyTorch's optimisers."""

import pytest
import torch
from tests.kernels.devices import CUDA

from asgat.training.adam import Adam


@pytest.mark.parametrize("device", [CUDA])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decoupled", [False, True], ids=["adam", "adamw"])
@pytest.mark.parametrize(("lr", "decay"), [(0.1, 0.01), (0.05, 0.0)])
def test_parameters_move_as_with_pytorchs_optimiser(device, dtype, decoupled, lr, decay):
    torch.manual_seed(0)
    start = [torch.randn(shape, dtype=dtype) for shape in [(600, 120), (7,), (1, 3)]]
    own = [value.clone().to(device) for value in start]
    adam = Adam(own, lr, decay, decoupled)
    assert adam.flat is not None
    reference = [value.clone().requires_grad_() for value in start]
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    optimiser = kind(reference, lr=lr, weight_decay=decay)
    for _ in range(5):
        for value in reference:
            value.grad = torch.randn_like(value)
        adam.step([value.grad.to(device) for value in reference if value.grad is not None])
        optimiser.step()
    for value, expected in zip(own, reference, strict=True):
        torch.testing.assert_close(value.cpu(), expected.detach(), rtol=1e-5, atol=1e-6)
