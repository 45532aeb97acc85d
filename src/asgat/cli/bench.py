"""``asgat bench``: measurements."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from asgat.cli import options
from asgat.cli.graph_options import GraphOptions, Source, load_source, takes_graph
from asgat.cli.output import console, make_table, notes, say, write_json
from asgat.errors import AsgatError

app = typer.Typer(help="Measure speed, error and scaling, next to baselines.", no_args_is_help=True)


Model = Annotated[str, typer.Option(help="asgat-cheb or asgat-deep.")]
MODELS = ("asgat-cheb", "asgat-deep")


@app.command(
    epilog="Examples:  asgat bench epoch --datasets texas,cora --device cpu --json epoch.json  ·  "
    "asgat bench epoch --edges edges.csv --nodes nodes.csv --label kind"
)
@takes_graph(panel="Your graph instead of a data set")
def epoch(
    graph: GraphOptions,
    datasets: Annotated[
        str | None,
        typer.Option(help="Names from `asgat datasets`, or run directories of `asgat fit`. Default: by model."),
    ] = None,
    model: Model = "asgat-cheb",
    set_: options.Settings = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
    repeats: Annotated[int, typer.Option(help="Measurements per model; the models take turns.", min=1)] = 7,
    busy: Annotated[int, typer.Option(help="Time ASGAT with this many busy processes, and without.", min=0)] = 0,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Time one epoch of training and evaluation: ASGAT, PyG's GAT of that width, GAT tuned, and ASGAT on all pairs.

    asgat-deep, with the settings of the recipe and --set, is timed next to a residual GraphSAGE of the same width and
    depth, in the usual form and tuned. Your own graph is timed with the settings of `asgat fit --model`.

    With --busy only ASGAT is timed, in turns without and with other processes that compute on the same machine.
    """
    from asgat.bench.epoch import TABLE, bench_busy, bench_epoch, published_config

    check_model(model)
    place = options.check_device(device)
    default = (
        "texas,cora,chameleon,squirrel,citeseer,pubmed" if model == "asgat-cheb" else "minesweeper,squirrel-directed"
    )
    names: list[str | None] = [None]
    if datasets is not None or not graph.given():
        names = [*options.parse_names("--datasets", default if datasets is None else datasets)]
    sources = (load_source(name, graph, data_dir=data_dir) for name in names)
    if busy and model != "asgat-cheb":
        raise AsgatError("--busy is for --model asgat-cheb.")
    if model == "asgat-deep":
        _deep_epoch(sources, set_ or [], place, repeats, json)
        return
    if set_:
        raise AsgatError("asgat-cheb is timed with the published settings; --set is for --model asgat-deep.")
    rows = []
    with notes.status("") as status:
        for source in sources:
            config: Any = source.config(model, TABLE) if source.user else published_config(source.name)
            timed = source.dataset_for(model), config, place, status.update, repeats
            rows.append(bench_busy(*timed, busy) if busy else bench_epoch(*timed))
    if busy:
        _print_busy(rows, str(place), repeats, busy, json)
        return
    headings = ("data set", "asgat", "gat", "gat tuned", "all pairs", "× gat", "× tuned", "candidates")
    table = _table(f"Milliseconds per epoch on {place}, medians of {repeats}", headings)
    for row in rows:
        times = [_number(row[key]) for key in ("asgat_ms", "gat_ms", "gat_tuned_ms", "dense_ms")]
        ratios = [f"{row[key]:.1f}" for key in ("speedup_vs_gat", "speedup_vs_tuned_gat", "candidates_per_node")]
        table.add_row(row["dataset"], *times, *ratios)
    console.print(table)
    write_json(json, {"device": str(place), "rows": rows})


def _print_busy(rows: list[dict[str, Any]], device: str, repeats: int, busy: int, json: Path | None) -> None:
    from asgat.threads import available_cores

    title = f"Milliseconds per epoch on {device},\nmedians of {repeats}, {available_cores()} cores"
    table = _table(title, ("data set", "quiet", f"{busy} busy", "ratio"))
    for row in rows:
        table.add_row(row["dataset"], *(_number(row[key]) for key in ("quiet_ms", "busy_ms", "ratio")))
    console.print(table)
    write_json(json, {"device": device, "busy": busy, "cores": available_cores(), "rows": rows})


def _deep_epoch(sources: Iterable[Source], settings: list[str], device: Any, repeats: int, json: Path | None) -> None:
    from asgat.bench.deep_epoch import bench_deep_epoch
    from asgat.nn.registry import model_spec

    given = options.parse_settings(settings, model_spec("asgat-deep").config)
    rows = []
    with notes.status("") as status:
        for source in sources:
            config: Any = source.config("asgat-deep", given)
            rows.append(bench_deep_epoch(source.dataset_for("asgat-deep"), config, device, status.update, repeats))
    headings = ("data set", "blocks", "asgat", "sage", "sage\ntuned", "÷ sage", "÷ tuned", "P", "÷ P")
    table = _table(f"Milliseconds per epoch on {device}, medians of {repeats}", headings)
    for row in rows:
        times = [f"{row[key]:.1f}" for key in ("asgat_ms", "sage_ms", "sage_tuned_ms")]
        ratios = [_number(row[key]) for key in ("ratio_to_sage", "ratio_to_tuned_sage")]
        products = "–" if row["products_per_layer"] is None else str(row["products_per_layer"])
        cells = (*times, *ratios, products, _number(row["ratio_per_product"]))
        table.add_row(row["dataset"], f"{row['layers']} × {row['hidden']}", *cells)
    console.print(table)
    for row in rows:
        say(f"{row['dataset']}: {row['channels']}, {row['heads']} heads, k {row['k']}, order {row['order']}")
    say("P: sparse products of a block without attention (GraphSAGE has 1); ÷ P: ÷ tuned, per product.", wrap=True)
    write_json(json, {"device": str(device), "model": "asgat-deep", "rows": rows})


