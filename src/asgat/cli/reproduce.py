"""``asgat reproduce``: the paper's tables and figures as a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asgat.cli.options import (
    DataDir,
    Deterministic,
    Device,
    Fresh,
    check_device,
    check_writable,
    console,
    errors,
    interrupted,
)
from asgat.errors import AsgatError, suggest

NAMES = (
    "micro",
    "macro",
    "heterophilic-nodes",
    "sparsity",
    "k-sweep",
    "frequency",
    "heads",
    "heat",
    "illustration",
    "approximations",
)
ALL = "all"


def reproduce(
    name: Annotated[str, typer.Argument(help=f"{', '.join(NAMES)}; or {ALL}.")],
    out: Annotated[
        Path, typer.Option(help="Folder for NAME.json, NAME.png and the run directories, which are kept and shared.")
    ] = Path("runs/reproduce"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Few runs, epochs and data sets: minutes on 2 cores, and no result.")
    ] = False,
    datasets: Annotated[
        str | None, typer.Option(help="Names from `asgat datasets`, with commas, in the place of its own.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Names from `asgat models`, with commas: micro, macro, heterophilic-nodes.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Seeds, with commas.")] = "0,1,2",
    device: Device = "cpu",
    deterministic: Deterministic = False,
    fresh: Fresh = False,
    data_dir: DataDir = None,
) -> None:
    """Make a table or figure of the paper anew: the paper's numbers and ours, side by side.

    A stopped command goes on where it stopped. Data sets whose files are not at hand are left out.
    """
    wanted = check_name(name)
    place = check_device(device, deterministic)
    check_writable(out / "NAME.json")
    from asgat.data import get_info
    from asgat.experiments import paper
    from asgat.experiments.experiment import run_experiment
    from asgat.experiments.index import EXPERIMENTS
    from asgat.experiments.reproduction import NoResultError, Reproduction
    from asgat.nn.registry import model_spec

    named, modelled = parts("--datasets", datasets), parts("--models", models)
    for one in named or ():
        if get_info(one).metric != "micro_f1":
            raise AsgatError(f"{one} is judged by ROC-AUC, the paper's tables by micro-F1; leave it out.")
    for one in modelled or ():
        model_spec(one)
    with errors.status("") as status:
        reproduction = Reproduction(
            out, place, parse_seeds(seeds), quick, data_dir, named, modelled, fresh, lambda text: status.update(text)
        )
        try:
            if name == ALL:
                reproduction.select_datasets(paper.DATASETS, paper.DATASETS)  # an error if no files are present
            for one in wanted:
                status.update(one)
                try:
                    tables, files = run_experiment(EXPERIMENTS[one], reproduction)
                except NoResultError as error:
                    if name != ALL:
                        raise
                    console.print(f"left out: {one}: {error}", highlight=False, markup=False, soft_wrap=True)
                    continue
                for table in tables:
                    console.print(table)
                for what, why in (*reproduction.skipped.items(), *reproduction.failed.items()):
                    console.print(f"left out: {what}: {why}", highlight=False, markup=False, soft_wrap=True)
                for file in files:
                    console.print(f"{one}: {file}", highlight=False, soft_wrap=True, markup=False, emoji=False)
        except KeyboardInterrupt:  # Typer would end in silence
            raise interrupted("Finished runs are kept") from None
    if quick:
        console.print("quick: few runs and epochs on few data sets; these numbers are no result.", highlight=False)


def check_name(name: str) -> list[str]:
    """The experiments a name stands for."""
    if name == ALL:
        return list(NAMES)
    if name not in NAMES:
        raise AsgatError(f"There is no experiment {name!r}. {suggest(name, [*NAMES, ALL])}")
    return [name]


def parts(option: str, text: str | None) -> tuple[str, ...] | None:
    """The parts of a list with commas, each once; None where it is not given."""
    if text is None:
        return None
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise AsgatError(f"{option} names nothing; give names with commas between them.")
    return found


def parse_seeds(text: str) -> tuple[int, ...]:
    found = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 9 for part in found):
        raise AsgatError(f"--seeds must be whole numbers with commas, such as 0,1,2, not {text!r}.")
    return tuple(dict.fromkeys(int(part) for part in found))
