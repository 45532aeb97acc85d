"""How a graph's eigenvalues are distributed, at linear cost."""

import math

import numpy as np

from asgat.graph.graph import Floats, Graph
from asgat.spectral.chebyshev_interpolation import jackson
from asgat.spectral.shifted_laplacian import polynomials

MOMENTS, SIGNALS = 80, 16
WORK = 2 * 10**9  # multiplications: about eight seconds on one core


def affordable_signals(num_entries: int, moments: int = MOMENTS) -> int:
    r"""How many random signals, 16 at most, take :data:`WORK` multiplications; 0 where one of them takes more.

    A moment errs by about :math:`\sqrt{2 / (N \cdot \mathrm{signals})}`, so that a larger graph needs fewer.
    """
    return min(SIGNALS, WORK // (moments * max(1, num_entries)))


def spectral_density(
    graph: Graph, frequency: Floats, moments: int = MOMENTS, samples: int | None = None, seed: int = 0
) -> Floats:
    r"""Density of the eigenvalues of L at the given frequencies in [0, 2] (it integrates to 1).

    Kernel polynomial method: Chebyshev moments :math:`\mathrm{tr}\,T_i(L - I)/N` from random ±1 signals, damped with
    Jackson's factors. O(moments · E · samples) time, O(N · samples) memory; resolution about π / moments.

    Args:
        samples: number of signals; by default :func:`affordable_signals`, or one.
    """
    if graph.num_nodes == 0:
        return np.zeros_like(frequency)
    samples = samples or max(1, affordable_signals(graph.num_entries, moments))
    adjacency = graph.normalised_adjacency
    signal = np.random.default_rng(seed).choice([-1.0, 1.0], size=(graph.num_nodes, samples))
    terms = polynomials(lambda x: -(adjacency @ x), signal, moments)
    damped = np.array([np.mean(signal * term) for term in terms]) * jackson(moments).numpy()
    damped[1:] *= 2.0
    x = np.clip(frequency - 1.0, -0.9999, 0.9999)
    series = np.cos(np.outer(np.arccos(x), np.arange(moments + 1))) @ damped
    return np.asarray(np.maximum(series, 0.0) / (math.pi * np.sqrt(1.0 - x**2)))
