"""``python -m reproduce bench``: measurements."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from asgat.cli import options
from asgat.cli.command import App
from asgat.cli.output import Row, console, make_table, notes, say, write_json
from asgat.errors import AsgatError

app = App(help="Measure speed, error and scaling, next to baselines.", no_args_is_help=True)

COMMAND = "Example: python -m reproduce bench"
DATASETS = {
    "asgat-cheb": "texas,cora,chameleon,squirrel,citeseer,pubmed",
    "asgat-deep": "minesweeper,squirrel-directed",
}
# Columns of tables: heading, key and format of the figure.
EPOCH = [
    ("data set", "dataset", ""),
    ("asgat", "asgat_ms", ".2f"),
    ("gat", "gat_ms", ".2f"),
    ("gat tuned", "gat_tuned_ms", ".2f"),
    ("all pairs", "dense_ms", ".2f"),
    ("× gat", "speedup_vs_gat", ".1f"),
    ("× tuned", "speedup_vs_tuned_gat", ".1f"),
    ("candidates", "candidates_per_node", ".1f"),
]
DEEP_EPOCH = [
    ("data set", "dataset", ""),
    ("blocks", "layers", ""),
    ("hidden", "hidden", ""),
    ("asgat", "asgat_ms", ".1f"),
    ("sage", "sage_ms", ".1f"),
    ("sage\ntuned", "sage_tuned_ms", ".1f"),
    ("÷ sage", "ratio_to_sage", ".2f"),
    ("÷ tuned", "ratio_to_tuned_sage", ".2f"),
    ("P", "products_per_layer", ""),
    ("÷ P", "ratio_per_product", ".2f"),
]
CERTIFICATE = [
    ("data set", "dataset", ""),
    ("cand.", "candidates_per_node", ".0f"),
    ("exact", "certified_share", ".1%"),
    ("mean\nbound", "mean_bound", ".1e"),
    ("max\nbound", "max_bound", ".1e"),
    ("mean\nerror", "mean_error", ".1e"),
    ("max\nerror", "max_error", ".1e"),
    ("violations", "violations", ""),
]
SCALE = [
    ("nodes", "nodes", ","),
    ("entries", "edges", ","),
    ("build s", "build_s", ".1f"),
    ("epoch s", "epoch_s", ".2f"),
    ("peak MiB", "peak_memory_mb", ",.0f"),
    ("exact", "certified_share", ".0%"),
    ("mean\nerror ≤", "mean_bound", ".1e"),
    ("largest\nseen", "max_bound", ".1e"),
]
RANKS = [
    ("nodes", "nodes", ","),
    ("entries", "edges", ","),
    ("table s", "build_s", ".1f"),
    ("epoch s", "epoch_s", ".2f"),
    ("peak MiB", "peak_memory_mb", ",.0f"),
]
START = [
    ("process", "what", ""),
    ("seconds", "wall_s", ".2f"),
    ("÷ torch", "wall_ratio", ".2f"),
    ("CPU\nseconds", "cpu_s", ".2f"),
    ("÷ torch\nCPU", "cpu_ratio", ".2f"),
    ("CPU over\ntorch", "cpu_over_torch_s", ".2f"),
]

Model = Annotated[str, typer.Option(help="asgat-cheb or asgat-deep.")]


@app.command(epilog=f"{COMMAND} epoch --datasets texas,cora --device cpu --json epoch.json")
def epoch(
    datasets: Annotated[str | None, typer.Option(help="Names from `asgat datasets`. Default: by model.")] = None,
    model: Model = "asgat-cheb",
    set_: options.Settings = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
    repeats: Annotated[int, typer.Option(help="Measurements per model; the models take turns.", min=1)] = 7,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Time one epoch of training and evaluation: ASGAT, PyG's GAT of that width, GAT tuned, and ASGAT on all pairs.

    asgat-cheb has the settings its authors published. asgat-deep, with those of the recipe, is timed next to a residual
    GraphSAGE of the same width and depth, in the usual form and tuned.
    """
    from asgat.data import load_dataset
    from asgat.nn.registry import model_spec
    from asgat.recipe import load_config
    from reproduce.bench.deep_epoch import bench_deep_epoch
    from reproduce.bench.epoch import bench_epoch, published_config

    check_model(model)
    place, deep = options.check_device(device), model == "asgat-deep"
    changes = options.parse_settings(set_ or [], model_spec(model).config)
    rows: list[Row] = []
    with notes.status("") as status:
        for name in options.parse_names("--datasets", DATASETS[model] if datasets is None else datasets):
            config: Any = load_config(name, model, changes) if deep else published_config(name, **changes)
            data, measure = load_dataset(name, data_dir=data_dir), bench_deep_epoch if deep else bench_epoch
            rows.append(measure(data, config, place, status.update, repeats))
    show(f"Milliseconds per epoch on {place}, medians of {repeats}", DEEP_EPOCH if deep else EPOCH, rows)
    if deep:
        say("P: sparse products of a block without attention (GraphSAGE has 1); ÷ P: ÷ tuned, per product.", wrap=True)
    write_json(json, {"device": str(place), "model": model, "rows": rows})


