"""The features of nodes as a user reads them."""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from asgat.estimator.trained_run import TrainedRun, read_encoder
from asgat.graph.graph import Ints
from asgat.tabular.encoder import FeatureEncoder, Value

FEW = 12  # up to here all columns of a node are shown
MOST = 8  # of more columns, those that stand out
LONGEST = 60  # characters of a name or a value


def node_features(run: TrainedRun, nodes: Ints) -> list[list[list[str]]]:
    """For each node its columns as pairs of name and value: all if they are few, else those that stand out."""
    read = _reader(run)
    return [[[_short(value.name), _short(value.text)] for value in _chosen(read(run.x[node]))] for node in nodes]


def _reader(run: TrainedRun) -> Callable[[npt.NDArray[np.float32]], list[Value]]:
    if run.is_user_graph:
        held = read_encoder(run.path)
        if "features" in held:
            encoder = FeatureEncoder.from_dict(held)
            if encoder.names == run.feature_names:
                return encoder.read_row
    names = run.feature_names
    return lambda row: [Value(name, f"{value:.6g}", abs(float(value))) for name, value in zip(names, row, strict=True)]


def _chosen(values: list[Value]) -> Iterable[Value]:
    if len(values) <= FEW:
        return values
    return sorted((value for value in values if value.size > 0), key=lambda value: -value.size)[:MOST]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
