"""Scores by eigen-decomposition."""

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph.graph import Floats, Graph, Mask
from asgat.spectral.graph_operator import GraphOperator
from asgat.spectral.spectral_operator import UNREACHABLE
from asgat.spectral.top_k import top_k

_EQUAL = 1e-9  # difference of scores of size 1 up to which they are the same number, computed in double precision


class ExactOperator(GraphOperator):
    r"""Exact scores :math:`\psi = U g(\Lambda) U^\top` from all eigenvalues and eigenvectors of the Laplacian.

    A node reaches the nodes of its component. Building costs O(N³) time and O(N²) memory, every evaluation O(heads ·
    N³) time and O(heads · N²) memory: for small graphs.

    Scores that are equal for every filter, as those of structurally equivalent nodes, differ by rounding when computed.
    :meth:`top` treats them as ties, which go to the lower index: then the selection does not depend on rounding.

    Args:
        max_nodes: larger graphs are refused.
        dtype, device: of the scores; the decomposition itself is done in double precision.
    """

    lambda_max = 2.0

    def __init__(
        self,
        graph: Graph,
        max_nodes: int = 4000,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        if graph.num_nodes > max_nodes:
            raise AsgatError(
                f"The exact form decomposes a {graph.num_nodes:,} × {graph.num_nodes:,} matrix, more than the limit of "
                f"{max_nodes:,} nodes; use the Chebyshev form (asgat-cheb, ChebyshevOperator) or raise max_nodes."
            )
        self.graph, self.num_nodes = graph, graph.num_nodes
        # Eigenvectors of a multiple eigenvalue are some basis of its space; which one depends on the number of threads.
        with threadpool_limits(1, "blas"):
            value, vector = np.linalg.eigh(graph.laplacian.toarray())
        # Rounded, a multiple eigenvalue (0 and 1 are common ones) is one number: a band edge on it cannot split it.
        self._decomposition = value.round(12).clip(0.0, 2.0), vector
        self._component = torch.from_numpy(graph.components)
        self._twin = _twins(value, vector, graph.components)
        self.device, self.dtype = torch.device(device), dtype
        self._move()

    def _move(self) -> None:
        self.eigenvalues, self.eigenvectors = (
            torch.from_numpy(part).to(self.device, self.dtype) for part in self._decomposition
        )
        self._component = self._component.to(self.device)
        self._twin = None if self._twin is None else self._twin.to(self.device)

    def scores(
        self, filter: SpectralFilter, rows: slice | None = None, include_unreachable: bool = False
    ) -> tuple[Tensor, Tensor]:
        rows = rows or slice(None)
        response = filter(self.eigenvalues).t()  # [heads, N]
        score = (self.eigenvectors[rows] * response.unsqueeze(1)) @ self.eigenvectors.t()
        apart = self._component[rows].unsqueeze(1) != self._component
        # Rounding leaves 1e-17 between components, where the score is 0.
        score = score.masked_fill(apart, 0.0 if include_unreachable else UNREACHABLE)
        return torch.arange(self.num_nodes, device=self.device).expand(score.shape[1:]), score

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        _, score = self.scores(filter, include_unreachable=include_unreachable)
        key = score.detach()
        index = top_k(key if self._twin is None else key.gather(-1, self._twin.expand_as(key)), k)
        return index, score.gather(-1, index)

    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        spectrum = self.eigenvectors.t() @ signal
        filtered: Tensor = self.eigenvectors @ (filter(self.eigenvalues).t().unsqueeze(-1) * spectrum)
        return filtered


def _twins(value: Floats, vector: Floats, component: npt.NDArray[np.integer]) -> Tensor | None:
    """For every pair (v, u) the lowest node whose score in row v equals that of u for every filter; None if all differ.

    Two random responses, functions of the distinct eigenvalues, tell pairs apart whose scores differ for some filter.
    """
    distinct = np.cumsum(np.diff(value, prepend=value[:1]) > _EQUAL)
    apart, starts = component[:, None] != component, list[Mask]()
    for response in np.random.default_rng(0).uniform(-1.0, 1.0, (2, len(value))):
        score = np.where(apart, 2.0, (vector * response[distinct]) @ vector.T)
        if not starts:
            order = np.argsort(score, axis=1)
        ordered = np.take_along_axis(score, order, axis=1)
        starts.append(np.abs(np.diff(ordered, axis=1, prepend=np.inf)) > _EQUAL)
    start = (starts[0] | starts[1]).ravel()
    lowest = np.minimum.reduceat(order.ravel(), np.flatnonzero(start)) if len(value) else order
    twin = np.empty_like(order)
    np.put_along_axis(twin, order, lowest[np.cumsum(start) - 1].reshape(order.shape), axis=1)
    return torch.from_numpy(twin) if (twin != np.arange(len(value))).any() else None
