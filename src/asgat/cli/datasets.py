"""``asgat datasets``: the data sets and their statistics."""

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
    table = make_table("Data sets", headings, left=("name", "splits"), no_wrap=("name",))
    table.padding = 0  # all names and figures fit into 80 characters
    names = [row["name"] if row["measured"] else f"{row['name']} ○" for row in rows]
    table.columns[0].min_width = max(map(len, names))  # in a narrower terminal figures are cut, not names
    for row, name in zip(rows, names, strict=True):
        counts = [f"{row[key]:,}" for key in ("nodes", "edges", "features", "classes")]
        table.add_row(name, *counts, f"{row['beta']:.3f}", " ".join(row["protocols"]))
    console.print(table)
    entries = "entries: of the adjacency matrix, two per edge, one per self-loop or directed edge."
    say(f"{entries} ○: no files, as published.", wrap=True)
    for row in rows:
        if row["note"]:
            say(f"{row['name']}: {row['note']}", wrap=True)
    write_json(json, {"rows": rows})


def describe_datasets(data_dir: Path | None) -> list[dict[str, Any]]:
    """One row per data set, with computed statistics if its files are available."""
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
