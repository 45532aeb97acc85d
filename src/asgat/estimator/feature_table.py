"""A table of features without a graph, as scikit-learn's estimators take it: a graph without edges."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.tabular.caution import Caution
from asgat.tabular.column import Column
from asgat.tabular.conversions import columns_of
from asgat.tabular.user_graph import UserGraph

WITHOUT_EDGES = "There are no edges: every row is a node of its own, and only its features count."
ADJACENCY = " A dense adjacency matrix is given as scipy.sparse.csr_array(matrix)."


def is_table(graph: Any) -> bool:
    """Whether this is a table of numbers, or a data frame, and no graph."""
    return not hasattr(graph, "tocoo") and (isinstance(graph, list) or hasattr(graph, "__array__"))


def read_table(estimator: Any, table: Any) -> UserGraph:
    """A table as a fitted estimator takes it, checked against the columns it was fitted on."""
    return _graph_of(estimator, _checked(estimator, table, reset=False), None)


def read_labelled_table(estimator: Any, table: Any, y: Any) -> UserGraph:
    """A table and the class of every row; the estimator remembers the columns, as scikit-learn's do."""
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

    checked = _checked(estimator, table, y, reset=True)
    labels = column_or_1d(y, warn=True)
    check_consistent_length(checked, labels)
    check_array(labels, ensure_2d=False, dtype=None, input_name="y")
    check_classification_targets(labels)
    return _graph_of(estimator, checked, labels)


def _checked(estimator: Any, table: Any, y: Any = "no_validation", *, reset: bool) -> Any:
    from sklearn.utils.validation import validate_data

    if isinstance(table, list):
        table = np.asarray(table)
    if hasattr(table, "detach"):
        table = table.detach().cpu().numpy()
    frame = hasattr(table, "iloc") and hasattr(table, "columns")  # may hold words
    if y is None or frame:
        checked = validate_data(estimator, table, y, reset=reset, skip_check_array=True)
        return checked if isinstance(y, str) else checked[0]
    return validate_data(estimator, table, reset=reset, ensure_all_finite=False)


def _graph_of(estimator: Any, table: Any, labels: npt.NDArray[Any] | None) -> UserGraph:
    names = getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(table.shape[1])])
    columns = [
        replace(column, name=str(name)) for column, name in zip(columns_of(table, len(table)), names, strict=True)
    ]
    label = None
    if labels is not None:  # every row has a label, and -1 is a class
        kind = labels.dtype.kind
        label = Column.of_array("y", labels) if kind in "biuf" else Column.of_objects("y", labels.tolist())
    notes = [Caution(WITHOUT_EDGES + ADJACENCY * (table.shape[0] == table.shape[1]))]
    ids, edges = [str(row) for row in range(len(table))], np.zeros((2, 0), dtype=np.int64)
    return UserGraph(ids, edges, columns, label=label, notes=notes, name="table")
