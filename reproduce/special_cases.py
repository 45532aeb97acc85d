"""Other methods as spectral filters: GCN, polynomial filters, GAT's mask and DeepWalk (appendix D of the paper).

``operator`` is an operator class (or a ``functools.partial`` of one), called with the graph, a dtype and a device. The
default is a :class:`~asgat.spectral.ChebyshevOperator` of the response's degree, which represents a polynomial exactly.
"""

import numpy as np
import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters import PolynomialFilter, SpectralFilter
from asgat.graph import Graph
from asgat.graph.graph import Floats
from asgat.nn.operator_builder import OperatorFactory
from asgat.spectral import ChebyshevOperator
from asgat.spectral.signal_operator import SignalOperator, as_signal_operator

_NO_EDGE = 1e-9  # of a normalised weight: rounding leaves far less where there is no edge
_LOG_ONE = 1e-12  # rounding leaves less of log 1, a frequent value in symmetric graphs
_BLOCK = 128  # columns of a dense matrix computed at a time


class WalkFilter(SpectralFilter):
    r"""The fixed response :math:`g(\lambda) = \sum_{r=1}^{window} (1 - \lambda)^r`.

    Since :math:`I - L = D^{-1/2} A D^{-1/2}`, it sums walks of 1 to ``window`` steps. A window of 1 is the normalised
    adjacency itself, the response of a GCN.
    """

    def __init__(self, window: int = 1) -> None:
        super().__init__(1)
        if window < 1:
            raise AsgatError(f"The window of a walk must be at least 1, but is {window}.")
        self.window = window

    def forward(self, frequency: Tensor) -> Tensor:
        step = 1.0 - frequency
        response = torch.zeros_like(step)
        for _ in range(self.window):  # Horner's rule
            response = step * (1.0 + response)
        return response.unsqueeze(-1)


def gcn_layer(graph: Graph, x: Tensor, weight: Tensor, operator: OperatorFactory | None = None) -> Tensor:
    r"""A GCN layer before its activation: the response :math:`g(\lambda) = 1 - \lambda` of the graph with self-loops.

    .. math::
        \tilde D^{-1/2} \tilde A \tilde D^{-1/2} \, x W = \tilde U (I - \tilde\Lambda) \tilde U^\top x W

    :math:`\tilde A` is A with a self-loop of weight 1 wherever a node has none. An existing self-loop keeps its weight,
    as in PyG's ``GCNConv``; for graphs without self-loops this is the paper's :math:`A + I`. The output is [N, out] for
    ``x`` [N, in] and ``weight`` [in, out], and differentiable in both.

    Example:
        >>> gcn_layer(Graph.from_edges([[0], [1]], 3), torch.eye(3), torch.eye(3)).round(decimals=3).abs().tolist()
        [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    """
    made = _make(operator, graph.with_self_loops("add"), 1, x.dtype, x.device)
    return made.apply(WalkFilter(), x @ weight)[0]


def polynomial_layer(
    graph: Graph, x: Tensor, weight: Tensor, filter: PolynomialFilter, operator: OperatorFactory | None = None
) -> Tensor:
    r"""A layer with a polynomial filter, such as ChebNet's, before its activation.

    .. math::
        y = U g_\theta(\Lambda) U^\top x W = \sum_{j} \theta_j L^j x W

    The output is [heads, N, out] for ``x`` [N, in] and ``weight`` [in, out], and differentiable in these and in θ.

    Example:
        >>> theta = PolynomialFilter(heads=2, degree=3)
        >>> polynomial_layer(Graph.from_edges([[0], [1]], 3), torch.eye(3), torch.eye(3), theta).shape
        torch.Size([2, 3, 3])
    """
    return _make(operator, graph, filter.degree, x.dtype, x.device).apply(filter, x @ weight)


