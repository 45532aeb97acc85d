"""DeepWalk embeddings of nodes, by factorising the matrix of its walks."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import eigsh

from asgat.errors import AsgatError
from asgat.graph.graph import Floats, Graph
from asgat.nn.connections import deepwalk_matrix

ENDINGS = (".npz", ".npy", ".csv", ".tsv")
MATRIX_NODES = 5000  # up to which an .npz file holds the matrix too

_DENSE_NODES = 2000  # up to which the whole spectrum is cheap; beyond, Lanczos iterations find the needed part


@dataclass(frozen=True, eq=False)
class Embedding:
    """A vector for every node, [N, d], the matrix [N, N] they factorise, and its d largest singular values."""

    vectors: Floats
    singular_values: Floats
    matrix: Floats

    @property
    def energy(self) -> float:
        """Share of the matrix's squared entries that its d largest singular values hold; 1 for a matrix of zeros."""
        total = float(np.vdot(self.matrix, self.matrix))
        return min(1.0, float(self.singular_values @ self.singular_values) / total) if total else 1.0


def deepwalk(graph: Graph, dimensions: int = 16, window: int = 10, negative: float = 1.0, seed: int = 0) -> Embedding:
    r"""DeepWalk's embedding as NetMF computes it: :math:`U_d \Sigma_d^{1/2}` of :func:`deepwalk_matrix`.

    The matrix is symmetric, so its singular vectors are eigenvectors, those of the largest absolute eigenvalues. Each
    column's entry of largest magnitude is positive, the first one where several are. Nodes whose row of the matrix is
    zero, as those without edges, get zeros; so do dimensions beyond the rank of the matrix.

    Args:
        dimensions: d, at most the number of nodes.
        window, negative: the longest walk and the number of negative samples.
        seed: of the start of the Lanczos iterations that factorise large matrices.

    Cost: O(N²) memory, refused where it does not suffice; O(window · E · N) time for the matrix, and O(N³) to factorise
    it up to 2,000 nodes, about O(d · N²) beyond.

    Example:
        >>> path = Graph.from_edges([[0, 1], [1, 2]], num_nodes=4)
        >>> deepwalk(path, dimensions=2, window=1).vectors.shape
        (4, 2)
    """
    if not 1 <= dimensions <= graph.num_nodes:
        raise AsgatError(
            f"An embedding of {graph.num_nodes:,} nodes has 1 to {graph.num_nodes:,} dimensions, not {dimensions}."
        )
    matrix: Floats = deepwalk_matrix(graph, window, negative).numpy()
    linked = matrix.any(axis=1)
    part = matrix if linked.all() else matrix[linked][:, linked]
    value, vector = _largest(part, dimensions, seed)
    value[np.abs(value) <= np.abs(value).max(initial=0.0) * len(part) * np.finfo(np.float64).eps] = 0.0
    vectors, singular = np.zeros((graph.num_nodes, dimensions)), np.zeros(dimensions)
    singular[: len(value)] = np.abs(value)
    vectors[linked, : len(value)] = _signed(vector) * np.sqrt(np.abs(value))
    return Embedding(vectors, singular, matrix)


def encode(embedding: Embedding, path: Path) -> bytes:
    """The content of a file of that name, by its ending.

    ``.npz`` holds ``embedding``, ``node``, ``singular_value`` and, up to 5,000 nodes, ``matrix``; ``.npy`` the vectors
    alone; ``.csv`` and ``.tsv`` a line per node under a heading.
    """
    ending, node = check_ending(path), np.arange(len(embedding.vectors))
    file = io.BytesIO()
    if ending == ".npz":
        arrays = {"embedding": embedding.vectors, "node": node, "singular_value": embedding.singular_values}
        if len(node) <= MATRIX_NODES:
            arrays["matrix"] = embedding.matrix
        np.savez(file, allow_pickle=False, **arrays)
    elif ending == ".npy":
        np.save(file, embedding.vectors, allow_pickle=False)
    else:
        names = ["node", *(f"x{i}" for i in range(embedding.vectors.shape[1]))]
        rows = ([str(v), *map(repr, row)] for v, row in enumerate(embedding.vectors.tolist()))
        file.writelines(f"{(',' if ending == '.csv' else chr(9)).join(line)}\n".encode() for line in (names, *rows))
    return file.getvalue()


def check_ending(path: Path) -> str:
    """The ending of a file, refused if an embedding cannot be written to it."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise AsgatError(f"An embedding is written to a file that ends in {', '.join(ENDINGS)}, not to {str(path)!r}.")
    return ending


def _largest(matrix: Floats, count: int, seed: int) -> tuple[Floats, Floats]:
    """The eigenvalues of largest magnitude, largest first, at most ``count``, and their vectors as columns."""
    n = len(matrix)
    if n <= _DENSE_NODES or count >= n - 1:
        value, vector = np.linalg.eigh(matrix)
    else:
        start = np.random.default_rng(seed).standard_normal(n)
        value, vector = eigsh(matrix, k=count, which="LM", v0=start)
    order = np.argsort(-np.abs(value), kind="stable")[:count]
    return value[order], vector[:, order]


def _signed(vector: Floats) -> Floats:
    """The columns, each with the sign that makes its largest entry positive."""
    if not vector.size:
        return vector
    largest = np.abs(vector).round(9).argmax(axis=0)  # rounded, so that the first of equal ones is taken
    return vector * np.where(vector[largest, np.arange(vector.shape[1])] < 0, -1.0, 1.0)
