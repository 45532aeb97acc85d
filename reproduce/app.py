"""The commands of ``python -m reproduce``; options, output and errors are those of ``asgat``."""

from pathlib import Path
from typing import Annotated

import typer

from asgat.cli import options
from asgat.cli.app import Commands, root
from asgat.cli.command import App
from asgat.cli.output import check_writable, console, make_table, notes, resumable, say
from asgat.cli.train import compare, train
from asgat.errors import AsgatError
from reproduce.bench.commands import app as bench
from reproduce.experiment import EXPERIMENTS, TEXT, run_experiment

app = App(
    name="python -m reproduce",
    cls=Commands,
    callback=root,
    help="The paper's tables and figures, benchmarks, and models that the package does without.",
    epilog="Examples:  python -m reproduce micro --quick  ·  python -m reproduce frequency --device cuda",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def add_experiment(name: str, names: list[str], question: str) -> None:
    @app.command(
        name,
        help=f"{question}\n\nA stopped command resumes when it is started again. Data sets without files are skipped.",
        short_help=question,
        epilog=f"Example: python -m reproduce {name} --quick",
        rich_help_panel="Tables and figures",
    )
    def experiment(
        out: Annotated[Path, typer.Option(help="Folder for results and run directories.")] = Path("runs/reproduce"),
        quick: Annotated[bool, typer.Option("--quick", help="Few runs, epochs and data sets, to try it out.")] = False,
        datasets: Annotated[str | None, typer.Option(help="Data sets, separated by commas.")] = None,
        models: Annotated[str | None, typer.Option(help="Models for micro, macro and heterophilic-nodes.")] = None,
        seeds: Annotated[str, typer.Option(help="Seeds, as in 0-2 or 0,1.")] = "0,1,2",
        device: options.Device = "auto",
        deterministic: options.Deterministic = False,
        threads: options.Threads = None,
        fresh: options.Fresh = False,
        data_dir: options.DataDir = None,
    ) -> None:
        from asgat.data import get_info
        from asgat.nn.registry import model_spec
        from reproduce.study import NoResultError, Study

        place = options.check_device(device, deterministic)
        check_writable(out / "NAME.json")
        only_data = None if datasets is None else options.parse_names("--datasets", datasets)
        only_models = None if models is None else options.parse_names("--models", models)
        for one in only_data or ():
            if get_info(one).metric != "micro_f1" and name != "heterophilous":
                raise AsgatError(f"{one} is scored by ROC-AUC, the paper's tables by micro-F1; leave it out.")
        for one in only_models or ():
            model_spec(one)
        say(f"device: {place}")
        numbers = options.parse_numbers("--seeds", seeds)
        with resumable("Finished runs are saved"), notes.status("") as status:
            study = Study(out, place, numbers, quick, data_dir, only_data, only_models, fresh, status.update)
            for one in names:
                status.update(one)
                try:
                    tables, files = run_experiment(one, study)
                except NoResultError as error:
                    if len(names) == 1:
                        raise
                    say(f"skipped: {one}: {error}")
                    continue
                for title, headings, rows, caption in tables:
                    console.print(make_table(title, headings, rows, TEXT, headings, caption=caption))
                for what, why in (*study.skipped.items(), *study.failed.items()):
                    say(f"skipped: {what}: {why}")
                for file in files:
                    say(f"{one}: {file}")
        if quick:
            say("--quick: few runs and epochs on few data sets; these numbers are not results.", wrap=True)


for name, entry in EXPERIMENTS.items():
    add_experiment(name, [name], entry["question"])
add_experiment("all", list(EXPERIMENTS), "All of them, one after the other.")
app.add_typer(bench, name="bench", rich_help_panel="Benchmarks")
for command, words in ((train, "--model geom-gcn"), (compare, "--models gat,geom-gcn")):
    example = f"Example: python -m reproduce {command.__name__} texas {words}"
    app.command(rich_help_panel="Models that the installed package does without: geom-gcn", epilog=example)(command)
