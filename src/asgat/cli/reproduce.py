"""``asgat reproduce``: the paper's tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from asgat.cli import options
from asgat.cli.output import check_writable, console, make_table, notes, resumable, say
from asgat.errors import AsgatError, suggest

NAMES = (
    "micro, macro, directed, heterophilous, heterophilic-nodes, sparsity, k-sweep, frequency, heads, heat, "
    "illustration, approximations, authors"
)
ALL = "all"


def reproduce(
    name: Annotated[str, typer.Argument(help=f"{NAMES}; or {ALL}.")],
    out: Annotated[Path, typer.Option(help="Folder for results and run directories.")] = Path("runs/reproduce"),
    quick: Annotated[bool, typer.Option("--quick", help="Few runs, epochs and data sets, to try it out.")] = False,
    datasets: Annotated[str | None, typer.Option(help="Data sets, separated by commas. Default: the paper's.")] = None,
    models: Annotated[str | None, typer.Option(help="Models for micro, macro and heterophilic-nodes.")] = None,
    seeds: Annotated[str, typer.Option(help="Seeds, as in 0-2 or 0,1.")] = "0,1,2",
    device: options.Device = "auto",
    deterministic: options.Deterministic = False,
    threads: options.Threads = None,
    fresh: options.Fresh = False,
    data_dir: options.DataDir = None,
) -> None:
    """Reproduce a table or figure of the paper: the paper's numbers next to ours.

    A stopped command resumes when it is started again. Data sets without files are skipped.
    """
    from asgat.data import get_info
    from asgat.experiments import paper
    from asgat.experiments.experiment import TEXT, run_experiment
    from asgat.experiments.index import EXPERIMENTS
    from asgat.experiments.reproduction import NoResultError, Reproduction
    from asgat.nn.registry import model_spec

    if name not in (*EXPERIMENTS, ALL):
        raise AsgatError(f"There is no experiment {name!r}. {suggest(name, [*EXPERIMENTS, ALL])}")
    place = options.check_device(device, deterministic)
    check_writable(out / "NAME.json")
    only_data = None if datasets is None else tuple(options.parse_names("--datasets", datasets))
    only_models = None if models is None else tuple(options.parse_names("--models", models))
    numbers = tuple(options.parse_numbers("--seeds", seeds))
    for one in only_data or ():
        if get_info(one).metric != "micro_f1":
            raise AsgatError(f"{one} is scored by ROC-AUC, the paper's tables by micro-F1; leave it out.")
    for one in only_models or ():
        model_spec(one)
    say(f"device: {place}")
    with resumable("Finished runs are saved"), notes.status("") as status:
        reproduction = Reproduction(out, place, numbers, quick, data_dir, only_data, only_models, fresh, status.update)
        if name == ALL:
            reproduction.select_datasets(paper.DATASETS, paper.DATASETS)  # raises if none of them is available
        for one in EXPERIMENTS if name == ALL else [name]:
            status.update(one)
            try:
                tables, files = run_experiment(EXPERIMENTS[one], reproduction)
            except NoResultError as error:
                if name != ALL:
                    raise
                say(f"skipped: {one}: {error}")
                continue
            for title, headings, rows, caption in tables:
                console.print(make_table(title, headings, rows, TEXT, headings, caption=caption))
            for what, why in (*reproduction.skipped.items(), *reproduction.failed.items()):
                say(f"skipped: {what}: {why}")
            for file in files:
                say(f"{one}: {file}")
    if quick:
        say("--quick: few runs and epochs on few data sets; these numbers are not results.", wrap=True)
