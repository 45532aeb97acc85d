"""Poincaré embedding of a graph: hubs near the centre of a disc, leaves near its rim."""

from typing import Any

import numpy as np

from asgat.graph.graph import Floats, Graph
from asgat.kernels.cpu.jit import compiled

_NEGATIVES = 10
_STEPS = 400
_RIM = 1 - 1e-5  # no point is further out


def poincare(graph: Graph, seed: int = 0, epochs: int | None = None, rate: float = 0.1) -> Floats:
    r"""Positions [N, 2] in the unit disc by Riemannian gradient descent (Nickel and Kiela, NeurIPS 2017).

    For an edge (u, v) and ten nodes drawn at random, of which :math:`\mathcal N` are not neighbours of u,

    .. math::
        \ell = d(u, v) + \log \sum_{w \in \mathcal N \cup \{v\}} e^{-d(u, w)}, \qquad
        d(u, v) = \operatorname{arcosh} \Bigl(1 + 2 \frac{\|u - v\|^2}{(1 - \|u\|^2)(1 - \|v\|^2)}\Bigr),

    and every point takes a step of :math:`-\text{rate} \, \frac{(1 - \|u\|^2)^2}{4} \nabla \ell`. The first tenth of
    the epochs has a tenth of the rate. Steps are sequential in a random order: the same seed gives the same points.
    Weights and self-loops are ignored. An epoch passes over all edges in both directions; None takes 5 to 100 epochs,
    for about 400 steps per node.
    """
    rng = np.random.default_rng(seed)
    position = rng.uniform(-1e-3, 1e-3, (graph.num_nodes, 2))
    plain = graph.with_self_loops("remove")
    tails, heads = plain.edge_index()
    if epochs is None:
        epochs = int(np.clip(_STEPS * graph.num_nodes // max(1, len(tails)), 5, 100))
    for epoch in range(epochs):
        order = rng.permutation(len(tails))
        step = rate / 10 if epoch < epochs // 10 else rate
        _descend(position, plain.adjacency.indptr, plain.adjacency.indices, tails[order], heads[order], step, rng)
    return position


@compiled(set())
def _distance(u: Any, v: Any) -> Any:
    gap = (u[0] - v[0]) ** 2 + (u[1] - v[1]) ** 2
    inside = (1 - u[0] ** 2 - u[1] ** 2) * (1 - v[0] ** 2 - v[1] ** 2)
    return np.arccosh(1 + 2 * gap / inside)


@compiled(set())
def _gradient(u: Any, v: Any, scale: float, out: Any) -> None:
    """Adds the gradient of scale · d(u, v) in u to out; none where the points coincide."""
    gap = (u[0] - v[0]) ** 2 + (u[1] - v[1]) ** 2
    if gap == 0.0:
        return
    inside_u = 1 - u[0] ** 2 - u[1] ** 2
    inside_v = 1 - v[0] ** 2 - v[1] ** 2
    excess = 2 * gap / (inside_u * inside_v)
    factor = scale * 4 / (inside_v * np.sqrt(excess * (excess + 2)))
    # ‖v‖² - 2⟨u, v⟩ + 1 = ‖u - v‖² + 1 - ‖u‖²
    for i in range(2):
        out[i] += factor * ((gap + inside_u) / inside_u**2 * u[i] - v[i] / inside_u)


@compiled(set())
def _descend(
    position: Any, indptr: Any, indices: Any, tails: Any, heads: Any, rate: float, rng: np.random.Generator
) -> None:
    others = np.empty(_NEGATIVES + 1, np.int64)
    weight = np.empty(_NEGATIVES + 1)
    slope = np.empty((_NEGATIVES + 2, 2))
    for e in range(len(tails)):
        u = tails[e]
        neighbours = indices[indptr[u] : indptr[u + 1]]
        others[0] = heads[e]
        count = 1
        for _ in range(_NEGATIVES):
            w = rng.integers(0, len(position))
            place = np.searchsorted(neighbours, w)
            if w != u and (place == len(neighbours) or neighbours[place] != w):
                others[count] = w
                count += 1
        for j in range(count):
            weight[j] = np.exp(-_distance(position[u], position[others[j]]))
        total = weight[:count].sum()
        slope[: count + 1] = 0
        for j in range(count):
            share = (1.0 if j == 0 else 0.0) - weight[j] / total
            _gradient(position[u], position[others[j]], share, slope[count])
            _gradient(position[others[j]], position[u], share, slope[j])
        for j in range(count + 1):
            point = position[u] if j == count else position[others[j]]
            metric = (1 - point[0] ** 2 - point[1] ** 2) ** 2 / 4
            for i in range(2):
                point[i] -= rate * metric * slope[j, i]
            radius = np.sqrt(point[0] ** 2 + point[1] ** 2)
            if radius > _RIM:
                for i in range(2):
                    point[i] *= _RIM / radius
