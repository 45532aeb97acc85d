import pytest
import torch
from tests.kernels.devices import DEVICES

from asgat.kernels.dense_matmul import aligned, dense_matmul


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 3, 16, 33])
def test_products_and_gradients(device, dtype, width):
    x = torch.randn(37, 11, dtype=dtype, device=device, requires_grad=True)
    weight = torch.randn(11, width, dtype=dtype, device=device, requires_grad=True)
    out, expected = dense_matmul(x, weight), x @ weight
    torch.testing.assert_close(out, expected)
    factor = torch.randn_like(out)
    torch.testing.assert_close(
        torch.autograd.grad(out, (x, weight), factor), torch.autograd.grad(expected, (x, weight), factor)
    )


def test_where_a_tensor_begins_does_not_change_the_product():
    rows, weight = torch.randn(41, 11), torch.randn(11, 3)
    moved = torch.empty(41 * 11 + 1)[1:].view(41, 11).copy_(rows)
    assert torch.equal(dense_matmul(moved, weight), dense_matmul(rows, weight))


def test_aligned_copies_what_begins_elsewhere():
    x = torch.randn(64)
    assert aligned(x) is x
    moved = aligned(x[1:])
    assert moved.data_ptr() % 64 == 0
    assert torch.equal(moved, x[1:])
