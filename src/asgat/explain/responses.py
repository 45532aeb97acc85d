"""The responses of trained filters: their values, and a name for their shape."""

from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from numpy.polynomial import chebyshev as cheb

from asgat.filters import SpectralFilter
from asgat.spectral import ChebyshevOperator, SpectralOperator
from asgat.tables import TableOperator

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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
    """Names the shape of a response over the graph's spectrum.

    It is low-pass or high-pass if it correlates with λ. Otherwise it may correlate with (λ - 1)²: "both ends" attends
    to nodes an even number of steps away, "middle" is its opposite. A response that varies too little to change the
    softmax is flat.
    """
    if np.cov(response, ddof=0, aweights=density) < 1e-8:
        return "flat"
    slope, bend = (correlation(response, shape, density) for shape in (frequency, (frequency - 1.0) ** 2))
    if abs(slope) > 0.5:
        return "high-pass" if slope > 0 else "low-pass"
    if abs(bend) > 0.5:
        return "both ends" if bend > 0 else "middle"
    return "mixed" if slope or bend else "flat"
