"""``asgat explain`` and ``asgat report``: what a trained model attends to."""

from collections.abc import Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from asgat.cli import options
from asgat.cli.output import check_writable, console, make_table, say, write_json

Run = Annotated[Path, typer.Argument(help="A run directory of `asgat train`, `asgat compare` or `asgat fit`.")]
SIDES_MEAN = (
    "side: a node as the source of its edges (out) or as the target of edges (in). Out to in follows edges, in to out "
    "goes back; out to out compares what nodes point to, in to in what points to them. Hops ignore directions."
)
FILTERS_MEAN = "filter heads: the share of each band of frequencies λ in a response, over the graph's spectrum"
ALONG_MEANS = (
    "along edges: the share of a response that follows edges, forwards or backwards; the rest compares nodes that "
    "point to, or are pointed to by, the same nodes."
)


def explain(
    run: Run,
    node: Annotated[str, typer.Option(help="The node's id.")],
    top: Annotated[int, typer.Option(help="Nodes shown per head; 0 shows all.", min=0)] = 5,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Show the nodes that each head attends to from one node: weight, distance, class and frequency band.

    Of filter heads, which select no nodes, the share of each band in their response is shown.
    """
    from asgat.estimator.trained_run import load_run
    from asgat.explain import BAND_NAMES, check_attends, explain_filters
    from asgat.explain import explain as explain_node
    from asgat.explain.responses import BAND_TABLE

    trained = load_run(run, data_dir)
    check_attends(trained)
    number = trained.number_of(node)
    rows, filter_heads = explain_node(trained, number), explain_filters(trained)
    about = describe_node(trained, number)
    directed = trained.graph.directed
    if rows:
        console.print(attention_table(trained, about["id"], rows, top))
    classes = f"{about['class'] or 'no label'}, predicted {about['predicted']}"
    degree = f"degree {about['degree']}"
    if directed:
        degree = f"out-degree {about['out_degree']}, in-degree {about['in_degree']}"
    say(f"node {about['id']}: {classes}, {about['part']}, {degree}, β_v {about['beta']:.2f}")
    if rows and directed:
        say(SIDES_MEAN, wrap=True)
    ranges = "; ".join(f"{band['name']} {band['from']:g} to {band['to']:g}" for band in BAND_TABLE)
    if rows:
        say(f"band: the frequencies λ that contribute most to the score: {ranges}.", wrap=True)
    else:
        say("The model has no attention to explain: its filters weigh all nodes around a node.")
    if filter_heads:
        console.print(filter_table(trained, filter_heads, BAND_NAMES))
        say(FILTERS_MEAN + (f": {ranges}." if not rows else "."), wrap=True)
        if directed:
            say(ALONG_MEANS, wrap=True)
    if trained.averaged:
        shown = "attention" if rows else "response"
        say(f"The model is the average of {trained.averaged}; this is the {shown} of the first.", wrap=True)
    if rows and trained.similar:
        say(f"Hops include edges to the {trained.similar} nodes with the most similar features.", wrap=True)
    where = {"run": str(run), "model": trained.name, "dataset": trained.dataset.name}
    write_json(json, {**where, "node": about, "bands": BAND_TABLE, "rows": rows, "filter_heads": filter_heads})


def attention_table(run: Any, node: str | int, rows: list[dict[str, Any]], top: int) -> Table:
    """The nodes each head attends to, the best ``top`` of them."""
    title = f"{run.name} on {escape(run.dataset.name)}: what node {escape(str(node))} attends to"
    directed, layer = run.graph.directed, run.model.layer_name
    of_row = ("layer", "head", "side") if directed else ("layer", "head")
    headings = (layer, *of_row[1:], "node", "weight", "score", "hops", "class", "band")
    table = make_table(title, headings, left=("side", "node", "class", "band"))
    for key, head in groupby(rows, lambda row: tuple(str(row[name]) for name in of_row)):
        for place, row in enumerate(islice(head, top or None)):
            first = ("",) * len(key) if place else key
            name = f"{row['node']} ({row['node_side']})" if directed else str(row["node"])
            hops = "no path" if row["hops"] is None else str(row["hops"])
            figures = f"{row['weight']:.1%}", f"{row['score']:.3f}", hops
            table.add_row(*first, escape(name), *figures, escape(row["class"] or "–"), row["band"] or "–")
    return table


def filter_table(run: Any, rows: list[dict[str, Any]], bands: Sequence[str]) -> Table:
    """The shape of every filter head and the share of each band in its response."""
    along = ("along edges",) if run.graph.directed else ()
    headings = (run.model.layer_name, "head", "shape", *bands, *along)
    table = make_table(f"{run.name} on {escape(run.dataset.name)}: filter heads", headings, left=("shape",))
    for layer, heads in groupby(rows, lambda row: row["layer"]):
        for place, row in enumerate(heads):
            shares = [f"{share:.0%}" for share in (*row["bands"], *([row["along_edges"]] if along else ()))]
            table.add_row("" if place else str(layer), str(row["head"]), row["shape"], *shares)
    return table


def report(
    run: Run,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write. Default: RUN/report.html.")] = None,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Write a report of a run as a single HTML file that needs no network."""
    from asgat.estimator.trained_run import load_run
    from asgat.report.html import write_report

    check_writable(out)
    path, content = write_report(load_run(run, data_dir), out)
    for finding in content["health"]:
        if finding["level"] == "warning":
            console.print(f"[yellow]{escape(finding['about'])}:[/] {escape(finding['text'])}")
    picked, nodes = len(content["explorer"]["picks"]), content["explorer"]["total"]
    chosen = f"all {nodes:,} nodes" if picked == nodes else f"a sample of {picked:,} of {nodes:,} nodes"
    say(f"{path.stat().st_size / 1e6:.1f} MB, with {chosen} to explore", wrap=True)
    say(f"report: {path}")
    write_json(json, {"file": str(path), **{key: value for key, value in content.items() if key != "explorer"}})


def describe_node(run: Any, number: int) -> dict[str, Any]:
    import numpy as np

    from asgat.graph.homophily import node_homophily

    label = int(run.y[number])
    masks = {"training node": run.train_mask, "validation node": run.val_mask, "test node": run.test_mask}
    graph = run.graph
    degrees = {"degree": int(np.diff(graph.undirected.adjacency.indptr)[number])}
    if graph.directed:
        out, into = graph.adjacency[[number]].nnz, graph.adjacency[:, [number]].nnz
        degrees |= {"out_degree": int(out), "in_degree": int(into)}
    return {
        "id": run.ids[number],
        "class": run.class_names[label] if label >= 0 else None,
        "predicted": run.class_names[int(run.logits()[number].argmax())],
        "part": next((part for part, mask in masks.items() if mask[number]), "in no split"),
        **degrees,
        "beta": float(node_homophily(run.graph, run.y)[number]),
    }
