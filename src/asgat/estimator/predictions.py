"""What a fitted model predicts of a graph, as a table."""

from __future__ import annotations

import csv
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
from asgat.tabular.assembly import read_graph
from asgat.tabular.column import Column

ENDINGS = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True, eq=False)
class Predictions:
    """A row per node.

    Args:
        ids: what the nodes are called, under the heading ``id_name``.
        classes: the classes by name.
        probability: of every class, [nodes, classes].
        label: the labels the nodes have; "" where there is none.
        notes: what was noticed, in sentences.
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
        # An id or a class could be called like another column; a word in front keeps them apart.
        names = {"prediction", "labelled", "label"}
        id_name = self.id_name if self.id_name not in names else f"id_{self.id_name}"
        table: dict[str, list[Any]] = {
            id_name: list(self.ids),
            "prediction": [self.classes[number] for number in self.predicted.tolist()],
            "labelled": [text != "" for text in self.label],
            "label": list(self.label),
        }
        for number, name in enumerate(self.classes):
            table[f"p({name})"] = self.probability[:, number].tolist()
        return table


def predictions_of(
    classifier: ASGATClassifier, edges: Path | None = None, nodes: Path | None = None, ignore: Sequence[str] = ()
) -> Predictions:
    """Reads a graph with the columns the model was fitted on and predicts it; without one, the fitted graph."""
    roles = classifier.encoding_.columns
    names = Column.of_objects("class", classifier.classes_.tolist()).texts()
    id_name = roles.get("id") or "id"
    if edges is None:
        if nodes is not None:
            raise AsgatError("The nodes need their edges: give --edges too, or neither for the graph that was fitted.")
        y = classifier.dataset_.y
        label = [names[number] if number >= 0 else "" for number in y.tolist()]
        return Predictions(id_name, classifier.ids_, names, classifier.predict_proba(), label)
    own = read_graph(
        edges,
        nodes,
        **{role: roles.get(role) for role in ("label", "id", "source", "target", "weight", "split")},
        ignore=ignore,
        optional=("label", "split"),
    )
    probability = classifier.predict_proba(own)
    label = own.label.texts() if own.label is not None else [""] * own.num_nodes
    return Predictions(id_name, own.ids, names, probability, label, [*own.notes, *classifier.notes_])


def check_ending(path: Path) -> None:
    """Refuses a file that would be of no known kind."""
    if path.suffix.lower() not in ENDINGS:
        raise AsgatError(f"{path} must end in .csv, .tsv or .parquet, which tells how it is written.")
    if path.suffix.lower() == ".parquet":
        _pyarrow()


def write_predictions(predictions: Predictions, path: Path) -> None:
    """Writes the table as the file's ending says."""
    check_ending(path)
    columns = predictions.columns()
    if path.suffix.lower() == ".parquet":
        pyarrow = _pyarrow()
        stream = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(columns), stream)
        write_atomic(path, stream.getvalue())
        return
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([str(cell).lower() if isinstance(cell, bool) else cell for cell in row])
    write_atomic(path, text.getvalue().encode("utf-8", "surrogatepass"))


def summary_of(predictions: Predictions) -> dict[str, Any]:
    """How many nodes are predicted to be of each class, and how many labelled ones as labelled."""
    predicted = predictions.predicted
    labelled = np.array([text != "" for text in predictions.label])
    right = [predictions.classes[number] == text
             for number, text in zip(predicted.tolist(), predictions.label, strict=True) if text]  # fmt: skip
    return {
        "nodes": len(predicted),
        "labelled": int(labelled.sum()),
        "accuracy": float(np.mean(right)) if right else None,
        "rows": [
            {
                "class": name,
                "nodes": int((predicted == number).sum()),
                "unlabelled": int(((predicted == number) & ~labelled).sum()),
            }
            for number, name in enumerate(predictions.classes)
        ],
    }


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise AsgatError("Parquet needs pyarrow; install it with `pip install 'asgat[tables]'`.") from None
    return pyarrow
