"""The learned responses of all heads of a model over the spectrum of a graph."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from asgat.explain.responses import BANDS, filter_response, response_shape
from asgat.graph.graph import Floats, Graph
from asgat.nn.attention_model import AttentionModel
from asgat.spectral import spectral_density

Kind = Literal["attention", "filters"]


@dataclass(frozen=True, eq=False)
class HeadResponses:
    """Responses of attention heads and of filter heads, and their shapes.

    Args:
        frequency: equally spaced frequencies λ from 0 to 2, [n].
        density: density of the graph's eigenvalues there.
        attention: responses [n, heads] of every attention layer.
        filters: those of every layer of filters without attention.
    """

    frequency: Floats
    density: Floats
    attention: list[Floats]
    filters: list[Floats]

    def shape(self, response: Floats, kind: Kind) -> str:
        """A name for the shape of a response [n], see :func:`~asgat.explain.responses.response_shape`.

        Attention prefers high scores. A filter's sign is free, because weights follow it: see :func:`oriented`.
        """
        values = response if kind == "attention" else oriented(response)
        return response_shape(values, self.frequency, self.density)

    def band_shares(self, response: Floats) -> Floats:
        r"""The share of each band in :math:`\sum_j g(\lambda_j)^2`, the strength of a filter, [4]; 0 if g is 0.

        The density is smooth: eigenvalues within about 0.04 of an edge are divided between two bands.
        """
        strength = self.density * response**2
        band = np.searchsorted([low for low, _ in BANDS], self.frequency, side="right") - 1
        return np.asarray(np.bincount(band, strength, minlength=len(BANDS)) / max(strength.sum(), 1e-30))

    def along_edges(self, response: Floats) -> float:
        """In a directed graph, the share of a filter's strength that goes along edges, from one side of a node to the
        other side of another; the rest compares nodes that point to, or are pointed to by, the same ones."""
        odd, even = (np.sum(self.density * (response + sign * response[::-1]) ** 2) for sign in (-1.0, 1.0))
        return float(odd / max(odd + even, 1e-30))


def oriented(response: Floats) -> Floats:
    """The response of a filter with the sign that makes its largest size positive."""
    return -response if -response.min() > response.max() else response


def head_responses(model: AttentionModel, graph: Graph, points: int = 401) -> HeadResponses:
    """The responses of all heads of a model, over the spectrum of the graph it takes."""
    frequency = np.linspace(0.0, 2.0, points)
    density = spectral_density(graph.spectral_graph, frequency)
    attention, filters = (
        [filter_response(conv.filter, frequency).astype(np.float64) for conv in convs]
        for convs in (model.convs, model.filter_convs)
    )
    return HeadResponses(frequency, density, attention, filters)
