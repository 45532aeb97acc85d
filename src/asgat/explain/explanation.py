"""Which nodes a trained model attends to, how far away they are, and which frequencies brought them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numpy.polynomial import chebyshev as cheb

from asgat.errors import AsgatError
from asgat.filters import SpectralFilter
from asgat.graph import Graph
from asgat.graph.hops import hop_distances
from asgat.kernels import row_softmax
from asgat.nn import ASGAT, ASGATConv
from asgat.report.figures import evaluate
from asgat.spectral import ChebyshevOperator, ExactOperator, SpectralOperator
from asgat.spectral.chebyshev_interpolation import jackson
from asgat.tables import TableOperator

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BANDS = ((0.0, 0.5), (0.5, 1.0), (1.0, 1.5), (1.5, 2.0))
BAND_NAMES = ("low", "low middle", "high middle", "high")
EXACT_NODES = 3000  # up to this size bands are told apart by eigenvectors
SHARPNESS = 160  # degree of the polynomials that tell them apart on larger graphs
_BLOCK = 4_000_000  # numbers held at a time while rows are computed


@dataclass(frozen=True, eq=False)
class AttentionRows:
    r"""What some nodes v attend to in one layer.

    Args:
        nodes: the nodes v, [B].
        index: the nodes u they attend to, best first, [heads, B, k].
        weight: attention weights :math:`a_{vu}`; 0 where a row has fewer than k nodes.
        score: scores :math:`\psi_{vu}`; -∞ there.
        hops: edges between v and u; -1 where no path joins them.
        bands: what each band of frequencies adds to the score, [heads, B, k, 4]; the four sum to the score.
    """

    nodes: Ints
    index: Ints
    weight: Floats
    score: Floats
    hops: npt.NDArray[np.int32]
    bands: Floats

    @cached_property
    def band(self) -> Ints:
        """The band that adds most to the score, [heads, B, k]; -1 where none adds anything."""
        return np.where(self.bands.max(axis=-1) > 0, self.bands.argmax(axis=-1), -1)


@torch.no_grad()
def attention_rows(
    model: ASGAT, operator: SpectralOperator, graph: Graph, nodes: Ints, limit: int | None = None
) -> list[AttentionRows]:
    """What the given nodes attend to, layer by layer.

    Args:
        model: a trained model.
        operator: the one it was trained with.
        graph: the graph that operator was built from.
        nodes: which nodes.
        limit: keep the best so many of every row.
    """
    telling = Bands(graph)
    layers = []
    for conv in model.convs:
        index, score = select(operator, conv)
        weight = row_softmax(score)
        at = torch.from_numpy(nodes)
        index, score, weight = (part[:, at].cpu() for part in (index, score, weight))
        order = score.argsort(dim=-1, descending=True, stable=True)[..., :limit]
        found, scores, weights = (part.gather(-1, order).numpy() for part in (index, score, weight))
        hops = np.empty(found.shape, dtype=np.int32)
        for rows in _blocks(len(nodes), graph.num_nodes):
            distance = hop_distances(graph, nodes[rows])
            for head in range(len(found)):
                hops[head, rows] = np.take_along_axis(distance, found[head, rows], axis=1)
        bands = telling.contributions(operator, conv.filter, nodes, found)
        layers.append(AttentionRows(nodes, found, weights.astype(float), scores.astype(float), hops, bands))
    return layers


def select(operator: SpectralOperator, conv: ASGATConv) -> tuple[torch.Tensor, torch.Tensor]:
    """The nodes a layer attends to and their scores, both [heads, N, k], as in :func:`asgat.nn.attention.attend`."""
    if conv.k is not None:
        return operator.top(conv.filter, conv.k, conv.include_unreachable)
    index, score = operator.scores(conv.filter, include_unreachable=conv.include_unreachable)
    return index.expand_as(score), score


class Bands:
    r"""Tells which frequencies a score comes from.

    With :math:`p` the response the operator in truth applies (its polynomial, not the filter it approximates),
    :math:`\psi_{vu} = \sum_j p(\lambda_j) U_{vj} U_{uj}`, and a band's part of it is the sum over the eigenvalues in
    that band. Up to ``exact_nodes`` nodes the eigenvectors are computed, O(N³) once. On larger graphs
    :math:`p(\lambda) s_b(\lambda)` takes the place of the band, where the :math:`s_b` are smooth steps, polynomials
    that sum to 1: O(degree · E) per node, edges blurred over about 4 / degree, and the parts still sum to the score
    (to about 1e-3 of it where p is no polynomial).

    Args:
        graph: the graph.
        exact_nodes: the largest graph whose eigenvectors are computed.
    """

    def __init__(self, graph: Graph, exact_nodes: int = EXACT_NODES) -> None:
        self.graph = graph
        exact = graph.num_nodes <= exact_nodes
        self._spectrum = ExactOperator(graph, exact_nodes, torch.float64) if exact else None

    def contributions(self, operator: SpectralOperator, filter: SpectralFilter, nodes: Ints, index: Ints) -> Floats:
        """Parts [heads, B, k, 4] of the scores of the pairs (nodes [B], index [heads, B, k])."""
        if self._spectrum is not None:
            return self._by_eigenvectors(self._spectrum, operator, filter, nodes, index)
        return self._by_polynomials(operator, filter, nodes, index)

    def _by_eigenvectors(
        self, spectrum: ExactOperator, operator: SpectralOperator, filter: SpectralFilter, nodes: Ints, index: Ints
    ) -> Floats:
        value, vector = spectrum.eigenvalues.numpy(), spectrum.eigenvectors.numpy()
        response = applied_response(operator, filter, value).T
        # Eigenvalues ascend, so that a band is a range of them.
        edges = [*np.searchsorted(value, [low for low, _ in BANDS]).tolist(), len(value)]
        parts = np.empty((*index.shape, len(BANDS)))
        for row, node in enumerate(nodes):
            left = (response * vector[node])[:, None]  # [heads, 1, N]
            right = vector[index[:, row]]  # [heads, k, N]
            for band, (first, last) in enumerate(pairwise(edges)):
                parts[:, row, :, band] = np.sum(left[..., first:last] * right[..., first:last], axis=-1)
        return parts

    def _by_polynomials(self, operator: SpectralOperator, filter: SpectralFilter, nodes: Ints, index: Ints) -> Floats:
        coefficients = _band_coefficients(operator, filter)  # [heads, bands, degree + 1]
        matrix = -self.graph.normalised_adjacency  # L - I, with spectrum in [-1, 1]
        parts = np.zeros((*index.shape, len(BANDS)))
        for rows in _blocks(len(nodes), self.graph.num_nodes):
            column = np.arange(len(nodes[rows]))
            before = np.zeros((self.graph.num_nodes, len(column)))
            before[nodes[rows], column] = 1.0
            now = matrix @ before
            for degree in range(coefficients.shape[-1]):
                pairs = before[index[:, rows], column[:, None]]  # [heads, B, k]
                parts[:, rows] += pairs[..., None] * coefficients[:, None, None, :, degree]
                before, now = now, 2.0 * (matrix @ now) - before
        return parts


def applied_response(operator: SpectralOperator, filter: SpectralFilter, frequency: Floats) -> Floats:
    """The response [n, heads] the operator applies for a filter: a polynomial where it takes one in its place."""
    if isinstance(operator, ChebyshevOperator | TableOperator):
        with torch.no_grad():
            coefficients = operator.coefficients(filter).cpu().double().numpy()
        return np.asarray(cheb.chebval(2.0 * frequency / operator.lambda_max - 1.0, coefficients.T)).T
    return evaluate(filter, frequency).astype(np.float64)


def smooth_steps(degree: int = SHARPNESS) -> Floats:
    """Chebyshev coefficients [4, degree + 1] over [0, 2] of one smooth step per band; together they are 1.

    A step's lower edge lies a little below its band's, so that a multiple eigenvalue on it (1 is a common one) belongs
    to the band above, as it does exactly.
    """
    inner = [low - 4.0 / degree for low, _ in BANDS[1:]]
    angle = np.arccos(np.array([-1.0, *[edge - 1.0 for edge in inner], 1.0]))
    order = np.arange(1, degree + 1)
    sines = np.sin(np.outer(angle, order))
    sines[[0, -1]] = 0.0
    steps = np.empty((len(BANDS), degree + 1))
    steps[:, 0] = (angle[:-1] - angle[1:]) / np.pi
    steps[:, 1:] = 2.0 / (np.pi * order) * (sines[:-1] - sines[1:])
    return np.asarray(steps * jackson(degree).numpy())


def _band_coefficients(operator: SpectralOperator, filter: SpectralFilter) -> Floats:
    """Chebyshev coefficients [heads, bands, degree + 1] over [0, 2] of the response times each band's smooth step."""
    steps = smooth_steps()
    degree = steps.shape[1] - 1 + max(getattr(operator, "order", 0), 64)
    points = cheb.chebpts1(degree + 1)
    product = applied_response(operator, filter, points + 1.0).T[:, None] * cheb.chebval(points, steps.T)
    transform = cheb.chebvander(points, degree) * (2.0 / (degree + 1))
    transform[:, 0] /= 2.0
    return np.asarray(product @ transform)


