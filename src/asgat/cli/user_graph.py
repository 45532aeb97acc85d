"""The commands for a graph of the user's own: fit and predict."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from asgat.cli.options import (
    Deterministic,
    Device,
    Fresh,
    Json,
    Seed,
    Settings,
    check_device,
    check_writable,
    console,
    interrupted,
    parse_settings,
    write_json,
)

if TYPE_CHECKING:
    from asgat.estimator.health import Health

Edges = Annotated[Path, typer.Option(help="File of edges: .csv, .tsv, .parquet, .graphml or .npz.", show_default=False)]
Nodes = Annotated[
    Path | None, typer.Option(help="File of nodes; a .graphml or .npz of edges may hold them.", show_default=False)
]
Ignore = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column of the nodes that is no feature.")]
TensorBoard = Annotated[Path | None, typer.Option(metavar="DIR", help="Also log every epoch for TensorBoard.")]


def fit(
    edges: Edges,
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Classes; empty where they are to be predicted.")],
    nodes: Nodes = None,
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="Ids of the nodes; found by name.")] = None,
    source: Annotated[str | None, typer.Option(metavar="COLUMN", help="One end of an edge; found by name.")] = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="The other end.")] = None,
    weight: Annotated[str | None, typer.Option(metavar="COLUMN", help="Weight of an edge; 1 without one.")] = None,
    split: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="train, val or test; a stratified split is made without it.")
    ] = None,
    ignore: Ignore = None,
    model: Annotated[str, typer.Option(help="A name from `asgat models`.")] = "asgat-plus",
    set_: Settings = None,
    seed: Seed = 0,
    device: Device = "cpu",
    deterministic: Deterministic = False,
    out: Annotated[Path | None, typer.Option(help="Run directory; runs/NODES-MODEL-seedN by default.")] = None,
    fresh: Fresh = False,
    tensorboard: TensorBoard = None,
    json: Json = None,
) -> None:
    """Look at a graph of your own, train on it, and keep the model in a run directory."""
    from asgat.estimator.encoded_graph import encode_user_graph
    from asgat.estimator.health import examine
    from asgat.nn.registry import model_spec
    from asgat.tabular.assembly import read_graph

    settings = parse_settings(set_ or [], model_spec(model).config)
    check_device(device, deterministic)
    check_writable(json)
    own = read_graph(edges, nodes, label, id, source, target, weight, split, ignore or [])
    prepared = encode_user_graph(own, seed=seed)
    health = examine(own, prepared.dataset, prepared.encoding.class_names, prepared.notes)
    print_health(health)
    out = out or Path("runs") / f"{own.name}-{model}-seed{seed}"
    classifier = _train(prepared, health, model, settings, seed, device, out, fresh, tensorboard)
    print_result(classifier)
    console.print(f"run directory: {out}", highlight=False, soft_wrap=True, markup=False, emoji=False)
    write_json(json, {"health": health.to_dict(), **classifier.result_})


def predict(
    run: Annotated[Path, typer.Argument(help="A run directory of `asgat fit`.")],
    edges: Annotated[Path | None, typer.Option(help="File of edges; without it the graph that was fitted.")] = None,
    nodes: Nodes = None,
    ignore: Ignore = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File: .csv, .tsv or .parquet.")] = Path("predictions.csv"),
    json: Json = None,
) -> None:
    """Predict the class of every node, of the graph that was fitted or of another with the same columns.

    A column tells which nodes had a label; the columns are named as they were for `asgat fit`.
    """
    from asgat.estimator.classifier import ASGATClassifier
    from asgat.estimator.predictions import check_ending, predictions_of, summary_of, write_predictions

    check_ending(out)
    check_writable(out)
    check_writable(json)
    classifier = ASGATClassifier.from_pretrained(run)
    predictions = predictions_of(classifier, edges, nodes, ignore or [])
    write_predictions(predictions, out)
    for note in predictions.notes:
        console.print(f"· {note}", highlight=False, markup=False, emoji=False)
    summary = summary_of(predictions)
    table = Table("class", title=f"Predictions of {escape(str(run))}", box=SIMPLE_HEAD)
    for heading in ("nodes", "of them without a label"):
        table.add_column(heading, justify="right")
    for row in summary["rows"]:
        table.add_row(escape(row["class"]), f"{row['nodes']:,}", f"{row['unlabelled']:,}")
    console.print(table)
    if summary["accuracy"] is not None:
        share = (
            f"{100 * summary['accuracy']:.1f} % of the {summary['labelled']:,} labelled nodes are predicted as labelled"
        )
        console.print(f"{share}; a model knows those it was trained on.", highlight=False)
    console.print(f"predictions: {out}", highlight=False, soft_wrap=True, markup=False, emoji=False)
    write_json(json, {"run": str(run), "file": str(out), **summary})


def _train(
    prepared: Any,
    health: Health,
    model: str,
    settings: dict[str, Any],
    seed: int,
    device: str,
    out: Path,
    fresh: bool,
    tensorboard: Path | None,
) -> Any:
    from asgat.cli.app import RunProgress
    from asgat.estimator.classifier import ASGATClassifier
    from asgat.files.lock import locked
    from asgat.training.run_directory import RunDirectory
    from asgat.training.tensorboard import TensorBoardLog

    classifier = ASGATClassifier(model, settings=settings, seed=seed, device=device)
    config = classifier.make_config(health)
    with locked(out):
        RunDirectory(out).begin(classifier.describe(prepared.dataset.name, config), fresh)  # told before time is spent
        console.print(f"Training [bold]{model}[/] with {_words(config)}", highlight=False)
        try:
            with RunProgress([0], config.epochs) as progress, TensorBoardLog(tensorboard) as log:
                watch = partial(log.beside(progress), 0)
                classifier.fit_encoded(prepared, health, watch, progress.building, out)
        except KeyboardInterrupt:
            raise interrupted("No model was written") from None
        classifier.save_pretrained(out)
    return classifier


def _words(config: Any) -> str:
    values = config.to_dict()
    keys = [key for key in ("k", "order", "heads", "hidden", "epochs", "patience", "seed") if key in values]
    return ", ".join(f"{key} {values[key]}" for key in keys)


# -- what is printed --------------------------------------------------------------------------------------------------


def print_health(health: Health) -> None:
    """The figures of a graph, what was changed, and advice."""
    table = Table(title=f"Health of {escape(health.name)}", box=SIMPLE_HEAD, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row("nodes", f"{health.nodes:,}, {health.isolated:,} without an edge")
    table.add_row("edges", f"{health.edges:,} from {health.given_edges:,} rows; mean degree {health.mean_degree:.1f}")
    table.add_row("components", f"{health.components:,}, the largest with {health.largest_component:,} nodes")
    table.add_row("features", f"{health.features:,} from {health.columns:,} columns")
    table.add_row("labels", f"{sum(health.classes.values()):,} nodes, {health.unlabelled:,} to predict")
    table.add_row("classes", _balance(health.classes))
    table.add_row("split", ", ".join(f"{count:,} {part}" for part, count in health.parts.items()))
    table.add_row("β", f"{_number(health.beta)}: {_homophily(health)}")
    if health.judged:
        table.add_row("β of nodes", _histogram(health.beta_histogram))
    console.print(table)
    for change in health.changes:
        console.print(f"· {change}", highlight=False, markup=False, emoji=False)
    for advice in health.advice:
        console.print(f"→ {advice.setting} = {advice.value}: {advice.reason}.", highlight=False, markup=False)


def print_result(classifier: Any) -> None:
    """The scores on the test part, beside guessing the most frequent class."""
    import numpy as np

    result, dataset = classifier.result_, classifier.dataset_
    split = dataset.splits[0]
    table = Table(title="Scores, in percent", box=SIMPLE_HEAD, pad_edge=False)
    headings = ["model", "test micro-F1", "test macro-F1", "guessing", "val.", "epochs", "ms"]
    for heading in headings:
        table.add_column(heading, no_wrap=True, justify="left" if heading == "model" else "right")
    row = result["rows"][0]
    frequent = np.bincount(dataset.y[split.train]).argmax()
    guess = float(np.mean(dataset.y[split.test] == frequent)) if len(split.test) else float("nan")
    scores = [_percent(value) for value in (row["micro_f1"], row["macro_f1"], guess, row["val_score"])]
    table.add_row(classifier.model, *scores, str(row["epochs"]), f"{result['ms_per_epoch']:.1f}")
    console.print(table)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}" if value == value else "–"


def _number(value: float) -> str:
    return f"{value:.3f}" if value == value else "not known"


def _homophily(health: Health) -> str:
    alone = sum(health.classes.values()) - health.judged
    missing = f"; {alone:,} labelled nodes have no labelled neighbour and count 0" if alone else ""
    if not health.judged:
        return "no labelled node has a labelled neighbour"
    return f"the share of a node's neighbours that are of its class, on average{missing}"


def _balance(classes: dict[str, int]) -> str:
    largest = sorted(classes.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{escape(name)} {count:,}" for name, count in largest[:8])
    return shown + (f" and {len(largest) - 8} more" if len(largest) > 8 else "")


def _histogram(counts: list[int]) -> str:
    """Bars for the tenths of β_v from 0 to 1, and the nodes in each."""
    bars = " ▁▂▃▄▅▆▇█"
    largest = max(counts)
    cells = [bars[0 if not count else max(1, round(8 * count / largest))] * 3 for count in counts]
    return f"0 │{''.join(cells)}│ 1\nnodes per tenth: {' '.join(f'{count:,}' for count in counts)}"
