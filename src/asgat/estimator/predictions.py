"""The predictions of a fitted model, as a table."""

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError
from asgat.estimator.classifier import ASGATClassifier
from asgat.files.atomic import write_atomic
from asgat.files.user_file import ending_of, is_packed
from asgat.tabular.assembly import read_graph
from asgat.tabular.column import Column
from asgat.tabular.table import import_pyarrow

ENDINGS = (".csv", ".tsv", ".parquet")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True, eq=False)
class Predictions:
    """A row per node: its id, the probability of every class, [nodes, classes], and its label, "" without one.

    ``id_name`` is the heading of the ids; ``notes`` say in sentences what was noticed.
    """

    id_name: str
    ids: Sequence[str]
    classes: Sequence[str]
    probability: npt.NDArray[np.float64]
    label: Sequence[str]
    notes: Sequence[str] = ()

    @property
    def predicted(self) -> npt.NDArray[np.int64]:
        return np.asarray(self.probability.argmax(axis=1))

    def columns(self) -> dict[str, list[Any]]:
        """The table: id, prediction, whether the node had a label, the label, and a probability per class."""
        table: dict[str, list[Any]] = {
            "prediction": [self.classes[number] for number in self.predicted.tolist()],
            "labelled": [text != "" for text in self.label],
            "label": list(self.label),
        }
        for number, name in enumerate(self.classes):
            table[f"p({name})"] = self.probability[:, number].tolist()
        id_name = self.id_name
        while id_name in table:  # the user's column may be called like one of these
            id_name = f"id_{id_name}"
        return {id_name: list(self.ids), **table}


def predictions_of(
    classifier: ASGATClassifier, edges: Path | None = None, nodes: Path | None = None, ignore: Sequence[str] = ()
) -> Predictions:
    """Predicts a graph in files with the columns the model was fitted on; without files, the fitted graph."""
    roles = classifier.encoding_.columns
    names = Column.of_objects("class", classifier.classes_.tolist()).texts()
    id_name = roles.get("id") or "id"
    if edges is None:
        if nodes is not None:
            raise AsgatError("The nodes need their edges: give --edges too, or neither for the graph that was fitted.")
        y = classifier.dataset_.y
        label = [names[number] if number >= 0 else "" for number in y.tolist()]
        return Predictions(id_name, classifier.ids_, names, classifier.predict_proba(), label)
    graph = read_graph(
        edges,
        nodes,
        **{role: roles.get(role) for role in ("label", "id", "source", "target", "weight")},
        split=classifier.encoding_.splits,
        ignore=ignore,
        optional=("label", "split"),
        directed=classifier.directed,
    )
    probability, notes = classifier.predict_with_notes(graph)
    label = graph.label.texts() if graph.label is not None else [""] * graph.num_nodes
    return Predictions(id_name, graph.ids, names, probability, label, [*graph.notes, *notes])


def check_ending(path: Path) -> None:
    """Refuses an ending of no known kind."""
    if ending_of(path) not in ENDINGS:
        listed = "in .csv, .tsv, .csv.gz, .tsv.gz or .parquet"
        raise AsgatError(f"{path} must end {listed}, which decides the format.")
    if ending_of(path) == ".parquet":
        import_pyarrow()


def write_predictions(predictions: Predictions, path: Path, safe_csv: bool = False) -> None:
    """Writes the table in the format of the file's ending.

    ``safe_csv`` puts an apostrophe before texts that a spreadsheet would run as a formula, those that begin with ``=``,
    ``+``, ``-``, ``@``, a tab or a line break. Parquet files never need it.
    """
    check_ending(path)
    columns = predictions.columns()
    if ending_of(path) == ".parquet":
        pyarrow = import_pyarrow()
        stream = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(columns), stream)
        write_atomic(path, stream.getvalue())
        return

    def cell(value: Any) -> Any:
        if isinstance(value, bool):
            return str(value).lower()
        return f"'{value}" if safe_csv and isinstance(value, str) and value.startswith(FORMULA) else value

    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if ending_of(path) == ".tsv" else ",", lineterminator="\n")
    for row in (columns, *zip(*columns.values(), strict=True)):
        writer.writerow(map(cell, row))
    content = text.getvalue().encode("utf-8", "surrogatepass")
    write_atomic(path, gzip.compress(content, mtime=0) if is_packed(path) else content)  # the same bytes every time


def summary_of(predictions: Predictions) -> dict[str, Any]:
    """Nodes predicted per class, and the share of labelled nodes that are predicted as labelled."""
    predicted, label = predictions.predicted, np.array(predictions.label, dtype=object)
    named, most = np.array(predictions.classes, dtype=object)[predicted], len(predictions.classes)
    nodes, unlabelled = (np.bincount(part, minlength=most) for part in (predicted, predicted[label == ""]))
    labelled = int(nodes.sum() - unlabelled.sum())
    rows = zip(predictions.classes, nodes.tolist(), unlabelled.tolist(), strict=True)
    return {
        "nodes": int(nodes.sum()),
        "labelled": labelled,
        "accuracy": int((named == label).sum()) / labelled if labelled else None,
        "rows": [{"class": name, "nodes": count, "unlabelled": without} for name, count, without in rows],
    }
