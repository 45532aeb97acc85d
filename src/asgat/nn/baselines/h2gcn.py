"""The heterophily-aware graph network H2GCN."""

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.memory import available_memory
from asgat.nn.baselines.propagation import Propagating

_ENTRY_BYTES = 56  # a pair's value and three indices, and what finding the pairs takes


def neighbourhoods(graph: Graph) -> sp.csr_array:
    r"""Both neighbourhoods as one matrix [2 N, N]: rows 2 v and 2 v + 1 are v's of :math:`\bar A_1, \bar A_2`.

    So the product with r, viewed as [N, 2 C], concatenates them. Weights and self-loops are ignored. Refused where the
    pairs at two hops may take more memory than is free.
    """
    one = (graph.with_self_loops("remove").adjacency > 0).astype(np.float64)
    degree = np.diff(one.indptr).astype(np.float64)
    pairs = one.nnz + min(float(degree @ degree), float(graph.num_nodes) ** 2)
    free = available_memory()
    if free is not None and pairs * _ENTRY_BYTES > free:
        raise AsgatError(
            f"The graph may have {pairs:.2g} pairs of nodes within two hops, which take {pairs * _ENTRY_BYTES:.2g} "
            f"bytes, more than the {free:.2g} that are free; use another model or a larger machine."
        )
    within = one @ one
    within.data[:] = 1
    nearer = sp.csr_array(one + sp.eye_array(graph.num_nodes))
    two = within - within.multiply(nearer)
    two.eliminate_zeros()
    count = graph.num_nodes
    interleaved = np.arange(2 * count).reshape(2, count).T.reshape(-1)  # 0, N, 1, N + 1, ...
    return sp.csr_array(sp.vstack([_normalised(one), _normalised(two)], format="csr")[interleaved])


def _normalised(adjacency: sp.csr_array) -> sp.csr_array:
    """Symmetric normalisation of a 0/1 matrix; rows of nodes without neighbours are empty."""
    factor = sp.diags_array(1 / np.sqrt(np.maximum(np.diff(adjacency.indptr), 1)))
    return sp.csr_array(factor @ adjacency @ factor)


class H2GCN(Propagating):
    r"""H2GCN of `"Beyond Homophily in Graph Neural Networks" <https://arxiv.org/abs/2006.11468>`_: a node is separated
    from its neighbours, and neighbours at one hop from those at two.

    .. math::
        r^{(0)} = \mathrm{ReLU}(x W_e), \qquad r^{(k)} = \bar A_1 r^{(k-1)} \,\|\, \bar A_2 r^{(k-1)}, \qquad
        \mathrm{logits} = (r^{(0)} \,\|\, \dots \,\|\, r^{(K)}) \, W_c

    with :math:`\bar A_i = D_i^{-1/2} A_i D_i^{-1/2}` and :math:`A_i` the pairs of nodes exactly i hops apart.

    Args:
        hidden_channels: size of the embedding :math:`r^{(0)}`; round k has :math:`2^k` times as many channels.
        num_layers: rounds K; H2GCN-2 has two, H2GCN-1 one.
        dropout: on the input of :math:`W_c`.

    Cost: O(N · in · hidden), and O(P · 2^k · hidden) for round k of P pairs within two hops.
    """

    matrix = staticmethod(neighbourhoods)

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int = 2, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.embedding = nn.Linear(in_channels, hidden_channels, bias=False)
        self.classifier = nn.Linear((2 ** (num_layers + 1) - 1) * hidden_channels, out_channels, bias=False)
        self.num_layers, self.dropout = num_layers, dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for layer in (self.embedding, self.classifier):
            nn.init.xavier_uniform_(layer.weight)

    def run(self, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        rounds = [torch.relu(linear(x, self.embedding.weight))]
        for _ in range(self.num_layers):
            rounds.append(step.matmul(rounds[-1]).view(x.size(0), -1))
        out: Tensor = self.classifier(dropout(torch.cat(rounds, dim=1), self.dropout, self.training))
        return out
