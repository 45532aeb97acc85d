"""``asgat convert``: a graph on disk from an edge list, features and labels."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from asgat.cli import options
from asgat.cli.output import console, make_table, notes, say, write_json
from asgat.errors import AsgatError


def convert(
    edges: Annotated[
        Path,
        typer.Argument(help="Edge list: .csv, .tsv or .txt, also .gz, with two node numbers per line; .npy; .npz."),
    ],
    out: Annotated[Path, typer.Argument(help="Folder to write.")],
    features: Annotated[Path, typer.Option(help="One row of numbers per node: .npy or .csv.")],
    labels: Annotated[Path, typer.Option(help="Class of each node, from 0; -1 for none: .npy or .csv.")],
    splits: Annotated[
        Path | None, typer.Option(help="Per node and split 1 train, 2 validation, 3 test or 0. Default: random splits.")
    ] = None,
    num_splits: Annotated[int, typer.Option(help="Number of random splits.", min=1)] = 1,
    order: Annotated[str, typer.Option(help="Order of the nodes: rcm, metis (needs pymetis) or none.")] = "rcm",
    self_loops: Annotated[str, typer.Option(help="keep, add or remove.")] = "keep",
    metric: Annotated[str, typer.Option(help="micro_f1 or roc_auc.")] = "micro_f1",
    directed: Annotated[bool, typer.Option("--directed", help="Edges have a direction, source to target.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the graph. Default: the folder's.")] = None,
    memory: Annotated[int, typer.Option(help="Memory for sorting, in MiB.", min=1)] = 512,
    seed: options.Seed = 0,
    json: options.Json = None,
) -> None:
    """Write a graph as a memory-mapped folder, for graphs too large to fit into memory.

    `asgat train FOLDER` trains on it, with --distributed if it is undirected.
    """
    from asgat.disk.converter import ORDERS, write_graph
    from asgat.disk.edge_reader import ENDINGS, read_array, read_edges
    from asgat.files.user_file import ending_of

    if order not in ORDERS:
        raise AsgatError(f"--order must be one of {', '.join(ORDERS)}, not {order!r}.")
    if self_loops not in ("keep", "add", "remove"):
        raise AsgatError(f"--self-loops must be keep, add or remove, not {self_loops!r}.")
    if ending_of(edges) not in ENDINGS or not edges.is_file():
        raise AsgatError(f"{edges} is not an edge list; give a file that ends in {', '.join(ENDINGS)}.")
    x, y = read_array(features), read_array(labels, whole=True)
    parts = None if splits is None else read_array(splits, whole=True)
    with notes.status("") as status:
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
            directed=directed,
            say=status.update,
        )
    figures = {key: getattr(graph, f"num_{key}") for key in ("nodes", "entries", "features", "classes", "splits")}
    figures["mb"] = sum(file.stat().st_size for file in out.iterdir()) / 2**20
    title = f"{'Directed graph' if directed else 'Graph'} on disk: {escape(graph.name)}"
    table = make_table(title, [*list(figures)[:-1], "MiB"], left=())
    table.add_row(*(f"{value:,.0f}" for value in figures.values()))
    console.print(table)
    say(f"folder: {out}")
    write_json(json, {"name": graph.name, "folder": str(out), "order": order, "directed": directed, **figures})
