"""The command line: a table for people, and with ``--json`` the same numbers for programs."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from asgat.cli.bench import app as bench
from asgat.cli.convert import convert
from asgat.cli.distributed import Distributed, begin_rank, train_in_parts
from asgat.cli.explain import explain, report
from asgat.cli.options import (
    DataDir,
    Deterministic,
    Device,
    Fresh,
    Json,
    Protocol,
    Runs,
    Seed,
    Settings,
    check_device,
    check_writable,
    console,
    errors,
    interrupted,
    parse_runs,
    parse_settings,
    write_json,
)
from asgat.cli.reproduce import reproduce
from asgat.cli.tune import tune
from asgat.cli.user_graph import TensorBoard, fit, predict
from asgat.errors import AsgatError, hardware_error

app = typer.Typer(
    name="asgat",
    help="Adaptive spectral graph attention: node classification on graphs of any homophily.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(bench, name="bench")
app.command(epilog="Example: asgat convert edges.csv web --features x.npy --labels y.npy --order rcm")(convert)
app.command(epilog="Example: asgat explain runs/csbm-asgat-cheb-seed0 --node 17 --json explained.json")(explain)
app.command(epilog="Example: asgat report runs/csbm-asgat-cheb-seed0")(report)
app.command(epilog="Example: asgat fit --edges edges.csv --nodes nodes.csv --label kind --out runs/mine")(fit)
app.command(epilog="Example: asgat predict runs/mine --edges edges.csv --nodes nodes.csv -o predictions.csv")(predict)
app.command(epilog="Examples:  asgat reproduce micro --quick  ·  asgat reproduce frequency --device cuda")(reproduce)
app.command(epilog="Example: asgat tune texas --model asgat-plus --trials 100 --set root=true")(tune)


def main() -> None:
    """Runs the command line; bad input is a sentence and exit code 2."""
    try:
        app(standalone_mode=True)
    except AsgatError as error:
        fail(str(error))
    except (RuntimeError, MemoryError) as error:
        sentence = hardware_error(error)
        if sentence is None:
            raise
        fail(sentence)


def fail(sentence: str) -> NoReturn:
    errors.print(f"[bold red]error:[/] {escape(sentence)}", highlight=False, soft_wrap=True, emoji=False)
    sys.exit(2)


def print_version(wanted: bool) -> None:
    if wanted:
        from asgat import __version__

        console.print(__version__, highlight=False)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=print_version)
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: asgat datasets --json datasets.json")
def datasets(data_dir: DataDir = None, json: Json = None) -> None:
    """List the data sets with their statistics.

    Those whose files are at hand are read and measured; the others show their published figures.
    """
    rows = describe_datasets(data_dir)
    headings = ("name", "nodes", "entries", "features", "classes", "β", "splits")
    table = Table(*headings, title="Data sets", box=SIMPLE_HEAD)
    for column in table.columns[1:6]:
        column.justify = "right"
    for row in rows:
        figures = [f"{row[key]:,}" for key in ("nodes", "edges", "features", "classes")]
        name = row["name"] if row["measured"] else f"{row['name']} ○"
        beta = f"{row['beta']:.3f}"
        table.add_row(name, *figures, beta, " ".join(row["protocols"]))
    console.print(table)
    console.print("entries: stored directed ones, two per edge, one per self-loop. ○: files not here, as published.")
    for row in rows:
        if row["note"]:
            console.print(f"{row['name']}: {row['note']}", highlight=False)
    write_json(json, {"rows": rows})


@app.command(epilog="Examples:  asgat models  ·  asgat models gat --json gat.json")
def models(
    name: Annotated[str | None, typer.Argument(help="A model: list its settings.")] = None, json: Json = None
) -> None:
    """List the models, or the settings of one (the keys of --set)."""
    from asgat.nn.registry import COST_LETTERS, MODELS

    if name is None:
        table = Table("model", "what it is", "reference", "cost of a layer", title="Models", box=SIMPLE_HEAD)
        rows = [describe_model(model) for model in MODELS]
        for row in rows:
            table.add_row(*(row[key] for key in ("model", "summary", "reference", "cost")))
        console.print(table)
        console.print(f"{COST_LETTERS}.", highlight=False)
        write_json(json, {"rows": rows})
        return
    described = {**describe_model(name), "rows": describe_settings(name)}
    table = Table("setting", "default", "meaning", title=f"Settings of {name}", box=SIMPLE_HEAD)
    for row in described["rows"]:
        table.add_row(row["setting"], f"{row['default']}{' (fixed)' if row['fixed'] else ''}", row["meaning"])
    console.print(table)
    console.print(
        f"{described['summary']}; {described['reference']}\ncost of a layer: {described['cost']}\n"
        f"{described['parameters']:,} parameters for {TYPICAL['features']:,} features and {TYPICAL['classes']} classes",
        highlight=False,
    )
    write_json(json, described)


@app.command(
    epilog="Examples:  asgat train  ·  asgat train texas --splits 0-2 --set k=8 --set dropout=0.2  ·  "
    "asgat train cora --model gcn --json result.json"
)
def train(
    dataset: Annotated[
        str, typer.Argument(help="A name from `asgat datasets`, or a folder that `asgat convert` wrote.")
    ] = "csbm",
    model: Annotated[str | None, typer.Option(help="A name from `asgat models`; the recipe's by default.")] = None,
    splits: Runs = "0-9",
    seed: Seed = 0,
    set_: Settings = None,
    recipe: Annotated[
        Path | None, typer.Option(help="A recipe file, as `asgat tune` writes it, in place of the data set's own.")
    ] = None,
    protocol: Protocol = None,
    device: Device = "cpu",
    deterministic: Deterministic = False,
    out: Annotated[
        Path | None, typer.Option(help="Run directory; runs/DATASET-MODEL-seedN by default. Its runs are kept.")
    ] = None,
    fresh: Fresh = False,
    distributed: Distributed = False,
    tensorboard: TensorBoard = None,
    data_dir: DataDir = None,
    json: Json = None,
) -> None:
    """Train a model on the runs of a data set and print mean and spread of its test scores."""
    from asgat.data import get_info, load_dataset
    from asgat.disk.disk_graph import open_if_folder
    from asgat.files.lock import locked
    from asgat.recipe import default_model

    lost_rank = begin_rank() if distributed else None
    stored = open_if_folder(dataset)
    if stored is not None:
        dataset = stored.name
    else:
        get_info(dataset)  # a misspelt name is told before anything else is done
    job = Job(splits, seed, set_ or [], device, fresh, recipe=recipe, deterministic=deterministic)
    check_writable(json)
    name = model or default_model(dataset, recipe)
    config = job.config(dataset, name)
    out = out or Path("runs") / job.folder(dataset, name)
    if lost_rank is not None:
        whole = stored or load_dataset(dataset, protocol, data_dir)
        with locked(out) if lost_rank.rank == 0 else nullcontext():  # rank 0 writes
            train_in_parts(lost_rank, whole, name, config, job, out, tensorboard, json)
        return
    data = stored.to_dataset() if stored else load_dataset(dataset, protocol, data_dir)
    result = job.run(data, name, out, tensorboard)
    console.print(result_table([result]))
    report_files(out, data)
    write_json(json, result)


@app.command(epilog="Example: asgat compare texas --models mlp,gcn,asgat-cheb --json comparison.json")
def compare(
    dataset: Annotated[str, typer.Argument(help="A name from `asgat datasets`.")] = "csbm",
    models: Annotated[
        str, typer.Option(help="Names from `asgat models`, with commas.")
    ] = "mlp,gcn,chebnet,gat,sage,gpr-gnn,asgat-cheb",
    splits: Runs = "0-9",
    seed: Seed = 0,
    set_: Settings = None,
    protocol: Protocol = None,
    device: Device = "cpu",
    deterministic: Deterministic = False,
    out: Annotated[Path, typer.Option(help="Folder for the run directories and the figure.")] = Path("runs"),
    fresh: Fresh = False,
    data_dir: DataDir = None,
    json: Json = None,
) -> None:
    """Train several models on the same runs, print one table and draw it.

    A setting given with --set is that of the models which have it.
    """
    from asgat.data import get_info, load_dataset
    from asgat.report import comparison_figure

    get_info(dataset)
    names = [name.strip() for name in models.split(",") if name.strip()]
    job = Job(splits, seed, set_ or [], device, fresh, names, deterministic=deterministic)
    check_writable(json)
    if not names:
        raise AsgatError("--models names no model; `asgat models` lists them.")
    configs = {name: job.config(dataset, name) for name in names}
    data = load_dataset(dataset, protocol, data_dir)
    folders = {name: out / job.folder(dataset, name) for name in names}
    rows = []
    for name in names:
        size = count_parameters(name, configs[name], data.num_features, data.num_classes, data.num_nodes)
        rows.append({**job.run(data, name, folders[name]), "parameters": size})
    console.print(comparison_table(rows))
    for folder in folders.values():
        report_files(folder, data)
    figure = comparison_figure(rows, out / f"{dataset}-comparison.png")
    console.print(f"comparison:      {figure}", highlight=False, soft_wrap=True, markup=False, emoji=False)
    write_json(json, {"rows": rows})


@app.command(epilog="Example: asgat embed karate --dimensions 8 -o karate.csv")
def embed(
    dataset: Annotated[str, typer.Argument(help="A name from `asgat datasets`.")],
    dimensions: Annotated[int, typer.Option(help="Numbers per node.")] = 16,
    window: Annotated[int, typer.Option(help="The longest walk, in steps.")] = 10,
    negative: Annotated[int, typer.Option(help="Negative samples.")] = 1,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File: .npz, .npy, .csv or .tsv; runs/DATASET-embedding.npz by default."),
    ] = None,
    data_dir: DataDir = None,
    json: Json = None,
) -> None:
    """Write DeepWalk's embedding of every node, found by factorising a spectral filter of the graph.

    An .npz file holds the factorised matrix too, up to 5,000 nodes.
    """
    from asgat.data import get_info, load_dataset
    from asgat.files.atomic import write_atomic
    from asgat.nn.deepwalk import check_ending, deepwalk, encode

    get_info(dataset)
    out = out or Path("runs") / f"{dataset}-embedding.npz"
    check_ending(out)
    check_writable(out)
    check_writable(json)
    graph = load_dataset(dataset, data_dir=data_dir).graph
    embedding = deepwalk(graph, dimensions, window, negative, seed)
    write_atomic(out, encode(embedding, out))
    zero = int((embedding.vectors == 0).all(axis=1).sum())
    table = Table(title=f"DeepWalk embedding of {dataset}", box=SIMPLE_HEAD)
    for heading in ("nodes", "without edges", "rows of zeros", "dimensions", "window", "energy kept"):
        table.add_column(heading, justify="right")
    counts = [f"{count:,}" for count in (graph.num_nodes, int(graph.isolated.sum()), zero, dimensions, window)]
    table.add_row(*counts, f"{100 * embedding.energy:.1f} %")
    console.print(table)
    console.print(f"embedding: {out}", highlight=False, soft_wrap=True, markup=False, emoji=False)
    settings = {"dataset": dataset, "dimensions": dimensions, "window": window, "negative": negative, "seed": seed}
    figures = {"nodes": graph.num_nodes, "isolated": int(graph.isolated.sum()), "zero_rows": zero}
    rows = [{"dimension": i, "singular_value": float(s)} for i, s in enumerate(embedding.singular_values)]
    write_json(json, {**settings, **figures, "energy": embedding.energy, "file": str(out), "rows": rows})


# -- helpers ----------------------------------------------------------------------------------------------------


def describe_datasets(data_dir: Path | None) -> list[dict[str, Any]]:
    """A row per data set, measured where its files are at hand."""
    from asgat.data import DATASETS, load_dataset, statistics_of

    rows = []
    for name, info in DATASETS.items():
        measured = not info.missing_files(None, data_dir)
        figures = statistics_of(load_dataset(name, data_dir=data_dir)) if measured else info.statistics
        rows.append(
            {
                "name": name,
                "nodes": figures.nodes,
                "edges": figures.entries,
                "features": figures.features,
                "classes": figures.classes,
                "beta": figures.beta,
                "metric": info.metric,
                "protocols": list(info.protocols),
                "measured": measured,
                "source": info.source,
                "description": info.description,
                "note": info.note,
            }
        )
    return rows


# The size of Texas.
TYPICAL = {"features": 1703, "classes": 5, "nodes": 183}


def describe_model(name: str) -> dict[str, Any]:
    """What a model is, and how large for a typical data set."""
    from asgat.nn.registry import make_config, model_spec

    spec = model_spec(name)
    size = TYPICAL["features"], TYPICAL["classes"], TYPICAL["nodes"]
    return {
        "model": name,
        "summary": spec.summary,
        "reference": spec.reference,
        "cost": spec.cost,
        "parameters": count_parameters(name, make_config(name), *size),
        "parameters_for": TYPICAL,
    }


def describe_settings(name: str) -> list[dict[str, Any]]:
    """A row per setting of a model."""
    from asgat.nn.registry import make_config, model_spec

    config = make_config(name)
    values = config.to_dict()
    return [
        {
            "setting": field.name,
            "default": values[field.name],
            "meaning": field.metadata["help"],
            "fixed": field.name in model_spec(name).fixed,
        }
        for field in dataclasses.fields(config)
    ]


def count_parameters(model: str, config: Any, features: int, classes: int, nodes: int) -> int:
    from asgat.nn.registry import model_spec

    net = model_spec(model).make(config, features, classes, nodes)
    return sum(parameter.numel() for parameter in net.parameters())


def comparison_table(rows: list[dict[str, Any]]) -> Table:
    """One row a model, narrow enough for 80 columns."""
    title = f"Test scores on {rows[0]['dataset']}, in percent"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    scores = {"micro_f1": "micro-F1", "macro_f1": "macro-F1"}
    if "roc_auc" in rows[0]:
        scores["roc_auc"] = "ROC-AUC"
    for heading in ("model", *scores.values()):
        table.add_column(heading, no_wrap=True)
    for heading in ("ms per epoch", "parameters"):
        table.add_column(heading, justify="right")
    for row in rows:
        spreads = [f"{100 * row[s]['mean']:.1f} ± {100 * row[s]['std']:.1f}" for s in scores]
        table.add_row(row["model"], *spreads, f"{row['ms_per_epoch']:.1f}", f"{row['parameters']:,}")
    return table


def result_table(results: list[dict[str, Any]]) -> Table:
    """One row a result: scores in percent, mean ± standard deviation over runs."""
    table = Table(title=f"Test scores on {results[0]['dataset']}, in percent", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("model", "micro-F1", "macro-F1"):
        table.add_column(heading, no_wrap=True)
    auc = "roc_auc" in results[0]
    if auc:
        table.add_column("ROC-AUC", no_wrap=True)
    for heading in ("val.", "runs", "restarts", "epochs", "ms"):
        table.add_column(heading, justify="right")
    for result in results:
        scores = ["micro_f1", "macro_f1", *(["roc_auc"] if auc else [])]
        cells = [f"{100 * result[s]['mean']:.1f} ± {100 * result[s]['std']:.1f}" for s in scores]
        validation = result["val_roc_auc"] if auc else result["val_micro_f1"]
        table.add_row(
            result["model"],
            *cells,
            f"{100 * validation:.1f}",
            str(len(result["rows"])),
            str(result["restarts"]),
            f"{result['epochs']:.0f}",
            f"{result['ms_per_epoch']:.1f}",
        )
    return table


def report_files(out: Path, data: Any) -> None:
    """Draws the learned filters of a run directory, where its model has some, and says where things are."""
    from asgat.nn import ASGAT
    from asgat.report import filter_figure
    from asgat.training import load_model
    from asgat.training.inputs import graph_for

    model, name, config = load_model(out)
    if isinstance(model, ASGAT):
        graph = graph_for(data, config)
        title = f"{name} on {data.name}: what each head listens to"
        figure = filter_figure(model, graph, out / "filters.png", title)
        console.print(f"learned filters: {figure}", highlight=False, soft_wrap=True, markup=False, emoji=False)
    console.print(f"run directory:   {out}", highlight=False, soft_wrap=True, markup=False, emoji=False)


class Job:
    """What `train` and `compare` are told, checked before anything is read or written."""

    def __init__(
        self,
        splits: str,
        seed: int,
        settings: list[str],
        device: str,
        fresh: bool,
        models: list[str] | None = None,
        recipe: Path | None = None,
        deterministic: bool = False,
    ) -> None:
        self.device, self.runs, self.models = check_device(device, deterministic), parse_runs(splits), models or []
        self.seed, self.settings, self.fresh, self.recipe = seed, settings, fresh, recipe
        self.part = "" if self.runs == list(range(10)) else f"-runs{splits.replace(' ', '')}"

    def folder(self, dataset: str, model: str) -> str:
        """The name of the run directory, a different one for other runs."""
        return f"{dataset}-{model}-seed{self.seed}{self.part}"

    def config(self, dataset: str, model: str) -> Any:
        from asgat.nn.registry import model_spec
        from asgat.recipe import load_config

        config = model_spec(model).config
        foreign = {key for name in self.models for key in set(model_spec(name).config.keys()) - set(config.keys())}
        mine = [pair for pair in self.settings if pair.partition("=")[0].strip() not in foreign]
        return load_config(dataset, model, parse_settings(mine, config), self.recipe)

    def run(self, data: Any, model: str, out: Path, tensorboard: Path | None = None) -> dict[str, Any]:
        from asgat.training.runner import run
        from asgat.training.tensorboard import TensorBoardLog

        config = self.config(data.name, model)
        what = f"[bold]{model}[/] on [bold]{data.name}[/] ({data.protocol} splits), {data.graph}"
        console.print(what, highlight=False)
        try:
            with RunProgress(self.runs, config.epochs) as progress, TensorBoardLog(tensorboard) as log:
                watch, building = log.beside(progress), progress.building
                return run(data, model, config, self.runs, self.seed, self.device, out, self.fresh, watch, building)
        except KeyboardInterrupt:  # Typer would end in silence
            raise interrupted("Finished runs are kept") from None


class RunProgress:
    """A live bar for the run in progress, with its losses."""

    def __init__(self, runs: list[int], epochs: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.runs, self.epochs = runs, epochs
        columns = TextColumn("run {task.fields[run]}"), BarColumn(30), MofNCompleteColumn()
        figures = TextColumn("{task.fields[figures]}"), TimeElapsedColumn()
        self.bar = Progress(*columns, *figures, console=errors, transient=True, disable=not errors.is_terminal)
        self.task = self.bar.add_task("", total=epochs, run=f"1/{len(runs)}", figures="")

    def __enter__(self) -> RunProgress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def building(self, done: int, rows: int) -> None:
        """A table in the making."""
        self.bar.update(self.task, total=rows, completed=done, run="table", figures="rows of the candidate table")

    def __call__(self, run: int, epoch: Any) -> None:
        losses = f"loss {epoch.train_loss:.3f}  validation loss {epoch.val_loss:.3f}"
        figures = f"{losses}  score {100 * epoch.val_score:.1f} %"
        number = f"{self.runs.index(run) + 1}/{len(self.runs)}"
        self.bar.update(self.task, total=self.epochs, completed=epoch.epoch, run=number, figures=figures)
