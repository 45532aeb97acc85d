"""The commands of ``python -m reproduce``; options, output and errors are those of ``asgat``."""

from itertools import product
from json import loads
from pathlib import Path
from typing import Annotated

import typer

from asgat.cli import options
from asgat.cli.app import Commands, Examples, root
from asgat.cli.command import App
from asgat.cli.output import Row, check_writable, console, make_table, notes, resumable, say, write_json
from asgat.cli.train import compare, train
from asgat.errors import AsgatError, suggest
from reproduce.bench.commands import app as bench
from reproduce.experiment import EXPERIMENTS, TEXT, mean_std, run_experiment
from reproduce.strangers import GRAPHS

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


def differences(
    datasets: options.Datasets = "texas,cornell,wisconsin",
    models: options.Models = "asgat-cheb,asgat-exact",
    take: Annotated[str | None, typer.Option(help="What is taken over, as in 'ours,bias,filter and seeds'.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds; a data set with one split has ten trainings for each.", min=1)] = 3,
    device: options.Device = "auto",
    threads: options.Threads = None,
    data_dir: options.DataDir = None,
    json: options.Json = None,
) -> None:
    """Train the paper's forms with what the authors' program does differently, each difference alone or together.

    Rows that the JSON file already has are not measured again.
    """
    from asgat.data import load_dataset
    from reproduce.authors_program import ALIASES, DIFFERENCES, measure

    known = {*DIFFERENCES, *ALIASES}
    chosen = options.parse_names("--take", ",".join(["ours", *DIFFERENCES, "program"]) if take is None else take)
    for part in (part for what in chosen for part in what.split(" and ")):
        if part not in known:
            raise AsgatError(f"--take has no difference {part!r}. {suggest(part, sorted(known))}")
    place = options.check_device(device)
    rows = rows_of(json) if json is not None and json.is_file() else []
    asked = product(options.parse_names("--datasets", datasets), options.parse_names("--models", models), chosen)
    with notes.status("") as status:
        for dataset, model, what in asked:
            key = {"dataset": dataset, "model": model, "taken": what}
            if not any(key.items() <= row.items() for row in rows):
                status.update(", ".join(key.values()))
                rows.append({**key, **measure(load_dataset(dataset, data_dir=data_dir), model, what, seeds, place)})
                write_json(json, {"differences": DIFFERENCES, "rows": rows})
    cells = [
        (row["dataset"], row["model"], row["taken"], mean_std(row["test"], row["test_std"]), f"{100 * row['val']:.1f}",
         f"{row['lost']} of {row['runs']}") for row in rows
    ]  # fmt: skip
    headings = ("data set", "model", "taken over", "test", "validation", "lost")
    console.print(make_table("The authors' program: micro-F1 in percent", headings, cells, headings[:3]))


def rows_of(path: Path) -> list[Row]:
    """The rows of an earlier call."""
    try:
        rows: list[Row] = loads(path.read_bytes())["rows"]
    except (ValueError, LookupError, TypeError) as error:
        raise AsgatError(f"{path} does not hold rows of this command; choose another file.") from error
    return rows


def strangers(
    folder: Annotated[Path, typer.Argument(help="Folder of graphs: NAME.npz, or NAME/edges.csv and NAME/nodes.csv.")],
    graphs: Annotated[str, typer.Option(help="Their names, or those of data sets, as in texas or texas:3.")] = GRAPHS,
    repeats: Annotated[int, typer.Option(help="Of `asgat fit`.", min=1)] = 3,
    time_limit: Annotated[float, typer.Option(help="Of `asgat fit`, in minutes.")] = 10.0,
    seed: options.Seed = 0,
    json: options.Json = None,
) -> None:
    """Compare what `asgat fit` chooses on graphs that nobody tuned for with every entry of its leaderboard."""
    from reproduce.strangers import fit, mean_of_splits, verdict

    found: dict[str, Row] = {}
    for name in options.parse_names("--graphs", graphs):
        with notes.status(name):
            board = fit(name, folder, [f"--repeats={repeats}", f"--time-limit={time_limit}", f"--seed={seed}"])
        judged = verdict(board)
        found[name] = {"verdict": judged, "leaderboard": board}
        tested = [row for row in board["rows"] if row["test"] is not None]
        cells = [(row["name"], mean_std(row["test"][board["metric"]]), mean_std(row["val"])) for row in tested]
        cells.append(("what fit chose", f"{judged['test']:.1f}", "–"))
        near, above = ("" if judged[key] else "not " for key in ("near", "beats_guessing"))
        text = f"{near}near the best entry, {above}above guessing"
        console.print(make_table(name, ("entry", "test", "validation"), cells, ("entry",), caption=text))
        write_json(json, found)
    for name in dict.fromkeys(key.partition(":")[0] for key in found):
        boards = [one["leaderboard"] for key, one in found.items() if key.partition(":")[0] == name]
        if len(boards) > 1:
            means = sorted(mean_of_splits(boards).items(), key=lambda one: -one[1])
            say(f"{name}, mean of {len(boards)} splits: {', '.join(f'{entry} {mean:.1f}' for entry, mean in means)}")


for name, entry in EXPERIMENTS.items():
    add_experiment(name, [name], entry["question"])
add_experiment("all", list(EXPERIMENTS), "All of them, one after the other.")
COMPARISONS: Examples = {
    differences: "Example: python -m reproduce differences --models asgat-cheb --json differences.json",
    strangers: "Example: python -m reproduce strangers graphs --graphs reed98,texas:0 --json strangers.json",
}
for command, example in COMPARISONS.items():
    app.command(rich_help_panel="Comparisons", epilog=example)(command)
app.add_typer(bench, name="bench", rich_help_panel="Comparisons")
for command, words in ((train, "--model geom-gcn"), (compare, "--models gat,geom-gcn")):
    example = f"Example: python -m reproduce {command.__name__} texas {words}"
    app.command(rich_help_panel="Models that the installed package does without: geom-gcn", epilog=example)(command)
