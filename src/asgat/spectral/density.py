"""How a graph's eigenvalues are distributed, at linear cost."""

import math

import numpy as np

from asgat.graph.graph import Floats, Graph
from asgat.spectral.chebyshev_interpolation import jackson
from asgat.spectral.shifted_laplacian import polynomials


def spectral_density(graph: Graph, frequency: Floats, moments: int = 80, samples: int = 16, seed: int = 0) -> Floats:
    r"""Density of the eigenvalues of L at the given frequencies in [0, 2] (it integrates to 1).

    Kernel polynomial method: Chebyshev moments :math:`\mathrm{tr}\,T_i(L - I)/N` from random ±1 signals, damped with
    Jackson's factors. O(moments · E · samples) time, O(N · samples) memory; resolution about π / moments.
    """
    if graph.num_nodes == 0:
        return np.zeros_like(frequency)
    shifted = -graph.normalised_adjacency
    signal = np.random.default_rng(seed).choice([-1.0, 1.0], size=(graph.num_nodes, samples))
    terms = polynomials(lambda x: shifted @ x, signal, moments)
    damped = np.array([np.mean(signal * term) for term in terms]) * jackson(moments).numpy()
    damped[1:] *= 2.0
    x = np.clip(frequency - 1.0, -0.9999, 0.9999)
    series = np.cos(np.outer(np.arccos(x), np.arange(moments + 1))) @ damped
    return np.asarray(np.maximum(series, 0.0) / (math.pi * np.sqrt(1.0 - x**2)))
