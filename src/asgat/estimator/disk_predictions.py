"""Predictions of every node of a graph on disk, in blocks, written as they are known."""

import glob
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asgat.config import SpectralConfig
from asgat.disk.disk_graph import OnDiskGraph
from asgat.errors import AsgatError
from asgat.estimator.predictions import summary_of_counts
from asgat.files.atomic import TEMPORARY
from asgat.files.user_file import ending_of
from asgat.nn.asgat import ASGAT
from asgat.nn.registry import model_spec
from asgat.tabular.table import import_pyarrow
from asgat.training.batched_asgat import BatchedASGAT
from asgat.training.batched_deep import BatchedDeep
from asgat.training.inputs import make_inputs
from asgat.training.minibatch import check_minibatch
from asgat.training.run_directory import load_model, read_metadata

ROWS = 1 << 18  # of a row group
BATCH = 8192  # nodes at a time, unless the model was trained with a batch_size


def predict_on_disk(
    run: Path, graph: OnDiskGraph, out: Path, say: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Predicts every node of a graph with the model of a run directory, and writes a Parquet file.

    Its columns are the node (its number before the conversion), the prediction, the label (null without one), and a
    probability per class; its rows are in the order of the folder. Returns what :func:`summary_of` does for a table.

    The file has its name only when it is complete. What a killed prediction left of one is removed.

    Memory: 4 bytes per node and class, and as for mini-batches; hidden states beyond a gibibyte are in a file.
    """
    if ending_of(out) != ".parquet":
        raise AsgatError(f"Predictions of a graph on disk are written as .parquet, but {out.name} does not end so.")
    pyarrow, say = import_pyarrow(), say or (lambda text: None)
    model, name, config = load_model(run)
    bound = model_spec(name).belongs_to_graph(config)
    if bound or not isinstance(config, SpectralConfig):
        why = "whose weights belong to the nodes of the fitted graph" if bound else "which needs the whole graph"
        raise AsgatError(
            f"A graph on disk is predicted in blocks, but the model of {run} is {name}, {why}; name a run of an asgat "
            "model without adjacency, or give the graph as tables (--edges and --nodes)."
        )
    dataset = graph.to_dataset()
    sizes = dataset.num_features, dataset.num_classes
    held = tuple(read_metadata(run).get(key) for key in ("in_channels", "out_channels"))
    if sizes != held:
        raise AsgatError(
            f"The model of {run} takes {held[0]} features and knows {held[1]} classes, but {graph.name} has {sizes[0]} "
            f"features and {sizes[1]} classes; convert the graph with the same features, or name another run."
        )
    batch = getattr(config, "batch_size", None) or BATCH
    say("finding the table")
    x, operator = check_minibatch(
        model, make_inputs(dataset, name, config.replace(batch_size=batch), torch.device("cpu"))
    )
    batched: BatchedASGAT | BatchedDeep
    if isinstance(model, ASGAT):
        batched = BatchedASGAT(model, x, operator, batch)  # type: ignore[arg-type]
    else:
        none = torch.empty(0, dtype=torch.int64)
        batched = BatchedDeep(model, x, operator, batch, none)  # type: ignore[arg-type]
    say("computing")
    logits = batched.evaluate()
    say("writing")
    return _write(pyarrow, out, graph, dataset.y, logits)


def _write(pyarrow: Any, out: Path, graph: OnDiskGraph, y: Any, logits: torch.Tensor) -> dict[str, Any]:
    classes, node = logits.size(1), graph.original_nodes()
    fields = [("node", pyarrow.int64()), ("prediction", pyarrow.int32()), ("label", pyarrow.int32())]
    schema = pyarrow.schema([*fields, *((f"p({number})", pyarrow.float32()) for number in range(classes))])
    counts, right = np.zeros((classes, 2), dtype=np.int64), 0
    temporary = out.parent / f".{out.name}.{secrets.token_hex(8)}"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for left in out.parent.glob(f".{glob.escape(out.name)}.*"):
            if TEMPORARY.fullmatch(left.name):
                left.unlink()
        with pyarrow.parquet.ParquetWriter(temporary, schema) as writer:
            for start in range(0, len(y), ROWS):
                part, label = logits[start : start + ROWS], y[start : start + ROWS]
                probability, predicted = part.softmax(dim=1).numpy(), part.argmax(dim=1).numpy()
                columns = [node[start : start + ROWS], predicted.astype(np.int32)]
                columns.append(pyarrow.array(label.astype(np.int32), mask=label < 0))
                columns += [np.ascontiguousarray(column) for column in probability.T]
                writer.write_table(pyarrow.table(columns, schema=schema))
                np.add.at(counts, (predicted, (label < 0).astype(int)), 1)
                right += int((predicted == label).sum())
        temporary.replace(out)
    except OSError as error:
        raise AsgatError(f"{out} cannot be written: {error.strerror or error}. Choose another place.") from error
    finally:
        temporary.unlink(missing_ok=True)
    return summary_of_counts([str(number) for number in range(classes)], counts.sum(axis=1), counts[:, 1], right)
