"""``asgat embed``: DeepWalk embeddings."""

from pathlib import Path
from typing import Annotated

import typer

from asgat.cli import options
from asgat.cli.output import check_writable, console, make_table, say, write_json


def embed(
    dataset: options.Dataset,
    dimensions: Annotated[int, typer.Option(help="Dimensions of the embedding.")] = 16,
    window: Annotated[int, typer.Option(help="Longest walk, in steps.")] = 10,
    negative: Annotated[int, typer.Option(help="Negative samples.")] = 1,
    seed: options.Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=".npz, .npy, .csv or .tsv. Default: an .npz file in runs."),
    ] = None,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Write DeepWalk's embedding of every node, computed by factorising a spectral filter of the graph.

    An .npz file also holds the factorised matrix, up to 5,000 nodes.
    """
    from asgat.data import get_info, load_dataset
    from asgat.files.atomic import write_atomic
    from asgat.nn.deepwalk import check_ending, deepwalk, encode

    get_info(dataset)
    out = out or Path("runs") / f"{dataset}-embedding.npz"
    check_ending(out)
    check_writable(out)
    graph = load_dataset(dataset, data_dir=data_dir).graph
    embedding = deepwalk(graph, dimensions, window, negative, seed)
    write_atomic(out, encode(embedding, out))
    isolated, zero = int(graph.isolated.sum()), int((embedding.vectors == 0).all(axis=1).sum())
    headings = ("nodes", "without edges", "rows of zeros", "dimensions", "window", "energy kept")
    counts = [f"{count:,}" for count in (graph.num_nodes, isolated, zero, dimensions, window)]
    row = (*counts, f"{100 * embedding.energy:.1f} %")
    console.print(make_table(f"DeepWalk embedding of {dataset}", headings, [row]))
    say(f"embedding: {out}")
    settings = {"dataset": dataset, "dimensions": dimensions, "window": window, "negative": negative, "seed": seed}
    figures = {"nodes": graph.num_nodes, "isolated": isolated, "zero_rows": zero, "energy": embedding.energy}
    rows = [{"dimension": i, "singular_value": float(s)} for i, s in enumerate(embedding.singular_values)]
    write_json(json, {**settings, **figures, "file": str(out), "rows": rows})
