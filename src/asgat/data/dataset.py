"""A data set: one graph, features, labels and splits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError
from asgat.graph.graph import Graph, Ints, Mask

if TYPE_CHECKING:
    from torch_geometric.data import Data

ROWS_AT_ONCE = 1 << 16  # of features that are checked
METRICS = ("micro_f1", "macro_f1", "roc_auc", "log_loss")  # what validation can decide by


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of the nodes to train, to validate and to test on."""

    train: Ints
    val: Ints
    test: Ints

    def __post_init__(self) -> None:
        for part, nodes in self.parts().items():
            array = np.asarray(nodes)
            if array.dtype == bool:
                raise AsgatError(f"The {part} part of a split is a mask; give node indices, as np.flatnonzero(mask).")
            if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
                held = f"{array.dtype} of shape {list(array.shape)}"
                raise AsgatError(f"The {part} part of a split must be a list of node indices, not {held}.")
            object.__setattr__(self, part, np.ascontiguousarray(array, dtype=np.int64))

    def parts(self) -> dict[str, Ints]:
        """The three parts by name."""
        return {"train": self.train, "val": self.val, "test": self.test}

    def masks(self, num_nodes: int) -> dict[str, Mask]:
        """The three parts by name, each as a mask [num_nodes]."""
        return {part: np.isin(np.arange(num_nodes), nodes) for part, nodes in self.parts().items()}

    def visible(self, y: Ints) -> Ints:
        """The labels [N] that may be learned from and chosen by: those of training and validation nodes, elsewhere -1.

        Whatever is trained, chosen, advised or left out reads these; the others are for scores.
        """
        nodes = np.concatenate([self.train, self.val])
        found = np.full_like(y, -1)
        found[nodes] = y[nodes]
        return found

    def __repr__(self) -> str:
        return f"Split(train={len(self.train)}, val={len(self.val)}, test={len(self.test)})"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A node classification task, checked on construction.

    Args:
        graph: the graph, undirected or directed.
        x: raw features of shape [N, F], finite.
        y: labels of shape [N] in 0 to ``num_classes - 1``; -1 marks a node without a label.
        splits: the splits, commonly ten or one. Parts are disjoint and hold labelled nodes only.
        metric: ``"micro_f1"``, ``"macro_f1"``, ``"log_loss"`` or, for two classes, ``"roc_auc"``.
        protocol: where the splits come from.
        data_dir: folder of the published files it was read from, if it was.
    """

    name: str
    graph: Graph
    x: npt.NDArray[np.float32]
    y: Ints
    splits: tuple[Split, ...]
    num_classes: int
    metric: str = "micro_f1"
    protocol: str = "random"
    data_dir: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", self._checked_features())
        object.__setattr__(self, "y", self._checked_labels())
        object.__setattr__(self, "splits", tuple(self.splits))
        if self.metric not in METRICS:
            raise AsgatError(f"metric must be one of {', '.join(METRICS)}, not {self.metric!r}.")
        if self.metric == "roc_auc" and self.num_classes != 2:
            raise AsgatError(f"roc_auc needs two classes, but {self.name} has {self.num_classes}; use micro_f1.")
        if not self.splits:
            raise AsgatError(f"{self.name} has no splits; give at least one, for instance by stratified_splits.")
        for number, split in enumerate(self.splits):
            self._check_split(number, split)

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @property
    def num_features(self) -> int:
        return int(self.x.shape[1])

    @property
    def directed(self) -> bool:
        return self.graph.directed

    def to_pyg(self) -> Data:
        """As a PyG ``Data``: masks have shape [N, splits], or [N] where there is one split.

        An undirected edge is there in both directions; ``edge_weight`` only where some weight differs from 1.
        """
        import torch

        from asgat.nn.pyg import Data

        data = Data(
            x=torch.from_numpy(self.x.copy()),
            y=torch.from_numpy(self.y.copy()),
            edge_index=torch.from_numpy(self.graph.edge_index()),
        )
        weight = self.graph.adjacency.tocoo().data
        if np.any(weight != 1):
            data.edge_weight = torch.from_numpy(weight.astype(np.float32))
        masks = [split.masks(self.num_nodes) for split in self.splits]
        for part in ("train", "val", "test"):
            mask = np.stack([held[part] for held in masks], axis=1)
            data[f"{part}_mask"] = torch.from_numpy(mask[:, 0] if len(masks) == 1 else mask)
        return data

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, nodes={self.num_nodes}, entries={self.graph.num_entries}, "
            f"features={self.num_features}, classes={self.num_classes}, splits={len(self.splits)}, "
            f"protocol={self.protocol!r})"
        )

    def _checked_features(self) -> npt.NDArray[np.float32]:
        x = np.asarray(self.x)
        if x.ndim != 2 or x.shape[0] != self.num_nodes:
            raise AsgatError(f"Features must have shape [{self.num_nodes}, F], one row per node, not {list(x.shape)}.")
        if x.dtype.kind not in "biuf":
            raise AsgatError(f"Features must be numbers, not {x.dtype}.")
        with np.errstate(over="ignore"):  # a value beyond float32 becomes infinite and is named below
            x = np.ascontiguousarray(x, dtype=np.float32)
        for start in range(0, len(x), ROWS_AT_ONCE):
            finite = np.isfinite(x[start : start + ROWS_AT_ONCE])
            if not finite.all():
                node, column = np.argwhere(~finite)[0] + (start, 0)
                raise AsgatError(
                    f"Features with NaN or infinity: node {node}, column {column} is {x[node, column]}; "
                    "fill in or drop such values first."
                )
        return x

    def _checked_labels(self) -> Ints:
        y = np.asarray(self.y)
        if y.shape != (self.num_nodes,):
            raise AsgatError(f"Labels must have shape [{self.num_nodes}], one per node, not {list(y.shape)}.")
        if y.dtype.kind not in "iu":
            raise AsgatError(f"Labels must be integers, not {y.dtype}.")
        if self.num_classes < 1:
            raise AsgatError(f"num_classes must be at least 1, but is {self.num_classes}.")
        bad = np.flatnonzero((y < -1) | (y >= self.num_classes))
        if bad.size:
            raise AsgatError(
                f"Node {bad[0]} has label {y[bad[0]]}; labels run from 0 to {self.num_classes - 1}, "
                "and -1 marks a node without one."
            )
        return np.ascontiguousarray(y, dtype=np.int64)

    def _check_split(self, number: int, split: Split) -> None:
        where = f"In split {number} of {self.name}"
        if not len(split.train):
            raise AsgatError(f"{where} the train part is empty; there is nothing to learn from.")
        seen = np.full(self.num_nodes, "", dtype="<U5")
        for part, nodes in split.parts().items():
            outside = nodes[(nodes < 0) | (nodes >= self.num_nodes)]
            if outside.size:
                raise AsgatError(
                    f"{where} the {part} part names node {outside[0]}, but nodes run from 0 to {self.num_nodes - 1}."
                )
            unlabelled, shared = nodes[self.y[nodes] < 0], nodes[seen[nodes] != ""]
            values, counts = np.unique(nodes, return_counts=True)
            if unlabelled.size:
                raise AsgatError(f"{where} the {part} part holds node {unlabelled[0]}, which has no label; remove it.")
            if np.any(counts > 1):
                raise AsgatError(f"{where} the {part} part names node {values[counts > 1][0]} twice.")
            if shared.size:
                other = seen[shared[0]]
                raise AsgatError(f"{where} node {shared[0]} is in both {other} and {part}; parts must be disjoint.")
            seen[nodes] = part
