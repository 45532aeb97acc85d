"""``asgat fit`` and ``asgat predict``: models of a user's graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from asgat.cli import options
from asgat.cli.graph_options import GraphOptions, Ignore, Nodes, print_changes, takes_graph
from asgat.cli.leaderboard import BoardProgress, print_board, print_scores
from asgat.cli.output import RunProgress, check_writable, console, detail, make_table, resumable, say, write_json
from asgat.errors import AsgatError, listed

if TYPE_CHECKING:
    from asgat.estimator.health import Health


@takes_graph()
def fit(
    graph: GraphOptions,
    model: Annotated[str | None, typer.Option(help="Train only this model; see `asgat models`.")] = None,
    set_: options.Settings = None,
    recipe: Annotated[
        Path | None,
        typer.Option(help="Train the model of a recipe of `asgat tune`, or of a run directory, with its settings."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="How many models to try: quick, default or best. Default: default.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="MINUTES", min=0.0, help="For all models. Default: 10 (quick 2, best 60).")
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Splits and seeds to average scores over. Default: 1, or one per --split."),
    ] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    deterministic: options.Deterministic = False,
    threads: options.Threads = None,
    out: Annotated[Path | None, typer.Option(help="Run directory. Default: runs/FOLDER-MODEL-seedN.")] = None,
    fresh: options.Fresh = False,
    json: options.Json = None,
) -> None:
    """Check your graph, find the model that predicts it best, and save it in a run directory.

    By default many models are trained; validation nodes decide which is kept. --model trains one.
    """
    from asgat.estimator.classifier import ASGATClassifier
    from asgat.estimator.encoded_graph import encode_user_graph
    from asgat.estimator.health import examine
    from asgat.estimator.user_data import DEFAULT_METRIC
    from asgat.leaderboard.field import preset_named
    from asgat.nn.registry import model_spec
    from asgat.recipe import read_settings

    settings: dict[str, Any] = {}
    if recipe is not None:
        model, settings = read_settings(recipe, model)
    if model is None:
        preset = preset or "default"
        preset_named(preset)  # reports a misspelt name first
        if set_:
            raise AsgatError("--set is for a single model; name it with --model, such as --model asgat-plus.")
    else:
        settings |= options.parse_settings(set_ or [], model_spec(model).config)
        if preset is not None or time_limit is not None:
            option = "--time-limit" if preset is None else "--preset"
            raise AsgatError(f"{option} is for the leaderboard; leave it out where one model is trained.")
    place = options.check_device(device, deterministic)
    user_graph, metric = graph.read(), graph.metric or DEFAULT_METRIC
    repeats = repeats or len(graph.split or ()) or 1
    encoded = encode_user_graph(user_graph, seed=seed, repeats=repeats, metric=metric)
    splits = len(encoded.user_graph.splits)
    health = examine(user_graph, encoded.dataset, encoded.encoding.class_names, encoded.notes)
    print_health(health)
    if splits > repeats:
        say(f"→ --repeats {splits} uses all {splits} splits.")
    out = out or Path("runs") / f"{graph.data_name()}-{model or 'leaderboard'}-seed{seed}"
    classifier = ASGATClassifier(
        model or "asgat-plus",
        settings=settings,
        directed=graph.directed,
        preset=None if model else preset,
        metric=metric,
        time_limit=time_limit,
        random_state=seed,
        device=str(place),
    )
    if model:
        _train(classifier, encoded, health, out, fresh)
        print_result(classifier)
    else:
        classifier = _train_board(classifier, encoded, health, out, fresh)
    if classifier.belongs_to_graph:
        say(
            "· Its weights belong to the nodes of this graph, so it predicts no other nodes; "
            "a model that does is --model asgat-plus.",
            wrap=True,
        )
    say(f"run directory: {out}")
    board = {} if model else {"leaderboard": classifier.leaderboard_.to_dict()}
    write_json(json, {"health": health.to_dict(), **classifier.result_, **board})


def predict(
    run: Annotated[Path, typer.Argument(help="A run directory of `asgat fit`.")],
    edges: Annotated[Path | None, typer.Option(help="Edge file. Default: the graph the model was fitted on.")] = None,
    nodes: Nodes = None,
    ignore: Ignore = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File: .csv, .tsv, .csv.gz, .tsv.gz or .parquet.")] = Path(
        "predictions.csv"
    ),
    safe_csv: Annotated[
        bool,
        typer.Option("--safe-csv", help="Put an apostrophe before text that a spreadsheet would run as a formula."),
    ] = False,
    json: options.Json = None,
) -> None:
    """Predict the class of every node of the fitted graph, or of another graph with the same columns.

    The columns must have the names they had for `asgat fit`. The output marks the nodes that have a label.
    """
    from asgat.estimator.classifier import ASGATClassifier
    from asgat.estimator.predictions import check_ending, predictions_of, summary_of, write_predictions

    check_ending(out)
    check_writable(out)
    classifier = ASGATClassifier.from_pretrained(run)
    predictions = predictions_of(classifier, edges, nodes, ignore or [])
    write_predictions(predictions, out, safe_csv)
    for note in predictions.notes:
        say(f"· {note}", wrap=True)
    summary = summary_of(predictions)
    table = make_table(f"Predictions of {escape(str(run))}", ("class", "nodes", "without a label"), left=("class",))
    for row in summary["rows"]:
        table.add_row(escape(row["class"]), f"{row['nodes']:,}", f"{row['unlabelled']:,}")
    console.print(table)
    if summary["accuracy"] is not None:
        share = f"{100 * summary['accuracy']:.1f} % of the {summary['labelled']:,} labelled nodes"
        say(f"{share} are predicted as labelled; training nodes may be among them.", wrap=True)
    say(f"predictions: {out}")
    write_json(json, {"run": str(run), "file": str(out), **summary})


def _train(classifier: Any, encoded: Any, health: Health, out: Path, fresh: bool) -> None:
    from asgat.files.lock import locked
    from asgat.leaderboard.board import BoardFolder
    from asgat.memory import keep_freed_memory
    from asgat.training.inputs import check_direction
    from asgat.training.run_directory import RunDirectory
    from asgat.training.runner import Callbacks

    check_direction(encoded.dataset, classifier.model)
    runs = len(encoded.dataset.splits)
    config = classifier.make_config(health)
    values = config.to_dict()
    keys = [key for key in ("k", "order", "heads", "hidden", "epochs", "patience", "seed") if key in values]
    with locked(out):
        board = BoardFolder(out)
        if fresh:
            board.discard()
        if board.read() is not None:
            raise AsgatError(f"{out} holds a leaderboard; choose another --out, or --fresh to replace it.")
        RunDirectory(out).begin(classifier.describe(encoded.dataset, config), fresh)  # refuses before training
        shown = ", ".join(f"{key} {values[key]}" for key in keys)
        console.print(f"Training [bold]{classifier.model}[/] on {classifier.device} with {shown}")
        detail("settings: " + ", ".join(f"{key} {value}" for key, value in values.items()))
        bar = RunProgress(runs, config.epochs, classifier.metric)
        with resumable("No model was written"), bar as progress:
            callbacks = Callbacks(progress, progress.building, keep_freed_memory)
            classifier.fit_encoded(encoded, health, callbacks, out)
        classifier.save_pretrained(out)


def _train_board(classifier: Any, encoded: Any, health: Health, out: Path, fresh: bool) -> Any:
    """The classifier with the best model of a leaderboard; one that is done already is read."""
    from asgat.files.lock import locked
    from asgat.leaderboard.board import BoardFolder
    from asgat.leaderboard.field import preset_named
    from asgat.training.run_directory import RunDirectory

    settings, folder = classifier.board_settings(encoded.dataset), BoardFolder(out)
    with locked(out):
        held = folder.begin(settings, fresh)
        if fresh:
            RunDirectory(out).clear()
        if held.get("finished"):
            say(f"{out} holds this leaderboard already; --fresh trains again.")
            classifier = classifier.from_pretrained(out)
        else:
            minutes = preset_named(settings.preset).minutes if settings.minutes is None else settings.minutes
            limit = f"{minutes:g} minute{'' if minutes == 1 else 's'} at most"
            begun = f"; {held['seconds']:.0f} seconds of an earlier start are used" if held["seconds"] else ""
            console.print(f"Training many models on {classifier.device}, {limit}{begun}; Ctrl-C keeps what is done")
            with resumable("What was trained is saved"), BoardProgress(classifier.metric) as progress:
                classifier.fit_leaderboard(encoded, health, progress, out)
            classifier.save_pretrained(out)
            folder.clear_trials()
    print_board(classifier.leaderboard_, health.name)
    print_scores(classifier.result_.get("test"), "Test scores of the chosen model")
    return classifier


# -- what is printed --------------------------------------------------------------------------------------------------


def print_health(health: Health) -> None:
    """The statistics of a graph, what was changed, and advice."""
    title, columns = f"Health of {escape(health.name)}", ("what", "figures")
    table = make_table(title, columns, left=columns, no_wrap=("what",), show_header=False)
    table.add_row("nodes", f"{health.nodes:,}, {health.isolated:,} without an edge")
    kind, degree = (" directed", "out-degree") if health.directed else ("", "degree")
    figures = f"{health.edges:,}{kind} from {health.given_edges:,} rows; mean {degree} {health.mean_degree:.1f}"
    table.add_row("edges", figures)
    table.add_row("components", f"{health.components:,}, the largest with {health.largest_component:,} nodes")
    table.add_row("features", f"{health.features:,} from {health.columns:,} columns")
    table.add_row("labels", f"{sum(health.classes.values()):,} nodes, {health.unlabelled:,} to predict")
    table.add_row("classes", _class_counts(health.classes))
    table.add_row("split", ", ".join(f"{count:,} {part}" for part, count in health.parts.items()))
    table.add_row("β", _homophily(health))
    if health.judged:
        table.add_row("β of nodes", _histogram(health.beta_histogram))
    console.print(table)
    print_changes(health)
    for advice in health.advice:
        say(f"→ {advice.setting} = {advice.value}: {advice.reason}.", wrap=True)


def print_result(classifier: Any) -> None:
    """The scores on the test nodes, next to those of always predicting the most frequent class."""
    import numpy as np

    from asgat.leaderboard.standings import about_guessing, shown, shown_val
    from asgat.training.metrics import majority_share

    result, y, split = classifier.result_, classifier.dataset_.y, classifier.dataset_.splits[0]
    headings = ("model", "test micro-F1", "test macro-F1", "majority", "val.", "epochs", "ms")
    table = make_table("Scores, in percent", headings, left=("model",))
    row, known = result["rows"][0], y[np.concatenate([split.train, split.val])]
    scores = row["micro_f1"], row["macro_f1"], majority_share(known, y[split.test])
    cells = [*(shown(score, "share") for score in scores), shown_val(row["val_score"], classifier.metric)]
    table.add_row(classifier.model, *cells, str(row["epochs"]), f"{result['ms_per_epoch']:.1f}")
    console.print(table)
    test = result["test"]
    if test is not None:
        repeats = len(result["rows"])
        print_scores(test, "Test scores" + (f", mean of {repeats} repeats" if repeats > 1 else ""))
        figures = test["scores"][test["metric"]], test["guessing"][test["metric"]], test["gain"]
        for sentence in about_guessing(classifier.model, test["metric"], *figures):
            say(f"→ {sentence}", wrap=True)


def _homophily(health: Health) -> str:
    value = f"{health.beta:.3f}" if health.beta == health.beta else "unknown"
    if not health.judged:
        return f"{value}: no labelled node has a labelled neighbour"
    alone = sum(health.classes.values()) - health.judged
    missing = f"; {alone:,} labelled nodes have no labelled neighbour and count as 0" if alone else ""
    return f"{value}: the mean share of a node's neighbours that are of its class, over all labelled nodes{missing}"


def _class_counts(classes: dict[str, int]) -> str:
    largest = sorted(classes.items(), key=lambda item: -item[1])
    return listed([f"{escape(name)} {count:,}" for name, count in largest], 8)


def _histogram(counts: list[int]) -> str:
    """Bars for β_v in ten bins from 0 to 1, and the number of nodes in each."""
    bars = " ▁▂▃▄▅▆▇█"
    largest = max(counts)
    cells = [bars[0 if not count else max(1, round(8 * count / largest))] * 3 for count in counts]
    return f"0 │{''.join(cells)}│ 1\nnodes per bin: {' '.join(f'{count:,}' for count in counts)}"