def _blocks(rows: int, num_nodes: int) -> Iterator[slice]:
    size = max(1, _BLOCK // max(num_nodes, 1))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def explain(run: Any, node: int) -> list[dict[str, Any]]:
    """A row per layer, head and attended node: what ``asgat explain`` shows of one node.

    Args:
        run: a :class:`~asgat.estimator.trained_run.TrainedRun` of a model with spectral attention.
        node: the node's number.
    """
    check_attends(run)
    graph = run.attended_graph
    rows = []
    for layer, found in enumerate(attention_rows(run.model, run.inputs[1], graph, np.array([node])), start=1):
        for head in range(len(found.index)):
            for place in np.flatnonzero(np.isfinite(found.score[head, 0])):
                at = head, 0, int(place)
                other, band = int(found.index[at]), int(found.band[at])
                rows.append(
                    {
                        "layer": layer,
                        "head": head + 1,
                        "node": run.ids[other],
                        "weight": float(found.weight[at]),
                        "score": float(found.score[at]),
                        "hops": int(found.hops[at]) if found.hops[at] >= 0 else None,
                        "class": run.class_names[run.y[other]] if run.y[other] >= 0 else None,
                        "band": BAND_NAMES[band] if band >= 0 else None,
                        "bands": found.bands[at].tolist(),
                    }
                )
    return rows


def check_attends(run: Any) -> None:
    """Refuses a model without spectral attention."""
    if not isinstance(run.model, ASGAT):
        raise AsgatError(
            f"{run.name} has no spectral attention to explain; name a run of an asgat model, such as asgat-cheb."
        )
