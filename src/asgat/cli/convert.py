"""``asgat convert``: a graph on disk from an edge list, features and labels."""

import hashlib
import json as json_text
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.markup import escape

from asgat.cli import options
from asgat.cli.output import RunProgress, console, detail, make_table, notes, resumable, say, write_json
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
    order: Annotated[str, typer.Option(help="Order of the nodes: rcm or none.")] = "rcm",
    self_loops: Annotated[str, typer.Option(help="keep, add or remove.")] = "keep",
    metric: Annotated[str, typer.Option(help="micro_f1 or roc_auc.")] = "micro_f1",
    directed: Annotated[bool, typer.Option("--directed", help="Edges have a direction, source to target.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the graph. Default: the folder's.")] = None,
    memory: Annotated[int, typer.Option(help="Memory for sorting, in MiB.", min=1)] = 512,
    table: Annotated[
        bool, typer.Option("--table", help="Also build the candidate table that --model with --set needs.")
    ] = False,
    model: Annotated[str, typer.Option(help="The model to build a table for.")] = "asgat-cheb",
    set_: options.Settings = None,
    seed: options.Seed = 0,
    json: options.Json = None,
) -> None:
    """Write a graph as a memory-mapped folder, for graphs too large to fit into memory.

    `asgat train FOLDER --distributed` trains on it, on the ranks of a launcher such as torchrun. A stopped command
    resumes when it is started again. With --table a folder that was converted from the same files is kept.
    """
    from asgat.disk.converter import ORDERS, write_graph
    from asgat.disk.disk_graph import OnDiskGraph
    from asgat.disk.edge_reader import ENDINGS, read_array, read_edges
    from asgat.disk.graph_table import store_table
    from asgat.files.user_file import ending_of
    from asgat.nn.registry import model_spec
    from asgat.recipe import load_config

    if order not in ORDERS:
        raise AsgatError(f"--order must be one of {', '.join(ORDERS)}, not {order!r}.")
    if self_loops not in ("keep", "add", "remove"):
        raise AsgatError(f"--self-loops must be keep, add or remove, not {self_loops!r}.")
    if ending_of(edges) not in ENDINGS or not edges.is_file():
        raise AsgatError(f"{edges} is not an edge list; give a file that ends in {', '.join(ENDINGS)}.")
    if set_ and not table:
        raise AsgatError("--set is for the table; give --table too, or leave it out.")
    config = load_config(name or out.name, model, options.parse_settings(set_ or [], model_spec(model).config))
    source = fingerprint([edges, features, labels, *([] if splits is None else [splits])])
    if table and out.exists() and OnDiskGraph(out).source() == source:
        say(f"{out} holds this graph already.")
        graph = OnDiskGraph(out)
    else:
        x, y = read_array(features), read_array(labels, whole=True)
        parts = None if splits is None else read_array(splits, whole=True)
        with resumable("Finished steps are saved"), notes.status("") as status:
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
                say=report(status.update),
                source=source,
            )
    built = None
    if table:
        with resumable("Finished rows are saved"), RunProgress(0, 1) as progress:
            built = store_table(graph, config, progress.building)
    figures = {key: getattr(graph, f"num_{key}") for key in ("nodes", "entries", "features", "classes", "splits")}
    figures["mb"] = sum(file.stat().st_size for file in out.iterdir() if file.is_file()) / 2**20
    title = f"{'Directed graph' if directed else 'Graph'} on disk: {escape(graph.name)}"
    shown = make_table(title, [*list(figures)[:-1], "MiB"], left=())
    shown.add_row(*(f"{value:,.0f}" for value in figures.values()))
    console.print(shown)
    say(f"folder: {out}")
    if built is not None:
        figures |= {"table_mb": built.nbytes / 2**20, "candidates_per_node": built.candidates_per_node}
        say(f"table:  {built.candidates_per_node:.1f} candidates per node, {built.nbytes / 2**20:,.0f} MiB")
    write_json(json, {"name": graph.name, "folder": str(out), "order": order, "directed": directed, **figures})


def fingerprint(files: list[Path]) -> str:
    """Identifies files by their places, sizes and times, without reading them."""
    for file in files:
        if not file.is_file():
            raise AsgatError(f"{file} is not a file; check its name.")
    facts = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(json_text.dumps(facts).encode()).hexdigest()


def report(show: Callable[[str], None]) -> Callable[[str], None]:
    """Shows a step, and with --verbose when it began."""
    start = perf_counter()

    def step(text: str) -> None:
        show(text)
        detail(f"{perf_counter() - start:7.1f} s  {text}")

    return step
