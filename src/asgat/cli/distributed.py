"""``asgat train --distributed``: one rank of a launcher such as torchrun."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from asgat.cli.output import RunProgress, console, errors, notes, printable, result_table, say, write_json
from asgat.distributed.lost_rank import LostRankExit
from asgat.errors import AsgatError

Distributed = Annotated[
    bool, typer.Option("--distributed", help="Divide the graph among the ranks of a launcher such as torchrun.")
]


def begin_rank() -> LostRankExit:
    """Prepares this rank for the loss of another, and silences all but rank 0: what all would print is printed once."""
    rank = os.environ.get("RANK", "0")
    if rank != "0":
        console.quiet = notes.quiet = errors.quiet = True
    lost_rank = LostRankExit(int(rank) if rank.isdecimal() else 0)
    if "RANK" in os.environ:
        lost_rank.on_terminate()
    return lost_rank


def train_in_parts(
    lost_rank: LostRankExit, data: Any, model: str, config: Any, job: Any, out: Path, json: Path | None
) -> None:
    """Joins the other ranks and trains with them on a data set or a graph on disk; rank 0 prints and writes."""
    from asgat.data.dataset import Dataset
    from asgat.distributed.process_group import Group, ReportedByRankZeroError
    from asgat.distributed.shard import InMemory, check_distributed
    from asgat.distributed.trainer import run_distributed
    from asgat.memory import keep_freed_memory
    from asgat.training.runner import Callbacks

    data = data.to_dataset() if data.directed and not isinstance(data, Dataset) else data
    source = InMemory(data, config) if isinstance(data, Dataset) else data
    check_distributed(model, config, source)
    lost_rank.status = "the ranks joined"
    group = Group.join(job.device, lost_rank)
    if group.first:
        say(f"{model} on {source.name}: {source.num_nodes:,} nodes, {source.num_entries:,} entries, {group.size} ranks")
    try:
        with group.watched(), RunProgress(len(job.runs), config.epochs) as progress:
            callbacks = Callbacks(progress, progress.building, keep_freed_memory)
            result = run_distributed(source, model, config, group, job.runs, job.seed, out, job.fresh, callbacks, say)
    except AsgatError as error:
        if not group.first and not isinstance(error, ReportedByRankZeroError):
            print(printable(f"error: rank {group.rank}: {error}"), file=sys.stderr, flush=True)
        raise
    group.close()
    if not group.first:
        return
    result.pop("history", None)
    console.print(result_table(result))
    for rank, part in enumerate(result["rows"][-1].get("ranks", [])):
        say(
            f"rank {rank}: {part['nodes']:,} nodes, table {part['table_mb']:.0f} MiB, features "
            f"{part['features_mb']:.0f} MiB, {part['needed_rows']:,} rows from others to attend to, "
            f"{part['boundary_rows']:,} to filter, peak {part['peak_memory_mb']:,.0f} MiB"
        )
    say(f"run directory:   {out}")
    write_json(json, result)
