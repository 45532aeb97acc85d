"""Signals filtered by polynomials of a matrix, against the polynomials themselves."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from tests.kernels.devices import DEVICES, captured, close_for_any_threads, opcheck
from tests.strategies import ZOO
from torch import Tensor

from asgat.graph import Graph
from asgat.kernels import chebyshev_filter, plain
from asgat.kernels.chebyshev import _chebyshev_filter, _chebyshev_filter_grad
from asgat.kernels.cpu import chebyshev as cpu

CUDA = DEVICES[1]
SHAPES = [(1, 1, 1), (2, 2, 3), (3, 3, 4), (2, 1, 5), (4, 4, 33)]  # heads, signals, features


def matrix(graph: Graph, device: str = "cpu", dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    csr = sp.csr_array(-graph.normalised_adjacency)
    arrays = csr.indptr.astype(np.int64), csr.indices.astype(np.int64), csr.data
    indptr, index, value = (torch.from_numpy(array).to(device) for array in arrays)
    return indptr, index, value.to(dtype)


def problem(graph, shape, order, device="cpu", dtype=torch.float64):
    heads, signals, features = shape
    generator = torch.Generator().manual_seed(0)
    c = torch.randn(heads, order + 1, dtype=dtype, generator=generator).to(device)
    x = torch.randn(graph.num_nodes, signals, features, dtype=dtype, generator=generator).to(device)
    return c.requires_grad_(), x.requires_grad_()


def dense_filter(graph, c, x):
    """Chebyshev polynomials as cosines of the eigenvalues' arc cosines."""
    value, vector = np.linalg.eigh(-graph.normalised_adjacency.toarray())
    angle, u = torch.from_numpy(np.arccos(value.clip(-1, 1))).to(x), torch.from_numpy(vector).to(x)
    response = torch.stack([torch.cos(i * angle) for i in range(c.size(1))])
    full = torch.einsum("hi,in,vn,un->hvu", c, response, u, u)
    return torch.einsum("hvu,uhf->vhf", full, x.expand(-1, c.size(0), -1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["one node", "no edges", "one edge", "generic", "loops only"])
def test_values_and_gradients(name, shape, order, device):
    graph = ZOO[name]
    c, x = problem(graph, shape, order, device)
    out, truth = chebyshev_filter(*matrix(graph, device), c, x), dense_filter(graph, c, x)
    torch.testing.assert_close(out, truth, atol=1e-10, rtol=0)
    grad = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1)).to(device)
    for ours, theirs in zip(
        torch.autograd.grad(out, (c, x), grad), torch.autograd.grad(truth, (c, x), grad), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=0)


class Mirror:
    """A boundary whose missing rows are copies of known ones, as if another process held the same rows."""

    def __init__(self, nodes):
        self.num_needed, self.nodes, self.fills = len(nodes), nodes, 0

    def fill(self, rows):
        rows[len(rows) - self.num_needed :] = rows[self.nodes.to(rows.device)]
        self.fills += 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("signals", [1, 2])
def test_rows_that_are_filled_in_count_as_those_they_copy(device, signals):
    """Columns of X that are moved to the boundary change nothing: values, gradients and the bits of rows."""
    graph = ZOO["generic"]
    indptr, index, value = matrix(graph, device)
    moved = torch.arange(graph.num_nodes)[::2]
    number = torch.arange(graph.num_nodes)
    number[moved] = graph.num_nodes + torch.arange(len(moved))
    c, x = problem(graph, (2, signals, 3), 4, device)
    boundary = Mirror(moved)
    out = chebyshev_filter(indptr, number.to(device)[index], value, c, x, boundary)
    assert boundary.fills == 4, "once per order"
    whole = chebyshev_filter(indptr, index, value, c, x)
    assert torch.equal(out, whole) if device == "cpu" else torch.allclose(out, whole)
    grad = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1)).to(device)
    for ours, theirs in zip(
        torch.autograd.grad(out, (c, x), grad), torch.autograd.grad(whole, (c, x), grad), strict=True
    ):
        torch.testing.assert_close(ours, theirs)
    plainly = plain.chebyshev_filter(indptr, number.to(device)[index], value, c, x, boundary)
    torch.testing.assert_close(plainly, out)


