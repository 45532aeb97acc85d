"""Spectral filters: responses g(λ) with one column per head, independent of any graph."""

from asgat.filters.bandstop import BandStop
from asgat.filters.heat import HeatFilter
from asgat.filters.mlp import MLPFilter
from asgat.filters.pagerank import PageRankFilter
from asgat.filters.polynomial import PolynomialFilter
from asgat.filters.spectral_filter import SpectralFilter

__all__ = ["BandStop", "HeatFilter", "MLPFilter", "PageRankFilter", "PolynomialFilter", "SpectralFilter"]
