"""The responses of trained filters: values, a name for their shape, and the frequency bands that scores come from."""

from itertools import chain, pairwise

import numpy as np
import torch
from numpy.polynomial import chebyshev as cheb

from asgat.filters import SpectralFilter
from asgat.graph.graph import Floats, Graph, Ints
from asgat.spectral import ChebyshevOperator, ExactOperator, SpectralOperator
from asgat.spectral.chebyshev_interpolation import jackson
from asgat.spectral.shifted_laplacian import polynomials
from asgat.spectral.top_k import row_blocks
from asgat.tables import TableOperator

BANDS = ((0.0, 0.5), (0.5, 1.0), (1.0, 1.5), (1.5, 2.0))
BAND_NAMES = ("low", "low middle", "high middle", "high")
BAND_TABLE = [{"name": name, "from": low, "to": high} for name, (low, high) in zip(BAND_NAMES, BANDS, strict=True)]
EXACT_NODES = 3000  # up to this size eigenvectors are computed
FLAT, DEAD = 0.15, 1e-3  # a response that varies less, next to its size or at all, is flat
SHARPNESS = 160  # degree of the polynomials that separate the bands on larger graphs
BLOCK = 4_000_000  # numbers held at a time while rows are computed


@torch.no_grad()
def filter_response(filter: SpectralFilter, frequency: np.ndarray) -> np.ndarray:
    """Responses [n, heads] of a filter at the given frequencies, in the filter's precision."""
    like = next(chain(filter.parameters(), filter.buffers()), torch.empty(0))
    response: torch.Tensor = filter(torch.as_tensor(frequency, dtype=like.dtype, device=like.device))
    return np.asarray(response.cpu().numpy())


def applied_response(operator: SpectralOperator, filter: SpectralFilter, frequency: Floats) -> Floats:
    """The response [n, heads] an operator applies for a filter: its polynomial, if it approximates by one."""
    if isinstance(operator, (ChebyshevOperator, TableOperator)):
        with torch.no_grad():
            coefficients = operator.coefficients(filter).cpu().double().numpy()
        return np.asarray(cheb.chebval(2.0 * frequency / operator.lambda_max - 1.0, coefficients.T)).T
    return filter_response(filter, frequency).astype(np.float64)


def correlation(response: np.ndarray, shape: np.ndarray, density: np.ndarray) -> float:
    """Correlation of two functions of λ over the graph's spectrum; 0 if one of them is constant."""
    (first, both), (_, second) = np.cov(shape, response, ddof=0, aweights=density)
    spread = np.sqrt(first * second)
    return float(both / spread) if spread > 1e-12 else 0.0


def response_shape(response: np.ndarray, frequency: np.ndarray, density: np.ndarray) -> str:
    """Names the shape of a response as it is drawn, between the graph's least and largest eigenvalue.

    It is "flat" if it hardly varies next to its size, "low-pass" or "high-pass" if it falls or rises, "both ends" if it
    falls and rises again, "band-pass" with the place of its peak if it rises and falls again, else "mixed". A rise or
    fall of less than a third of the whole does not count.
    """
    inside = _spectrum(density)
    values, frequency = response[inside], frequency[inside]
    low, high = float(values.min()), float(values.max())
    if high - low < max(FLAT * max(abs(low), abs(high)), DEAD):
        return "flat"
    swings = _swings(values, (high - low) / 3)
    if len(swings) == 1:
        return "high-pass" if swings[0] > 0 else "low-pass"
    if swings == [-1, 1]:
        return "both ends"
    if swings == [1, -1]:
        return f"band-pass at λ ≈ {frequency[values.argmax()]:.1f}"
    return "mixed"


def _spectrum(density: np.ndarray) -> slice:
    """The places of the frequencies between which all but a thousandth of the eigenvalues at either end lie."""
    total = np.cumsum(density) / density.sum()
    first, last = np.searchsorted(total, [1e-3, 1 - 1e-3])
    return slice(int(first), int(last) + 1)


def _swings(values: np.ndarray, least: float) -> list[int]:
    """The rises (1) and falls (-1) of a curve, in turn, that are of some size."""
    swings: list[int] = []
    low = high = values[0]
    for value in values:
        if swings[-1:] != [1] and value - low >= least:
            swings.append(1)
            high = value
        elif swings[-1:] != [-1] and high - value >= least:
            swings.append(-1)
            low = value
        low, high = min(low, value), max(high, value)
    return swings


class Bands:
    r"""Computes which frequencies a score comes from.

    With :math:`p` the response the operator applies (its polynomial, not the filter it approximates),
    :math:`\psi_{vu} = \sum_j p(\lambda_j) U_{vj} U_{uj}`, and a band's contribution is the sum over the eigenvalues in
    that band. Up to ``exact_nodes`` nodes the eigenvectors are computed, O(N³) once. On larger graphs a band is
    replaced by :math:`p(\lambda) s_b(\lambda)`, where the :math:`s_b` are smooth steps, polynomials that sum to 1:
    O(degree · E) per node, edges blurred over about 4 / degree, and the contributions still sum to the score (to about
    1e-3 of it if p is not a polynomial).
    """

    def __init__(self, graph: Graph, exact_nodes: int = EXACT_NODES) -> None:
        self.graph = graph
        exact = graph.num_nodes <= exact_nodes
        self._spectrum = ExactOperator(graph, exact_nodes, torch.float64) if exact else None

    def contributions(self, operator: SpectralOperator, filter: SpectralFilter, nodes: Ints, index: Ints) -> Floats:
        """Contributions [heads, B, k, 4] to the scores of the pairs (nodes [B], index [heads, B, k])."""
        if self._spectrum is None:
            return self._by_polynomials(operator, filter, nodes, index)
        value, vector = self._spectrum.eigenvalues.numpy(), self._spectrum.eigenvectors.numpy()
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
        for rows in row_blocks(len(nodes), self.graph.num_nodes, BLOCK):
            column = np.arange(len(nodes[rows]))
            one_hot = np.zeros((self.graph.num_nodes, len(column)))
            one_hot[nodes[rows], column] = 1.0
            for degree, term in enumerate(polynomials(lambda x: matrix @ x, one_hot, coefficients.shape[-1] - 1)):
                pairs = term[index[:, rows], column[:, None]]  # [heads, B, k]
                parts[:, rows] += pairs[..., None] * coefficients[:, None, None, :, degree]
        return parts


def smooth_steps(degree: int = SHARPNESS) -> Floats:
    """Chebyshev coefficients [4, degree + 1] over [0, 2] of one smooth step per band; the steps sum to 1.

    A step's lower edge lies a little below its band's, so that a multiple eigenvalue on it (1 is a common one) belongs
    to the band above, as it does with eigenvectors.
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
