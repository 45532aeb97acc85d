"""csr_matmul against the dense product."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.devices import CUDA, DEVICES, EXAMPLES, captured, close_for_any_threads, opcheck
from torch import Tensor

from asgat.kernels import csr_matmul
from asgat.kernels.csr_matmul import _csr_matmul, csr_product
from asgat.kernels.sparse_features import SparseFeatures

Parts = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def problem(
    n: int, m: int, f: int, density: float = 0.3, dtype: torch.dtype = torch.float64, device: str = "cpu"
) -> tuple[Parts, Tensor, Tensor]:
    """The pattern with its values, the matrix in dense form, and the right factor."""
    generator = torch.Generator().manual_seed(n + 100 * m)
    matrix = torch.randn(n, m, generator=generator, dtype=dtype)
    matrix[torch.rand(n, m, generator=generator) >= density] = 0
    x = SparseFeatures.from_dense(matrix, device, dtype)
    parts = x.indptr, x.index, x.value, x.indptr_t, x.index_t, x.order_t
    dense = torch.randn(m, f, generator=generator, dtype=dtype).to(device)
    return parts, matrix.to(device), dense.requires_grad_()


def gradient(out: Tensor, dense: Tensor) -> Tensor:
    direction = torch.linspace(-1, 2, out.numel(), dtype=out.dtype, device=out.device).view_as(out)
    return torch.autograd.grad(out, dense, direction)[0]


@pytest.mark.parametrize("device", DEVICES)
@given(n=st.integers(0, 9), m=st.integers(1, 9), f=st.integers(0, 9), density=st.sampled_from([0.0, 0.2, 1.0]))
@settings(max_examples=EXAMPLES, deadline=None)
def test_values_and_gradients_of_any_shape(device: str, n: int, m: int, f: int, density: float) -> None:
    parts, matrix, dense = problem(n, m, f, density, device=device)
    out = csr_matmul(*parts, dense)
    torch.testing.assert_close(out, matrix @ dense)
    torch.testing.assert_close(gradient(out, dense), gradient(matrix @ dense, dense))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n", "m", "f", "density"), [(300, 900, 512, 0.02), (900, 50, 64, 0.5), (40, 30, 2000, 0.1)])
def test_large_problems_in_float32(device: str, n: int, m: int, f: int, density: float) -> None:
    parts, matrix, dense = problem(n, m, f, density, torch.float32, device)
    out = csr_matmul(*parts, dense)
    torch.testing.assert_close(out, matrix @ dense, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(gradient(out, dense), gradient(matrix @ dense, dense), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_gradcheck(device: str) -> None:
    parts, _, dense = problem(6, 5, 3, device=device)
    assert torch.autograd.gradcheck(lambda d: csr_matmul(*parts, d), dense)


def test_several_threads() -> None:
    parts, _, dense = problem(2000, 700, 64, 0.05, torch.float32)

    def compute() -> tuple[Tensor, ...]:
        out = csr_matmul(*parts, dense)
        return out, gradient(out, dense)

    close_for_any_threads(compute)


@pytest.mark.parametrize("device", DEVICES)
def test_operators_are_well_formed(device: str) -> None:
    parts, _, dense = problem(6, 5, 3, device=device)
    opcheck(_csr_matmul, *parts, dense)
    opcheck(csr_product, *parts[:3], dense.detach())


@pytest.mark.parametrize("device", DEVICES)
def test_compiles_without_a_break(device: str) -> None:
    parts, matrix, dense = problem(6, 5, 3, device=device)
    out = torch.compile(csr_matmul, fullgraph=True, backend="aot_eager")(*parts, dense)
    torch.testing.assert_close(out, matrix @ dense)
    torch.testing.assert_close(gradient(out, dense), gradient(matrix @ dense, dense))


@pytest.mark.parametrize("device", [CUDA])
def test_captured_step_replays(device: str) -> None:
    parts, matrix, dense = problem(300, 200, 70, 0.1, torch.float32, device)

    def step() -> tuple[Tensor, ...]:
        out = csr_matmul(*parts, dense)
        return out.detach(), gradient(out, dense)

    graph, outputs = captured(step)
    parts[2].mul_(-3.0)
    graph.replay()
    torch.testing.assert_close(outputs[0], -3 * matrix @ dense, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(outputs[1], gradient(-3 * matrix @ dense, dense), rtol=1e-4, atol=1e-3)
