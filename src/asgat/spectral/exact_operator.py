"""Scores by eigen-decomposition."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.spectral.graph_operator import GraphOperator
from asgat.spectral.spectral_operator import UNREACHABLE


class ExactOperator(GraphOperator):
    r"""Exact scores :math:`\psi = U g(\Lambda) U^\top` from all eigenvalues and eigenvectors of the Laplacian.

    A node reaches the nodes of its component. Building costs O(N³) time and O(N²) memory, every evaluation O(heads ·
    N³) time and O(heads · N²) memory: for small graphs.

    Args:
        graph: the graph.
        max_nodes: larger graphs are refused.
        dtype: of the scores; the decomposition itself is done in double precision.
        device: of the scores.
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
        self.num_nodes = graph.num_nodes
        value, vector = np.linalg.eigh(graph.laplacian.toarray())
        # Rounded, a multiple eigenvalue (0 and 1 are common ones) is one number: a band edge on it cannot split it.
        self._decomposition = value.round(12).clip(0.0, 2.0), vector
        self._component = torch.from_numpy(graph.components)
        self.device, self.dtype = torch.device(device), dtype
        self._move()

    def _move(self) -> None:
        self.eigenvalues, self.eigenvectors = (
            torch.from_numpy(part).to(self.device, self.dtype) for part in self._decomposition
        )
        self._component = self._component.to(self.device)

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

    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        spectrum = self.eigenvectors.t() @ signal
        filtered: Tensor = self.eigenvectors @ (filter(self.eigenvalues).t().unsqueeze(-1) * spectrum)
        return filtered
