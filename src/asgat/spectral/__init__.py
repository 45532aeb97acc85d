"""Spectral operators: a graph's scores ψ = g(L) for any filter g. Numerics only, no neural networks."""

from asgat.spectral.arma_operator import ArmaOperator
from asgat.spectral.chebyshev_operator import ChebyshevOperator
from asgat.spectral.density import spectral_density
from asgat.spectral.exact_operator import ExactOperator
from asgat.spectral.graph_operator import GraphOperator
from asgat.spectral.spectral_operator import SpectralOperator

__all__ = [
    "ArmaOperator",
    "ChebyshevOperator",
    "ExactOperator",
    "GraphOperator",
    "SpectralOperator",
    "spectral_density",
]
