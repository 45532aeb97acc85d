"""The latent spaces by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from asgat.geometry.isomap import isomap
from asgat.geometry.poincare import poincare
from asgat.geometry.struc2vec import struc2vec
from asgat.graph import Graph

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Space:
    """A latent space: how a graph is placed in it, positions [N, 2], and how far two points are from each other.

    ``distance`` takes [A, 2] and [B, 2] to [A, B].
    """

    place: Callable[[Graph], Floats]
    distance: Callable[[Floats, Floats], Floats]


def euclidean(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.hypot(a[:, None, 0] - b[:, 0], a[:, None, 1] - b[:, 1]))


def hyperbolic(a: Floats, b: Floats) -> Floats:
    """The distance of the Poincaré disc."""
    inside_a, inside_b = (1 - np.square(points).sum(axis=1) for points in (a, b))
    return np.asarray(np.arccosh(1 + 2 * np.square(euclidean(a, b)) / (inside_a[:, None] * inside_b)))


SPACES: dict[str, Space] = {
    "isomap": Space(isomap, euclidean),
    "poincare": Space(poincare, hyperbolic),
    "struc2vec": Space(struc2vec, euclidean),
}
