"""A contextual stochastic block model with adjustable homophily."""

import math

import numpy as np

from asgat.data.dataset import Dataset
from asgat.data.splits import check_seed, stratified_splits
from asgat.errors import AsgatError
from asgat.graph.graph import Graph, Ints


def contextual_sbm(
    num_nodes: int = 800,
    num_classes: int = 2,
    mean_degree: float = 3.0,
    homophily: float = 0.2,
    num_features: int = 64,
    signal: float = 0.12,
    structured: bool = False,
    seed: int = 0,
) -> Dataset:
    r"""A random graph whose edges and features are each weakly informative about the class.

    Classes are of equal size. Of the :math:`N \cdot d / 2` edges the share ``homophily`` joins equal classes;
    ends are uniform otherwise. A node of class c has features :math:`s \mu_c + \varepsilon` with
    :math:`\mu_c` a random vector of ±1 and :math:`\varepsilon` standard normal. Ten random splits 48/32/20.
    Cost grows with nodes and edges, never with their square.

    With the defaults, a sparse graph with few edges inside a class and weak features, a low-pass filter fails: the mean
    over a node and its three neighbours cancels the features' signal. Heterophily alone does not hurt it: in a dense
    graph, or a structured one (class c linked to c ± 1), the mean over the neighbours reveals the class, and a GCN does
    well too.

    Args:
        num_nodes: N, at least two per class.
        mean_degree: d.
        homophily: share of edges inside a class, from 0 to 1.
        signal: the strength s of the features.
        structured: link class c to c ± 1 only instead of to all other classes.
        seed: of graph, features and splits.
    """
    _check_counts(num_nodes=num_nodes, num_classes=num_classes, num_features=num_features)
    _check_numbers(mean_degree=mean_degree, homophily=homophily, signal=signal)
    check_seed(seed)
    if not isinstance(structured, bool):
        raise AsgatError(f"structured must be true or false, not {structured!r}.")
    if num_classes < 2 or num_nodes < 2 * num_classes:
        raise AsgatError(
            f"A block model needs two classes and two nodes in each, but num_classes is {num_classes} "
            f"and num_nodes {num_nodes}."
        )
    if homophily > 1:
        raise AsgatError(f"homophily is a share of edges, from 0 to 1, but is {homophily}.")
    wiring, content, shuffling = np.random.default_rng(seed).spawn(3)
    blocks = _Blocks(num_nodes, num_classes, structured)
    # Edges are drawn with classes as ranges of numbers; renumbering hides the class.
    number = shuffling.permutation(num_nodes)
    y = np.empty(num_nodes, dtype=np.int64)
    y[number] = blocks.label(np.arange(num_nodes))
    count = round(num_nodes * mean_degree / 2)
    num_inside = round(count * homophily)
    inside, between = _distinct(blocks, True, num_inside, wiring), _distinct(blocks, False, count - num_inside, wiring)
    ends = np.concatenate([inside, between], axis=1)
    means = content.choice(np.array([-1, 1], dtype=np.float32), size=(num_classes, num_features))
    x = content.standard_normal((num_nodes, num_features), dtype=np.float32)
    x += np.float32(signal) * means[y]
    graph = Graph.from_edges(number[ends], num_nodes)
    return Dataset("csbm", graph, x, y, stratified_splits(y, seed=seed), num_classes)


class _Blocks:
    """Classes as ranges of node numbers, and pairs of nodes drawn from them."""

    def __init__(self, num_nodes: int, num_classes: int, structured: bool) -> None:
        self.bounds = np.arange(num_classes + 1) * num_nodes // num_classes
        self.num_classes, self.structured = num_classes, structured

    def label(self, nodes: Ints) -> Ints:
        return np.searchsorted(self.bounds, nodes, side="right").astype(np.int64) - 1

    def num_pairs(self, inside: bool) -> int:
        size = [int(n) for n in np.diff(self.bounds)]
        if inside:
            return sum(n * (n - 1) // 2 for n in size)
        if self.structured and self.num_classes > 3:
            return sum(n * size[(i + 1) % len(size)] for i, n in enumerate(size))
        return (sum(size) ** 2 - sum(n * n for n in size)) // 2

    def draw(self, inside: bool, count: int, rng: np.random.Generator) -> Ints:
        """Pairs of shape [2, count], the lower node first, with repetitions and self-loops."""
        first = rng.integers(self.bounds[-1], size=count)
        label = self.label(first)
        if not inside:
            step = rng.choice([-1, 1], size=count) if self.structured else rng.integers(1, self.num_classes, size=count)
            label = (label + step) % self.num_classes
        second = rng.integers(self.bounds[label], self.bounds[label + 1])
        return np.sort(np.stack([first, second]), axis=0)


def _distinct(blocks: _Blocks, inside: bool, count: int, rng: np.random.Generator) -> Ints:
    """``count`` different pairs: draw, drop self-loops and repetitions, draw what is missing."""
    num_pairs, num_nodes = blocks.num_pairs(inside), int(blocks.bounds[-1])
    if count > num_pairs // 2:  # beyond half, most draws are repetitions
        place = "inside classes" if inside else "between classes"
        raise AsgatError(
            f"{count} edges {place} are too many for {num_pairs} pairs of nodes, of which at most half may be edges. "
            "Lower mean_degree or raise num_nodes."
        )
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < count:
        low, high = blocks.draw(inside, count - len(keys) + 16, rng)
        keys = np.concatenate([keys, (low * num_nodes + high)[low != high]])
        # The first of equal pairs keeps its place: cutting a sorted list would favour low node numbers.
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]
    return np.stack(np.divmod(keys[:count], num_nodes))


def _check_counts(**values: int) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise AsgatError(f"{name} must be a positive integer, not {value!r}.")


def _check_numbers(**values: float) -> None:
    for name, value in values.items():
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:
            raise AsgatError(f"{name} must be a number and not negative, but is {value!r}.")
