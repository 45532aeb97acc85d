"""``asgat train`` and ``asgat compare``: models on the benchmark data sets, or on a user's graph."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from asgat.cli import options
from asgat.cli.distributed import Distributed, begin_rank, train_in_parts
from asgat.cli.graph_options import DatasetOrRun, GraphOptions, check_source, load_source, takes_graph
from asgat.cli.output import RunProgress, comparison_table, console, detail, result_table, resumable, say, write_json
from asgat.errors import AsgatError


def train(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A name from `asgat datasets`, or with --distributed a converted folder.",
            autocompletion=options.complete_dataset,
        ),
    ] = "csbm",
    model: Annotated[
        str | None,
        typer.Option(help="A name from `asgat models`. Default: the recipe's.", autocompletion=options.complete_model),
    ] = None,
    splits: options.Runs = "0-9",
    seed: options.Seed = 0,
    set_: options.Settings = None,
    recipe: Annotated[Path | None, typer.Option(help="Recipe file. Default: the data set's recipe.")] = None,
    protocol: options.Protocol = None,
    device: options.Device = "auto",
    deterministic: options.Deterministic = False,
    threads: options.Threads = None,
    out: Annotated[Path | None, typer.Option(help="Run directory. Default: runs/DATASET-MODEL-seedN.")] = None,
    fresh: options.Fresh = False,
    distributed: Distributed = False,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Train a model on the splits of a data set and print the mean and spread of its test scores."""
    from asgat.data import get_info, load_dataset
    from asgat.disk.disk_graph import open_if_folder
    from asgat.files.lock import locked
    from asgat.recipe import default_model, load_config

    lost_rank = begin_rank() if distributed else None
    stored = open_if_folder(dataset)
    if stored is not None and lost_rank is None:
        raise AsgatError(
            f"{dataset} is a graph on disk, which several processes train in parts: torchrun --nproc-per-node 2 -m "
            f"asgat train {dataset} --distributed. To train in one process, give its files to `asgat fit`."
        )
    if stored is not None:
        dataset = stored.name
    else:
        get_info(dataset)  # reports a misspelt name first
    job = Job(splits, seed, set_, device, deterministic, fresh)
    name = model or default_model(dataset, recipe)
    config = load_config(dataset, name, job.settings_of(name), recipe)
    out = out or Path("runs") / job.folder(dataset, name)
    if lost_rank is not None:
        whole = stored or load_dataset(dataset, protocol, data_dir)
        with locked(out) if lost_rank.rank == 0 else nullcontext():  # rank 0 writes
            train_in_parts(lost_rank, whole, name, config, job, out, json)
        return
    data = load_dataset(dataset, protocol, data_dir)
    result = job.run(data, name, config, out)
    console.print(result_table(result))
    report_files(out, data)
    write_json(json, result)


@takes_graph(panel="Your graph instead of a data set")
def compare(
    graph: GraphOptions,
    dataset: DatasetOrRun = None,
    models: options.Models = "mlp, gcn, chebnet, gat, sage, gpr-gnn, asgat-cheb",
    splits: options.Runs = "0-9",
    seed: options.Seed = 0,
    set_: options.Settings = None,
    protocol: options.Protocol = None,
    device: options.Device = "auto",
    deterministic: options.Deterministic = False,
    threads: options.Threads = None,
    out: Annotated[Path, typer.Option(help="Folder for the run directories and the figure.")] = Path("runs"),
    fresh: options.Fresh = False,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Train several models on the same splits of a data set or of your graph, print one table and draw it.

    A setting given with --set applies to the models that have it. Splits of your graph are those of `asgat fit`.
    """
    from asgat.leaderboard.field import count_parameters
    from asgat.report import comparison_figure
    from asgat.training.runner import model_sizes

    check_source(dataset, graph, protocol)
    names = options.parse_names("--models", models)
    job = Job(splits, seed, set_, device, deterministic, fresh)
    given = {name: job.settings_of(name, names) for name in names}
    source = load_source(dataset, graph, seed, max(job.runs) + 1, protocol, data_dir)
    job.runs = source.runs(job.runs)
    configs = {name: source.config(name, given[name]) for name in names}
    prefix = f"compare-{source.name}" if source.user else source.name  # `asgat fit` has the other name
    folders = {name: out / job.folder(prefix, name) for name in names}
    rows, datasets = [], {name: source.dataset_for(name) for name in names}
    for name, data in datasets.items():
        size = count_parameters(name, configs[name], **model_sizes(data))
        rows.append({**job.run(data, name, configs[name], folders[name]), "parameters": size})
        if source.user:
            source.user.add_to_run(folders[name])
    console.print(comparison_table(rows))
    for name, data in datasets.items():
        report_files(folders[name], data)
    figure = comparison_figure(rows, out / f"{source.name}-comparison.png")
    say(f"comparison:      {figure}")
    write_json(json, {"rows": rows})


class Job:
    """The options that `train` and `compare` share, checked before anything is read or written."""

    def __init__(
        self, splits: str, seed: int, settings: list[str] | None, device: str, deterministic: bool, fresh: bool
    ) -> None:
        self.device = options.check_device(device, deterministic)
        self.runs, self.suffix = options.parse_runs(splits)
        self.seed, self.settings, self.fresh = seed, settings or [], fresh

    def folder(self, dataset: str, model: str) -> str:
        """The name of the run directory; other runs have another one."""
        return f"{dataset}-{model}-seed{self.seed}{self.suffix}"

    def settings_of(self, model: str, models: Sequence[str] = ()) -> dict[str, Any]:
        """The settings given for a model; those that only other ``models`` have are left out."""
        from asgat.nn.registry import model_spec

        config = model_spec(model).config
        foreign = {key for name in models for key in set(model_spec(name).config.keys()) - set(config.keys())}
        own = [pair for pair in self.settings if pair.partition("=")[0].strip() not in foreign]
        return options.parse_settings(own, config)

    def run(self, data: Any, model: str, config: Any, out: Path) -> dict[str, Any]:
        """Trains a model and returns its result; all training of `train` and `compare` goes through this."""
        from asgat.memory import keep_freed_memory
        from asgat.training.runner import Callbacks, run

        where = f"[bold]{escape(data.name)}[/] ({data.protocol} splits), {escape(str(data.graph))}"
        console.print(f"[bold]{model}[/] on {where}, on {self.device}")
        detail("settings: " + ", ".join(f"{key} {value}" for key, value in config.to_dict().items()))
        bar = RunProgress(len(self.runs), config.epochs)
        with resumable("Finished runs are saved"), bar as progress:
            callbacks = Callbacks(progress, progress.building, keep_freed_memory, counted=progress.finished)
            return run(data, model, config, self.runs, self.seed, self.device, out, self.fresh, callbacks)


def report_files(out: Path, data: Any) -> None:
    """Draws the learned filters of a run directory if its model has any, and prints the paths."""
    from asgat.nn.attention_model import AttentionModel
    from asgat.report import filter_figure
    from asgat.spectral.density import affordable_signals
    from asgat.training import load_model
    from asgat.training.inputs import graph_for

    model, name, config = load_model(out)
    if isinstance(model, AttentionModel) and affordable_signals(data.graph.num_entries):
        title = f"{name} on {data.name}: learned response of each head"
        figure = filter_figure(model, graph_for(data, config), out / "filters.png", title)
        if figure is not None:
            say(f"learned filters: {figure}")
    say(f"run directory:   {out}")