def adjacency(graph: Graph, operator: OperatorFactory | None = None) -> Tensor:
    r"""The adjacency matrix [N, N] in double precision, recovered from the spectrum. Costly: meant for small graphs.

    .. math::
        A = D^{1/2} U (I - \Lambda) U^\top D^{1/2}

    Example:
        >>> adjacency(Graph.from_edges([[0], [1]], 3, [2.0])).round(decimals=9).abs().tolist()
        [[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    root = torch.from_numpy(graph.degree).sqrt()
    return _matrix(graph, WalkFilter(), operator).mul_(root).mul_(root.unsqueeze(1))


def gat_attention(graph: Graph, score: Tensor, operator: OperatorFactory | None = None) -> Tensor:
    r"""GAT's attention: a softmax over each node's neighbours and itself, the mask taken from the spectrum.

    .. math::
        a_v = \mathrm{softmax}(e_v + m_v), \qquad
        m_{vu} = \begin{cases} 0 & \tilde\Psi_{vu} > 0 \\ -\infty & \text{else} \end{cases}, \qquad
        \tilde\Psi = \tilde U (I - \tilde\Lambda) \tilde U^\top

    with the self-loops GAT adds. The paper masks by a product with A; that leaves a score of 0, which a softmax gives
    weight :math:`e^0`, so GAT's mask is :math:`-\infty` here. An edge whose normalised weight
    :math:`A_{vu} / \sqrt{d_v d_u}` is below 1e-9 is ignored. ``score`` is :math:`e_{vu}` after the LeakyReLU,
    [..., N, N], a row for every attending node v; so are the weights, whose rows sum to 1. Costly: meant for small
    graphs.

    Example:
        >>> gat_attention(Graph.from_edges([[0], [1]], 3), torch.zeros(3, 3)).tolist()
        [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    """
    mask = _matrix(graph.with_self_loops("add"), WalkFilter(), operator) > _NO_EDGE
    return torch.softmax(score.masked_fill(~mask.to(score.device), float("-inf")), dim=-1)


def deepwalk_matrix(
    graph: Graph, window: int = 10, negative: float = 1.0, operator: OperatorFactory | None = None
) -> Tensor:
    r"""The matrix that DeepWalk factorises implicitly and NetMF explicitly.

    .. math::
        M = \log \max\Big( \frac{\mathrm{vol}(G)}{b K} D^{-1/2} \, U g(\Lambda) U^\top D^{-1/2}, \, 1 \Big), \qquad
        g(\lambda) = \sum_{r=1}^{K} (1 - \lambda)^r

    which is :math:`\log \max(\frac{\mathrm{vol}(G)}{bK} (\sum_{r=1}^{K} P^r) D^{-1}, 1)` of the random walk
    :math:`P = D^{-1} A`; vol(G) is the sum of the degrees, a self-loop counted once. No walk leaves an isolated node:
    its row and column are zero. The matrix is [N, N], symmetric and non-negative, in double precision.

    Args:
        window: K, the longest walk.
        negative: b, the number of negative samples.

    Example:
        >>> deepwalk_matrix(Graph.from_edges([[0, 1], [1, 2]]), window=1).exp().round(decimals=6).tolist()
        [[1.0, 2.0, 1.0], [2.0, 1.0, 2.0], [1.0, 2.0, 1.0]]
    """
    if not negative > 0:
        raise AsgatError(f"negative must be positive, but is {negative}.")
    walks = _matrix(graph, WalkFilter(window), operator)
    degree = torch.from_numpy(graph.degree)
    scale = torch.where(degree > 0, (degree.sum() / (negative * window) / degree).sqrt(), 0.0)
    matrix = walks.mul_(scale).mul_(scale.unsqueeze(1)).clamp_(min=1.0).log_()
    return torch.threshold_(matrix, _LOG_ONE, 0.0)


def deepwalk(graph: Graph, dimensions: int = 16, window: int = 10, negative: float = 1.0) -> Floats:
    r"""DeepWalk's embedding [N, d] as NetMF computes it: :math:`U_d \Sigma_d^{1/2}` of :func:`deepwalk_matrix`.

    The matrix is symmetric, so its singular vectors are eigenvectors, those of the largest absolute eigenvalues. Each
    column's entry of largest magnitude is positive. Nodes without edges get zeros. Costly: meant for small graphs.

    Example:
        >>> path = Graph.from_edges([[0, 1], [1, 2]], num_nodes=4)
        >>> deepwalk(path, dimensions=2, window=1).shape
        (4, 2)
    """
    value, vector = np.linalg.eigh(deepwalk_matrix(graph, window, negative).numpy())
    chosen = np.argsort(-np.abs(value), kind="stable")[:dimensions]
    vectors = vector[:, chosen] * np.sqrt(np.abs(value[chosen]))
    vectors[graph.isolated] = 0.0
    largest = np.abs(vectors).round(9).argmax(axis=0)  # rounded, so that the first of equal ones is taken
    return np.asarray(vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0))


def _make(
    operator: OperatorFactory | None, graph: Graph, degree: int, dtype: torch.dtype, device: torch.device | str = "cpu"
) -> SignalOperator:
    """The operator of a graph; without a factory the Chebyshev one that is exact for polynomials of this degree."""
    if operator is not None:
        return as_signal_operator(operator(graph, dtype=dtype, device=device))
    return ChebyshevOperator(graph, order=max(1, degree), dtype=dtype, device=device, cache_bytes=0)


def _matrix(graph: Graph, filter: WalkFilter, operator: OperatorFactory | None) -> Tensor:
    """The dense matrix U g(Λ) Uᵀ, by one-hot signals."""
    n = graph.num_nodes
    made = _make(operator, graph, filter.window, torch.float64)
    matrix = torch.empty(n, n, dtype=torch.float64)
    for start in range(0, n, _BLOCK):
        block = torch.zeros(n, min(_BLOCK, n - start), dtype=torch.float64)
        block[start:].fill_diagonal_(1.0)
        matrix[:, start : start + _BLOCK] = made.apply(filter, block)[0]
    return matrix
