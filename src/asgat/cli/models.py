"""``asgat datasets`` and ``asgat models``: the data sets, the models and their settings."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from asgat.cli import options
from asgat.cli.output import console, make_table, say, write_json
from asgat.config import GROUPS

SIZES = ("nodes", "edges", "features", "classes", "beta")  # of a data set
TYPICAL = {"features": 1703, "classes": 5, "nodes": 183}  # the size of Texas


def datasets(data_dir: options.DataDir = None, json: options.Json = None) -> None:
    """List the data sets with their statistics.

    The statistics are computed if the files are available; otherwise the published ones are shown.
    """
    rows = describe_datasets(data_dir)
    headings = ("name", "nodes", "entries", "features", "classes", "β", "splits")
    table = make_table("Data sets", headings, left=("name", "splits"), no_wrap=("name",))
    names = [row["name"] if row["measured"] else f"{row['name']} ○" for row in rows]
    for row, name in zip(rows, names, strict=True):
        counts = [f"{row[key]:,}" for key in SIZES[:-1]]
        table.add_row(name, *counts, f"{row['beta']:.3f}", " ".join(row["protocols"]))
    console.print(table)
    entries = "entries: of the adjacency matrix, two per edge, one per self-loop or directed edge."
    say(f"{entries} ○: no files, as published.", wrap=True)
    for row in rows:
        if row["note"]:
            say(f"{row['name']}: {row['note']}", wrap=True)
    write_json(json, {"rows": rows})


def describe_datasets(data_dir: Path | None) -> list[dict[str, Any]]:
    from asgat.data import DATASETS, load_dataset, statistics_of

    rows = []
    for name, info in DATASETS.items():
        needed = info.files()
        measured = not info.missing_files(None, data_dir)
        figures = statistics_of(load_dataset(name, data_dir=data_dir)) if needed and measured else info.statistics
        rows.append(
            {
                "name": name,
                **dict(zip(SIZES, dataclasses.astuple(figures), strict=True)),
                "metric": info.metric,
                "protocols": list(info.protocols),
                "measured": measured,
                "source": info.source,
                "description": info.description,
                "note": info.note,
            }
        )
    return rows


def models(
    name: Annotated[
        str | None, typer.Argument(help="A model: list its settings.", autocompletion=options.complete_model)
    ] = None,
    json: options.Json = None,
) -> None:
    """List the models, or the settings of one (the keys of --set)."""
    from asgat.nn.registry import COST_LETTERS, MODELS

    if name is None:
        headings = ("model", "what it is", "reference", "cost of a layer")
        rows = [describe_model(model, sized=json is not None) for model in MODELS]
        cells = ([row[key] for key in ("model", "summary", "reference", "cost")] for row in rows)
        console.print(make_table("Models", headings, cells, left=headings))
        say(f"{COST_LETTERS}.", wrap=True)
        say(f"Models that use the direction of edges: {', '.join(row['model'] for row in rows if row['directed'])}.")
        write_json(json, {"rows": rows})
        return
    described = {**describe_model(name), "rows": describe_settings(name)}
    columns = ("setting", "default", "meaning")
    table = make_table(f"Settings of {name}", columns, left=columns)
    for group in GROUPS:
        if rows := [row for row in described["rows"] if row["group"] == group]:
            table.add_row(f"[bold]{group}[/]")
        for row in rows:
            table.add_row(row["setting"], f"{row['default']}{' (fixed)' if row['fixed'] else ''}", row["meaning"])
        table.add_section()
    console.print(table)
    say(f"{described['summary']}; {described['reference']}", wrap=True)
    say(f"cost of a layer: {described['cost']}", wrap=True)
    size = f"{TYPICAL['features']:,} features and {TYPICAL['classes']} classes"
    say(f"{described['parameters']:,} parameters for {size}", wrap=True)
    write_json(json, described)


def describe_model(name: str, sized: bool = True) -> dict[str, Any]:
    """A model's summary and, if ``sized``, its number of parameters on a data set of typical size: it is built."""
    from asgat.nn.registry import make_config, model_spec

    about = {key: getattr(model_spec(name), key) for key in ("summary", "reference", "cost", "directed")}
    described = {"model": name, **about}
    if sized:
        from asgat.leaderboard.field import count_parameters

        size = {"in_channels": TYPICAL["features"], "out_channels": TYPICAL["classes"], "num_nodes": TYPICAL["nodes"]}
        described |= {"parameters": count_parameters(name, make_config(name), **size), "parameters_for": TYPICAL}
    return described


def describe_settings(name: str) -> list[dict[str, Any]]:
    from asgat.nn.registry import make_config, model_spec

    config = make_config(name)
    values = config.to_dict()
    return [
        {
            "setting": field.name,
            "group": field.metadata["group"],
            "default": values[field.name],
            "meaning": field.metadata["help"],
            "fixed": field.name in model_spec(name).fixed,
        }
        for field in dataclasses.fields(config)
    ]
