"""``asgat bench``: the measurements as commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from asgat.cli.options import DataDir, Device, Json, check_device, check_writable, console, write_json
from asgat.errors import AsgatError

app = typer.Typer(help="Measure speed, error and growth, beside what they are compared to.", no_args_is_help=True)

Datasets = Annotated[str, typer.Option(help="Names from `asgat datasets`, with commas.")]


@app.command(epilog="Example: asgat bench epoch --datasets texas,cora --device cpu --json epoch.json")
def epoch(
    datasets: Datasets = "texas,cora,chameleon,squirrel,citeseer,pubmed",
    device: Device = "cpu",
    repeats: Annotated[int, typer.Option(help="Timings per contender, taken in turns.", min=1)] = 7,
    data_dir: DataDir = None,
    json: Json = None,
) -> None:
    """Time one epoch, training and evaluation: ASGAT, PyG's GAT of that width plain and tuned, ASGAT on all pairs."""
    from asgat.bench.epoch import bench_epoch

    place = check_device(device)
    check_writable(json)
    with console.status("") as status:
        rows = bench_epoch(names(datasets), place, data_dir, repeats, status.update)
    title = f"Milliseconds of one epoch on {device}, medians of {repeats}"
    table = _table(title)
    for heading in ("data set", "asgat", "gat", "gat tuned", "all pairs", "× gat", "× tuned", "candidates"):
        table.add_column(heading, justify="left" if heading == "data set" else "right", no_wrap=True)
    for row in rows:
        times = [_number(row[key], ".2f") for key in ("asgat_ms", "gat_ms", "gat_tuned_ms", "dense_ms")]
        ratios = [f"{row[key]:.1f}" for key in ("speedup_vs_gat", "speedup_vs_tuned_gat", "candidates_per_node")]
        table.add_row(row["dataset"], *times, *ratios)
    console.print(table)
    write_json(json, {"device": device, "rows": rows})


@app.command(epilog="Example: asgat bench certificate --datasets cora --json certificate.json")
def certificate(
    datasets: Datasets = "cora,chameleon,squirrel,citeseer",
    device: Device = "cpu",
    epochs: Annotated[int, typer.Option(help="Largest number of training epochs.", min=1)] = 2000,
    data_dir: DataDir = None,
    json: Json = None,
) -> None:
    """Train filters, then hold the certificate of every row against its true error in double precision."""
    from asgat.bench.certificate_error import bench_certificate

    place = check_device(device)
    check_writable(json)
    with console.status("") as status:
        rows = bench_certificate(names(datasets), place, data_dir, epochs, status.update)
    table = _table("Certificates against true errors")
    for heading in (
        "data set",
        "cand.",
        "exact %",
        "mean\nbound",
        "max\nbound",
        "mean\nerror",
        "max\nerror",
        "violations",
    ):
        table.add_column(heading, justify="left" if heading == "data set" else "right", no_wrap=True)
    for row in rows:
        figures = [f"{row[key]:.1e}" for key in ("mean_bound", "max_bound", "mean_error", "max_error")]
        share = f"{100 * row['certified_share']:.1f}"
        table.add_row(row["dataset"], f"{row['candidates_per_node']:.0f}", share, *figures, str(row["violations"]))
    console.print(table)
    write_json(json, {"rows": rows})


@app.command(epilog="Example: asgat bench scale --nodes 10000,100000 --json scale.json")
def scale(
    nodes: Annotated[str, typer.Option(help="Sizes of the block models, with commas.")] = "10000,100000",
    device: Device = "cpu",
    json: Json = None,
) -> None:
    """Build tables and train on block models of growing size; fit how time grows."""
    from asgat.bench.scale import bench_scale

    place = check_device(device)
    check_writable(json)
    try:
        sizes = [int(part.replace("_", "")) for part in names(nodes)]
    except ValueError:
        raise AsgatError(f"--nodes must be whole numbers with commas, not {nodes!r}.") from None
    if min(sizes) < 100:
        raise AsgatError(f"--nodes must be at least 100 each, but one is {min(sizes)}.")
    with console.status("") as status:
        result = bench_scale(sizes, place, status.update)
    table = _table("Growth with the graph: mean degree 10, order 8, 4 heads of 16, k 8")
    for heading in ("nodes", "entries", "build s", "epoch s", "peak MiB", "exact %", "mean\nerror ≤", "largest\nseen"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in result["rows"]:
        table.add_row(
            f"{row['nodes']:,}",
            f"{row['edges']:,}",
            f"{row['build_s']:.1f}",
            f"{row['epoch_s']:.2f}",
            f"{row['peak_memory_mb']:,.0f}",
            f"{100 * row['certified_share']:.0f}",
            f"{row['mean_bound']:.1e}",
            f"{row['max_bound']:.1e}",
        )
    console.print(table)
    build, epoch = (_number(result[key], ".2f") for key in ("exponent_build", "exponent_epoch"))
    console.print(f"growth exponents over the last factor of ten: build {build}, epoch {epoch}", highlight=False)
    write_json(json, result)


def names(text: str) -> list[str]:
    """The parts of a list with commas."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise AsgatError("The list is empty; give names with commas between them.")
    return parts


def _table(title: str) -> Table:
    """One that leaves room for numbers: eight columns within 80 characters."""
    return Table(title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _number(value: Any, form: str) -> str:
    return "–" if value is None else format(value, form)