@app.command(epilog=f"{COMMAND} certificate --datasets cora --json certificate.json")
def certificate(
    datasets: options.Datasets = "cora,chameleon,squirrel,citeseer",
    device: options.Device = "auto",
    threads: options.Threads = None,
    epochs: Annotated[int, typer.Option(help="Largest number of training epochs.", min=1)] = 2000,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Train filters, then compare the certificate of every row with its true error in double precision."""
    from reproduce.bench.certificate import bench_certificate

    place, names = options.check_device(device), options.parse_names("--datasets", datasets)
    with notes.status("") as status:
        rows = [bench_certificate(name, place, status.update, data_dir, epochs) for name in names]
    show(f"Certificates and true errors on {place}", CERTIFICATE, rows)
    write_json(json, {"rows": rows})


@app.command(epilog=f"{COMMAND} scale --nodes 10000,100000 --json scale.json")
def scale(
    nodes: Annotated[str, typer.Option(help="Sizes of the block models, separated by commas.")] = "10000,100000",
    model: Model = "asgat-cheb",
    device: options.Device = "auto",
    json: options.Json = None,
) -> None:
    """Build tables and train on block models of growing size; fit the growth of the time."""
    from reproduce.bench.scale import SETTINGS, bench_scale

    check_model(model)
    place = options.check_device(device)
    with notes.status("") as status:
        result = bench_scale(parse_sizes(nodes), place, status.update, model)
    form = "order {order}, {heads} heads, hidden {hidden}, k {k}".format(**SETTINGS[model])
    show(f"Growth of {model} with the graph, on {place}: mean degree 10, {form}", SCALE, result["rows"])
    growth = (f"{what} {cell(result[f'exponent_{what}'], '.2f')}" for what in ("build", "epoch"))
    say(f"growth exponents over the last factor of ten: {', '.join(growth)}", wrap=True)
    write_json(json, result)


@app.command(epilog=f"{COMMAND} ranks --nodes 200000 --ranks 2 --json ranks.json")
def ranks(
    nodes: Annotated[str, typer.Option(help="Sizes of the block models, separated by commas.")] = "200000",
    count: Annotated[int, typer.Option("--ranks", help="Ranks on this machine.", min=1)] = 2,
    model: Model = "asgat-cheb",
    json: options.Json = None,
) -> None:
    """Convert block models of mean degree 20 to folders and train on them with torchrun."""
    from reproduce.bench.ranks import bench_ranks

    check_model(model)
    with notes.status("") as status:
        result = bench_ranks(parse_sizes(nodes), count, status.update, model)
    show(f"{model} on {count} ranks", RANKS, result["rows"])
    write_json(json, result)


@app.command(epilog=f"{COMMAND} start --json start.json")
def start(
    repeats: Annotated[int, typer.Option(help="Processes measured per line; the lines take turns.", min=1)] = 7,
    json: options.Json = None,
) -> None:
    """Time imports and the quick commands in new processes, next to `import torch`."""
    from reproduce.bench.start import bench_start

    with notes.status("") as status:
        rows = bench_start(status.update, repeats)
    show(f"Start of processes, medians of {repeats}", START, rows)
    write_json(json, {"rows": rows})


def check_model(model: str) -> None:
    if model not in DATASETS:
        raise AsgatError(f"--model must be {' or '.join(DATASETS)}, not {model!r}.")


def parse_sizes(text: str) -> list[int]:
    try:
        sizes = [int(size.replace("_", "")) for size in options.parse_names("--nodes", text)]
    except ValueError:
        raise AsgatError(f"--nodes must be whole numbers separated by commas, not {text!r}.") from None
    if min(sizes) < 100:
        raise AsgatError(f"--nodes must be at least 100 each, but one is {min(sizes)}.")
    return sizes


def show(title: str, columns: list[tuple[str, str, str]], rows: Iterable[Row]) -> None:
    headings = [heading for heading, _, _ in columns]
    cells = [[cell(row[key], form) for _, key, form in columns] for row in rows]
    console.print(make_table(title, headings, cells, left=headings[:1], no_wrap=headings))


def cell(value: Any, form: str) -> str:
    return "–" if value is None else format(value, form)
