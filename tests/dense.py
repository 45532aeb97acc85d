"""The plainest dense mathematics: what the package's sparse and blocked code is held against.

Nothing in here calls the code under test, except filters, which are evaluated at frequencies.
"""

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asgat.filters import HeatFilter, MLPFilter, PolynomialFilter, SpectralFilter
from asgat.graph import Graph

Array = npt.NDArray[np.float64]


def laplacian(adjacency: Array) -> Array:
    """The normalised Laplacian, entry by entry."""
    n = len(adjacency)
    degree = adjacency.sum(axis=1)
    out = np.eye(n)
    for u in range(n):
        for v in range(n):
            if adjacency[u, v] > 0:
                out[u, v] -= adjacency[u, v] / np.sqrt(degree[u] * degree[v])
    return out


def eigen(graph: Graph) -> tuple[Array, Array]:
    value, vector = np.linalg.eigh(laplacian(graph.adjacency.toarray()))
    return value.clip(0.0, 2.0), vector


def hops(graph: Graph) -> npt.NDArray[np.int64]:
    """Breadth-first distances [N, N]; -1 between components."""
    dense = graph.adjacency.toarray() > 0
    distance = np.full(dense.shape, -1, dtype=np.int64)
    for start in range(len(dense)):
        distance[start, start] = 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for other in np.flatnonzero(dense[node]):
                if distance[start, other] < 0:
                    distance[start, other] = distance[start, node] + 1
                    queue.append(int(other))
    return distance


def spectral_matrix(vector: Array, response: Tensor) -> Tensor:
    """U diag(response) Uᵀ per head, [heads, N, N], for a response [N, heads]."""
    u = torch.from_numpy(vector)
    return torch.stack([u @ torch.diag(column) @ u.t() for column in response.t()])


def exact_scores(graph: Graph, filter: SpectralFilter) -> Tensor:
    value, vector = eigen(graph)
    return spectral_matrix(vector, filter(torch.from_numpy(value)))


def jackson_by_autocorrelation(order: int) -> Array:
    """Jackson's factors as the normalised autocorrelation of half a sine wave."""
    wave = np.sin(np.pi * np.arange(1, order + 2) / (order + 2))
    full = np.correlate(wave, wave, mode="full")[order:]
    return np.asarray(full / full[0])


def interpolant_scores(
    graph: Graph,
    filter: SpectralFilter,
    order: int,
    points: int | None = None,
    lambda_max: float = 2.0,
    damping: bool = False,
) -> Tensor:
    """U p(Λ) Uᵀ, p the polynomial of degree ``order`` nearest to the filter at the Chebyshev points.

    At S = R + 1 points the nearest polynomial is the interpolant; it is found by least squares over Legendre
    polynomials, a basis the code under test knows nothing of.
    """
    points = order + 1 if points is None else points
    node = np.array([np.cos(np.pi * (m - 0.5) / points) for m in range(1, points + 1)])
    value, vector = eigen(graph)
    at = 2.0 * value / lambda_max - 1.0
    if damping:  # only here do coefficients matter, not just the polynomial
        chebyshev = np.polynomial.chebyshev.chebvander
        factors = jackson_by_autocorrelation(order)[:, None]
        matrix = chebyshev(at, order) @ (factors * np.linalg.pinv(chebyshev(node, order)))
    else:
        legendre = np.polynomial.legendre.legvander
        matrix = legendre(at, order) @ np.linalg.pinv(legendre(node, order))
    response = filter(torch.from_numpy(lambda_max / 2.0 * (node + 1.0)))
    return spectral_matrix(vector, torch.from_numpy(matrix) @ response)


def best(score: Array, k: int, allowed: npt.NDArray[np.bool_]) -> list[int]:
    """The k largest of one row, largest first, ties to the lower index, among the allowed only."""
    candidates = [int(u) for u in np.argsort(-score, kind="stable") if allowed[u]]
    return candidates[:k]


def is_tied(score: Array, k: int | None, allowed: npt.NDArray[np.bool_], gap: float = 1e-9) -> bool:
    """Whether rounding may decide which node comes last."""
    ordered = np.sort(score[allowed])[::-1]
    return k is not None and k < len(ordered) and bool(ordered[k - 1] - ordered[k] < gap)


def attention(score: Tensor, k: int | None, allowed: npt.NDArray[np.bool_]) -> Tensor:
    """softmax(topK(ψ_v, k)) row by row, as [heads, N, N]; differentiable in the scores."""
    heads, n, _ = score.shape
    rows = []
    for head in range(heads):
        for v in range(n):
            kept = best(score[head, v].detach().numpy(), n if k is None else k, allowed[v])
            weight = torch.softmax(score[head, v, kept], dim=0)
            rows.append(torch.zeros(n, dtype=score.dtype).index_put((torch.tensor(kept),), weight))
    return torch.stack(rows).view(heads, n, n) if rows else score.new_zeros(heads, n, n)


def tied_rows(score: Tensor, k: int | None, allowed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Rows [heads, N] in which rounding may decide who is attended to."""
    values = score.detach().numpy()
    return np.array([[is_tied(row, k, allowed[v]) for v, row in enumerate(head)] for head in values], dtype=bool)


def filters(heads: int = 2) -> dict[str, SpectralFilter]:
    """One of every kind with parameters, in double precision and with generic values."""
    torch.manual_seed(0)
    made: dict[str, SpectralFilter] = {
        "mlp": MLPFilter(heads, hidden=(7, 5)),
        "heat": HeatFilter(heads, scale=1.3, learned=True),
        "polynomial": PolynomialFilter(heads, degree=3),
    }
    for one in made.values():
        one.double()
        with torch.no_grad():
            for parameter in one.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return made


def gradients(value: Tensor, module: torch.nn.Module, cotangent: Tensor) -> dict[str, Any]:
    """Gradients of <value, cotangent> with respect to every parameter."""
    names, parameters = zip(*module.named_parameters(), strict=True)
    grads = torch.autograd.grad((value * cotangent).sum(), parameters, retain_graph=True, allow_unused=True)
    return {n: torch.zeros_like(p) if g is None else g for n, p, g in zip(names, parameters, grads, strict=True)}