@pytest.mark.parametrize("device", DEVICES)
def test_the_plain_form_agrees(device):
    graph = ZOO["generic too"]
    for shape in SHAPES:
        c, x = problem(graph, shape, 4, device)
        arrays = *matrix(graph, device), c.detach(), x.detach()
        out = chebyshev_filter(*arrays)
        torch.testing.assert_close(out, plain.chebyshev_filter(*arrays))
        torch.testing.assert_close(
            _chebyshev_filter_grad(*arrays, out), plain.chebyshev_filter_grad(*arrays, out), atol=1e-9, rtol=0
        )


def test_the_operators_are_registered():
    graph = ZOO["generic"]
    c, x = problem(graph, (2, 2, 3), 3)
    opcheck(_chebyshev_filter, *matrix(graph), c, x)
    opcheck(_chebyshev_filter_grad, *matrix(graph), c.detach(), x.detach(), x.detach())


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_blocks_of_rows_change_nothing_but_the_sums_over_nodes(monkeypatch, shape, rows):
    graph = ZOO["generic too"]
    c, x = (part.detach() for part in problem(graph, shape, 4))
    arrays = *matrix(graph), c, x
    out = chebyshev_filter(*arrays)
    to_c, to_x = _chebyshev_filter_grad(*arrays, out)
    monkeypatch.setattr(cpu, "ROWS", rows)
    assert torch.equal(chebyshev_filter(*arrays), out)
    found = _chebyshev_filter_grad(*arrays, out)
    assert torch.equal(found[1], to_x)
    torch.testing.assert_close(found[0], to_c)


@pytest.mark.parametrize("rows", [100, cpu.ROWS])
def test_a_head_does_not_depend_on_the_others(monkeypatch, rows):
    monkeypatch.setattr(cpu, "ROWS", rows)
    graph = Graph.from_edges(np.random.default_rng(0).integers(0, 500, (2, 2000)), 500)
    c, x = problem(graph, (4, 4, 3), 6, dtype=torch.float32)
    arrays = matrix(graph, dtype=torch.float32)
    out = chebyshev_filter(*arrays, c, x)
    gradients = torch.autograd.grad(out.sin().sum(), (c, x))
    for head in range(4):
        own = slice(head, head + 1)
        alone = chebyshev_filter(*arrays, c[own], x[:, own])
        assert torch.equal(alone, out[:, own])
        single = torch.autograd.grad(alone.sin().sum(), (c, x))
        assert torch.equal(single[0][own], gradients[0][own])
        assert torch.equal(single[1][:, own], gradients[1][:, own])


@pytest.mark.parametrize("rows", [512, cpu.ROWS])
def test_several_threads(monkeypatch, rows):
    monkeypatch.setattr(cpu, "ROWS", rows)
    graph = Graph.from_edges(np.random.default_rng(0).integers(0, 3000, (2, 9000)), 3000)
    c, x = problem(graph, (2, 2, 32), 4, dtype=torch.float32)
    arrays = matrix(graph, dtype=torch.float32)

    def step():
        out = chebyshev_filter(*arrays, c, x)
        return out.detach(), *torch.autograd.grad(out.sin().sum(), x)

    close_for_any_threads(step)


def test_other_precisions_are_promoted():
    graph = ZOO["generic"]
    c, x = (part.detach() for part in problem(graph, (2, 2, 3), 3))
    arrays = matrix(graph)
    assert chebyshev_filter(*arrays, c.half(), x.bfloat16()).dtype == torch.float32
    assert chebyshev_filter(*arrays, c, x.float()).dtype == torch.float64


@pytest.mark.parametrize("device", [CUDA])
def test_it_can_be_captured(device):
    graph = ZOO["generic"]
    c, x = problem(graph, (2, 2, 16), 3, device, torch.float32)
    arrays = matrix(graph, device, torch.float32)

    def step():
        out = chebyshev_filter(*arrays, c, x)
        return out.detach(), *torch.autograd.grad(out.square().sum(), (c, x))

    recorded, outputs = captured(step)
    with torch.no_grad():
        x.mul_(2.0)
    recorded.replay()
    for one, other in zip(outputs, step(), strict=True):
        torch.testing.assert_close(one, other)
