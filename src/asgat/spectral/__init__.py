"""Spectral operators: a graph's scores ψ = g(L) for any filter g. Numerics only, no neural network in here."""

from functools import partial

from asgat.moved import moved_name
from asgat.spectral.arma import ArmaOperator, ArmaTableOperator
from asgat.spectral.chebyshev import ChebyshevOperator
from asgat.spectral.density import spectral_density
from asgat.spectral.exact import ExactOperator
from asgat.spectral.spectral_operator import SpectralOperator
from asgat.tables.table_operator import TableOperator

__all__ = [
    "ArmaOperator",
    "ArmaTableOperator",
    "ChebyshevOperator",
    "ExactOperator",
    "SpectralOperator",
    "TableOperator",
    "spectral_density",
]

__getattr__ = partial(moved_name, __name__)
