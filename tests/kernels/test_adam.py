"""The CUDA kernel of Adam against PyTorch's optimisers."""

import pytest
import torch
from tests.kernels.devices import CUDA

from asgat.training.adam import Adam

RATES = [(0.1, 0.01), (0.05, 0.0), (0.2, 0.3)]


@pytest.mark.parametrize("device", [CUDA])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decoupled", [False, True], ids=["adam", "adamw"])
def test_every_run_moves_as_with_pytorchs_optimiser(device, dtype, decoupled):
    torch.manual_seed(0)
    start = [torch.randn(3, *shape, dtype=dtype) for shape in [(200, 120), (7,), (1, 3)]]
    stacked = [value.clone().to(device) for value in start]
    adam = Adam(stacked, RATES, stacked=True, decoupled=decoupled)
    assert adam.flat is not None
    single = [[value[run].clone().requires_grad_() for value in start] for run in range(3)]
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    optimisers = [kind(own, lr=lr, weight_decay=decay) for own, (lr, decay) in zip(single, RATES, strict=True)]
    for _ in range(5):
        gradients = [torch.randn_like(value) for value in start]
        adam.step([gradient.to(device) for gradient in gradients])
        for run, optimiser in enumerate(optimisers):
            for value, gradient in zip(single[run], gradients, strict=True):
                value.grad = gradient[run]
            optimiser.step()
    for i, value in enumerate(stacked):
        expected = torch.stack([own[i].detach() for own in single])
        torch.testing.assert_close(value.cpu(), expected, rtol=1e-5, atol=1e-6)
