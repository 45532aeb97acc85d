"""``asgat datasets``: the data sets and their statistics."""

from dataclasses import astuple
from pathlib import Path
from typing import Any

from asgat.cli import options
from asgat.cli.output import console, say, write_json
from asgat.cli.tables import make_table


def datasets(data_dir: options.DataDir = None, json: options.Json = None) -> None:
    """List the data sets with their statistics.

    The statistics are computed if the files are available; otherwise the published ones are shown.
    """
    rows = describe_datasets(data_dir)
    headings = ("name", "nodes", "entries", "features", "classes", "β", "splits")
    table = make_table("Data sets", headings, left=("name", "splits"))
    for row in rows:
        counts = [f"{row[key]:,}" for key in ("nodes", "edges", "features", "classes")]
        name = row["name"] if row["measured"] else f"{row['name']} ○"
        table.add_row(name, *counts, f"{row['beta']:.3f}", " ".join(row["protocols"]))
    console.print(table)
    say("entries: of the adjacency matrix, two per edge, one per self-loop. ○: no files, as published.", wrap=True)
    for row in rows:
        if row["note"]:
            say(f"{row['name']}: {row['note']}", wrap=True)
    write_json(json, {"rows": rows})


def describe_datasets(data_dir: Path | None) -> list[dict[str, Any]]:
    from asgat.data import DATASETS, load_dataset, statistics_of

    rows = []
    for name, info in DATASETS.items():
        measured = not info.missing_files(None, data_dir)
        figures = statistics_of(load_dataset(name, data_dir=data_dir)) if measured else info.statistics
        rows.append(
            {
                "name": name,
                **dict(zip(("nodes", "edges", "features", "classes", "beta"), astuple(figures), strict=True)),
                "metric": info.metric,
                "protocols": list(info.protocols),
                "measured": measured,
                "source": info.source,
                "description": info.description,
                "note": info.note,
            }
        )
    return rows