@app.command(epilog="Example: asgat bench certificate --datasets cora --json certificate.json")
def certificate(
    datasets: options.Datasets = "cora,chameleon,squirrel,citeseer",
    device: options.Device = "auto",
    threads: options.Threads = None,
    epochs: Annotated[int, typer.Option(help="Largest number of training epochs.", min=1)] = 2000,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Train filters, then compare the certificate of every row with its true error in double precision."""
    from asgat.bench.certificate_error import bench_certificate

    place, names = options.check_device(device), options.parse_names("--datasets", datasets)
    with notes.status("") as status:
        rows = [bench_certificate(name, place, status.update, data_dir, epochs) for name in names]
    bounds = ("mean\nbound", "max\nbound", "mean\nerror", "max\nerror")
    table = _table(f"Certificates and true errors on {place}", ("data set", "cand.", "exact %", *bounds, "violations"))
    for row in rows:
        figures = [f"{row[key]:.1e}" for key in ("mean_bound", "max_bound", "mean_error", "max_error")]
        share = f"{100 * row['certified_share']:.1f}"
        table.add_row(row["dataset"], f"{row['candidates_per_node']:.0f}", share, *figures, str(row["violations"]))
    console.print(table)
    write_json(json, {"rows": rows})


@app.command(epilog="Example: asgat bench scale --nodes 10000,100000 --json scale.json")
def scale(
    nodes: Annotated[str, typer.Option(help="Sizes of the block models, separated by commas.")] = "10000,100000",
    model: Model = "asgat-cheb",
    device: options.Device = "auto",
    json: options.Json = None,
) -> None:
    """Build tables and train on block models of growing size; fit the growth of the time."""
    from asgat.bench.scale import SETTINGS, bench_scale

    check_model(model)
    place = options.check_device(device)
    try:
        sizes = [int(size.replace("_", "")) for size in options.parse_names("--nodes", nodes)]
    except ValueError:
        raise AsgatError(f"--nodes must be whole numbers separated by commas, not {nodes!r}.") from None
    if min(sizes) < 100:
        raise AsgatError(f"--nodes must be at least 100 each, but one is {min(sizes)}.")
    with notes.status("") as status:
        result = bench_scale(sizes, place, status.update, model)
    headings = ("nodes", "entries", "build s", "epoch s", "peak MiB", "exact %", "mean\nerror ≤", "largest\nseen")
    own = SETTINGS[model]
    form = f"order {own['order']}, {own['heads']} heads, hidden {own['hidden']}, k {own['k']}"
    table = _table(f"Growth of {model} with the graph, on {place}: mean degree 10, {form}", headings)
    for row in result["rows"]:
        times = f"{row['build_s']:.1f}", f"{row['epoch_s']:.2f}", f"{row['peak_memory_mb']:,.0f}"
        errors = f"{100 * row['certified_share']:.0f}", f"{row['mean_bound']:.1e}", f"{row['max_bound']:.1e}"
        table.add_row(f"{row['nodes']:,}", f"{row['edges']:,}", *times, *errors)
    console.print(table)
    build, epoch = (_number(result[key]) for key in ("exponent_build", "exponent_epoch"))
    say(f"growth exponents over the last factor of ten: build {build}, epoch {epoch}", wrap=True)
    write_json(json, result)


@app.command(epilog="Example: asgat bench start --json start.json")
def start(
    repeats: Annotated[int, typer.Option(help="Processes measured per line; the lines take turns.", min=1)] = 7,
    json: options.Json = None,
) -> None:
    """Time imports and the quick commands in new processes, next to `import torch`."""
    from asgat.bench.start import bench_start

    with notes.status("") as status:
        rows = bench_start(status.update, repeats)
    headings = ("process", "seconds", "÷ torch", "CPU\nseconds", "÷ torch\nCPU", "CPU over\ntorch")
    table = make_table(f"Start of processes, medians of {repeats}", headings, left=("process",), no_wrap=headings)
    for row in rows:
        keys = ("wall_s", "wall_ratio", "cpu_s", "cpu_ratio", "cpu_over_torch_s")
        table.add_row(row["what"], *(f"{row[key]:.2f}" for key in keys))
    console.print(table)
    write_json(json, {"rows": rows})


def check_model(model: str) -> None:
    if model not in MODELS:
        raise AsgatError(f"--model must be {' or '.join(MODELS)}, not {model!r}.")


def _table(title: str, headings: Sequence[str]) -> Table:
    return make_table(title, headings, left=("data set",), no_wrap=headings)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
