"""``asgat explain`` and ``asgat report``: what a trained model looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from asgat.cli.options import DataDir, Json, check_writable, console, write_json

Run = Annotated[Path, typer.Argument(help="A run directory of `asgat train`, `asgat compare` or `asgat fit`.")]


def explain(
    run: Run,
    node: Annotated[str, typer.Option(help="The node's id.")],
    top: Annotated[int, typer.Option(help="Nodes shown per head; 0 shows all.", min=0)] = 5,
    data_dir: DataDir = None,
    json: Json = None,
) -> None:
    """Show the nodes each head attends to from one node: weight, distance, class, and the frequencies behind them."""
    from asgat.estimator.trained_run import load_run
    from asgat.explain import BAND_NAMES, BANDS, check_attends
    from asgat.explain import explain as explain_node

    check_writable(json)
    held = load_run(run, data_dir)
    check_attends(held)
    number = held.number_of(node)
    rows = explain_node(held, number)
    about = describe_node(held, number)
    title = f"{held.name} on {escape(held.dataset.name)}: what node {escape(str(about['id']))} attends to"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("layer", "head", "node", "weight", "score", "hops", "class", "band"):
        table.add_column(heading, justify="left" if heading in ("node", "class", "band") else "right")
    shown, before = 0, None
    for row in rows:
        head = row["layer"], row["head"]
        shown = shown + 1 if head == before else 1
        if top and shown > top:
            continue
        hops = "no path" if row["hops"] is None else str(row["hops"])
        first = [str(part) if head != before else "" for part in head]
        label, band = escape(row["class"] or "–"), row["band"] or "–"
        table.add_row(
            *first, escape(str(row["node"])), f"{row['weight']:.1%}", f"{row['score']:.3f}", hops, label, band
        )
        before = head
    console.print(table)
    console.print(
        f"node {about['id']}: {about['class'] or 'no label'}, predicted {about['predicted']}, {about['part']}, "
        f"degree {about['degree']}, β_v {about['beta']:.2f}",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )
    bands = [{"name": name, "from": low, "to": high} for name, (low, high) in zip(BAND_NAMES, BANDS, strict=True)]
    told = "; ".join(f"{band['name']} {band['from']:g} to {band['to']:g}" for band in bands)
    console.print(f"band: the frequencies λ that add most to the score: {told}.", highlight=False)
    if held.members > 1:
        console.print(f"{held.members} networks answer together; this is what the first attends to.", highlight=False)
    if held.similar:
        told = f"Each node is also joined to the {held.similar} most like it in features; hops count these links."
        console.print(told, highlight=False)
    where = {"run": str(run), "model": held.name, "dataset": held.dataset.name}
    write_json(json, {**where, "node": about, "bands": bands, "rows": rows})


def report(
    run: Run,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file; RUN/report.html by default.")] = None,
    data_dir: DataDir = None,
    json: Json = None,
) -> None:
    """Write a report of a run as one HTML file that opens without a network."""
    from asgat.estimator.trained_run import load_run
    from asgat.report.html import write_report

    check_writable(out)
    check_writable(json)
    path, content = write_report(load_run(run, data_dir), out)
    picked, nodes = len(content["explorer"]["picks"]), content["explorer"]["total"]
    for finding in content["health"]:
        if finding["level"] == "warning":
            console.print(
                f"[yellow]{escape(finding['about'])}:[/] {escape(finding['text'])}", highlight=False, emoji=False
            )
    size = path.stat().st_size / 1e6
    chosen = f"all {nodes:,} nodes" if picked == nodes else f"a sample of {picked:,} of {nodes:,} nodes"
    console.print(f"{size:.1f} MB, with {chosen} to explore", highlight=False)
    console.print(f"report: {path}", highlight=False, soft_wrap=True, markup=False, emoji=False)
    write_json(json, {"file": str(path), **{key: value for key, value in content.items() if key != "explorer"}})


def describe_node(run: Any, number: int) -> dict[str, Any]:
    """What is known of a node beside its attention."""
    from asgat.graph.homophily import node_homophily

    label = int(run.y[number])
    part = "training" if run.train_mask[number] else "validation" if run.val_mask[number] else "test"
    inside = run.train_mask[number] or run.val_mask[number] or run.test_mask[number]
    return {
        "id": run.ids[number],
        "class": run.class_names[label] if label >= 0 else None,
        "predicted": run.class_names[int(run.logits()[number].argmax())],
        "part": f"{part} node" if inside else "in no split",
        "degree": int(run.graph.adjacency.indptr[number + 1] - run.graph.adjacency.indptr[number]),
        "beta": float(node_homophily(run.graph, run.y)[number]),
    }
