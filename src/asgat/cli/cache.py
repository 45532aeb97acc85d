"""``asgat cache``: the candidate tables that are kept on disk."""

from datetime import datetime
from typing import Annotated, Any

import typer

from asgat.cli import options
from asgat.cli.output import console, make_table, say, write_json


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all of them.")] = False,
    json: options.Json = None,
) -> None:
    """List the candidate tables that are kept for later runs, the last used first, or remove them.

    A table is found again by the content of the graph and the table's settings. ASGAT_CACHE_DIR is their folder,
    ASGAT_CACHE_GB the most they take; those used longest ago are removed first. 0 keeps none.
    """
    from asgat.tables.table_cache import TableCache

    held = TableCache()
    freed = held.clear() if clear else 0
    entries = held.entries()
    rows: list[dict[str, Any]] = [
        {"table": entry.path.name[:8], "gb": entry.bytes / 1e9, "used": entry.used, "finished": entry.finished}
        | dict(entry.about)
        for entry in entries
    ]
    if clear:
        say(f"{freed / 1e9:,.1f} GB removed from {held.folder}")
    if rows:
        headings = ("table", "graph", "settings", "GB", "last used")
        table = make_table(f"Candidate tables in {held.folder}", headings, left=(*headings[:3], "last used"))
        for row in rows:
            used = f"{datetime.fromtimestamp(row['used']):%Y-%m-%d %H:%M}" if row["finished"] else "unfinished"
            table.add_row(row["table"], graph_text(row), settings_text(row), f"{row['gb']:,.2f}", used)
        console.print(table)
        total = sum(row["gb"] for row in rows)
        say(f"{total:,.1f} of {held.limit / 1e9:,.0f} GB are used; `asgat cache --clear` removes all tables.")
    elif not clear:
        say(f"There are no candidate tables in {held.folder}.")
    write_json(json, {"folder": str(held.folder), "limit_gb": held.limit / 1e9, "freed_gb": freed / 1e9, "rows": rows})


def graph_text(row: dict[str, Any]) -> str:
    """The size of a graph, and the rows that a rank holds of its table."""
    if "nodes" not in row:
        return "unknown"
    part = f", rows {row['rows'][0]:,} to {row['rows'][1] - 1:,}" if "rows" in row else ""
    return f"{row['nodes']:,} nodes, {row['entries']:,} entries{part}"


def settings_text(row: dict[str, Any]) -> str:
    """What a user could set to get the same table."""
    keys = ("builder", "order", "candidates", "cap", "neighbourhood", "storage")
    return ", ".join(f"{key} {row[key]}" for key in keys if key in row)
