"""``asgat convert``: a graph on disk from an edge list, features and labels."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from asgat.cli.options import Json, Seed, check_writable, console, write_json
from asgat.errors import AsgatError, brief


def convert(
    edges: Annotated[
        Path, typer.Argument(help="Edge list: .csv, .tsv or .txt with two node numbers a line; .npy; .npz.")
    ],
    out: Annotated[Path, typer.Argument(help="Folder to write.")],
    features: Annotated[Path, typer.Option(help="A row of numbers per node: .npy, or .csv.")],
    labels: Annotated[Path, typer.Option(help="A class from 0 per node, -1 for none: .npy, or .csv.")],
    splits: Annotated[
        Path | None, typer.Option(help="Per node 1 train, 2 validation, 3 test or 0, a column a split; else drawn.")
    ] = None,
    num_splits: Annotated[int, typer.Option(help="Splits to draw.", min=1)] = 1,
    order: Annotated[str, typer.Option(help="Order of the nodes: rcm, metis (needs pymetis) or none.")] = "rcm",
    self_loops: Annotated[str, typer.Option(help="keep, add or remove.")] = "keep",
    metric: Annotated[str, typer.Option(help="micro_f1 or roc_auc.")] = "micro_f1",
    name: Annotated[str | None, typer.Option(help="Name of the graph; the folder's by default.")] = None,
    memory: Annotated[int, typer.Option(help="MiB a sort may take.", min=1)] = 512,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Write a graph as a folder that is mapped into memory, for graphs too large to be read whole.

    `asgat train FOLDER`, with --distributed or without, trains on it.
    """
    from asgat.disk.converter import write_graph
    from asgat.disk.edge_reader import ENDINGS, read_edges
    from asgat.disk.ordering import ORDERS

    check_writable(json)
    if order not in ORDERS:
        raise AsgatError(f"--order must be one of {', '.join(ORDERS)}, not {order!r}.")
    if self_loops not in ("keep", "add", "remove"):
        raise AsgatError(f"--self-loops must be keep, add or remove, not {self_loops!r}.")
    if edges.suffix.lower() not in ENDINGS or not edges.is_file():
        raise AsgatError(f"{edges} is no edge list: give a file that ends in {', '.join(ENDINGS)}.")
    x, y = read_array(features), read_array(labels, whole=True)
    parts = None if splits is None else read_array(splits, whole=True)
    with console.status("") as status:
        graph = write_graph(
            out,
            read_edges(edges),
            x,
            y.reshape(-1) if y.size == len(y) else y,
            parts,
            name=name,
            order=order,
            self_loops=self_loops,  # type: ignore[arg-type]
            metric=metric,
            num_splits=num_splits,
            seed=seed,
            memory=memory << 20,
            say=status.update,
        )
    table = Table(title=f"Graph on disk: {graph.name}", box=SIMPLE_HEAD)
    figures = {
        "nodes": graph.num_nodes,
        "entries": graph.num_entries,
        "features": graph.num_features,
        "classes": graph.num_classes,
        "splits": graph.num_splits,
        "mb": sum(file.stat().st_size for file in out.iterdir()) / 2**20,
    }
    for heading in ("nodes", "entries", "features", "classes", "splits", "MiB"):
        table.add_column(heading, justify="right")
    table.add_row(*(f"{value:,.0f}" for value in figures.values()))
    console.print(table)
    console.print(f"folder: {out}", highlight=False, soft_wrap=True, markup=False, emoji=False)
    write_json(json, {"name": graph.name, "folder": str(out), "order": order, **figures})


def read_array(path: Path, whole: bool = False) -> Any:
    """Numbers of a .npy file, as a map, or of a text file with commas, semicolons, tabs or spaces."""
    import numpy as np

    from asgat.files.npy import open_npy

    if not path.is_file():
        raise AsgatError(f"{path} is no file; give a .npy or .csv file.")
    try:
        if path.suffix.lower() == ".npy":
            return open_npy(path, "write it with numpy.save")
        with path.open(encoding="utf-8") as file:
            first = file.readline()
        separator = next((s for s in (",", ";", "\t") if s in first), None)
        names = not all(_is_number(word) for word in first.strip().split(separator))
        kind: Any = np.int64 if whole else np.float32
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns where there is no number at all
            return np.loadtxt(path, kind, delimiter=separator, skiprows=int(names), ndmin=1 if whole else 2)
    except AsgatError:
        raise
    except (OSError, ValueError, OverflowError, Warning) as error:
        raise AsgatError(f"{path} cannot be read as numbers: {brief(error)}.") from error


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
