"""The command line: every command prints a table and, with ``--json``, writes the same numbers to a file."""

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from asgat.cli.command import App
from asgat.cli.convert import convert
from asgat.cli.explain import explain, report
from asgat.cli.fit import fit, predict
from asgat.cli.models import datasets, models
from asgat.cli.output import begin_output, console, detail, end_output, print_error, printable
from asgat.cli.runs import runs
from asgat.cli.streams import checked_streams
from asgat.cli.train import compare, train
from asgat.cli.tune import tune
from asgat.distributed.launcher import report_to_launcher
from asgat.errors import AsgatError, hardware_error
from asgat.threads import wait_passively

OUTPUT = ("--quiet", "-q", "--verbose", "-v")  # options of all commands


class Commands(TyperGroup):
    """The options of all commands may stand before a command or after it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        moved = [word for word in args[:end] if word in OUTPUT]
        return super().parse_args(ctx, [*moved, *(word for word in args[:end] if word not in OUTPUT), *args[end:]])


app = App(
    name="asgat",
    cls=Commands,
    help="Adaptive spectral graph attention: node classification on graphs of any homophily.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
# Commands in the order of the help, and examples of their use.
Examples = dict[Callable[..., None], str]
YOUR_GRAPH: Examples = {
    fit: "Examples:  asgat fit --edges edges.csv --nodes nodes.csv --label kind --out runs/mine  ·  "
    "asgat fit --edges graph.npz --label y --preset quick --metric macro_f1 --repeats 3  ·  "
    "asgat fit --edges graph.npz --label y --model gcn --set hidden=32  ·  "
    "asgat fit --edges edges.csv --nodes nodes.csv --label kind --recipe recipe.toml",
    predict: "Example: asgat predict runs/mine --edges edges.csv --nodes nodes.csv -o predictions.csv",
    explain: "Example: asgat explain runs/csbm-asgat-cheb-seed0 --node 17 --json explained.json",
    report: "Example: asgat report runs/csbm-asgat-cheb-seed0",
    runs: "Examples:  asgat runs  ·  asgat runs runs/demo --json -",
    convert: "Example: asgat convert edges.csv web --features x.npy --labels y.npy --order rcm",
}
BENCHMARKS: Examples = {
    datasets: "Example: asgat datasets --json datasets.json",
    models: "Examples:  asgat models  ·  asgat models gat --json gat.json",
    train: "Examples:  asgat train  ·  asgat train texas --splits 0-2 --set k=8 --set dropout=0.2  ·  "
    "asgat train cora --model gcn --json result.json",
    compare: "Examples:  asgat compare texas --models mlp,gcn,asgat-cheb --json comparison.json  ·  "
    "asgat compare --edges edges.csv --nodes nodes.csv --label kind --models mlp,gcn,linkx --splits 0-2",
    tune: "Examples:  asgat tune texas --model asgat-plus --trials 100 --set root=true  ·  "
    "asgat tune --edges edges.csv --nodes nodes.csv --label kind --model linkx --trials 20 --splits 0-2",
}
for title, commands in {"Your graph": YOUR_GRAPH, "Benchmarks": BENCHMARKS}.items():
    for command, examples in commands.items():
        app.command(rich_help_panel=title, epilog=examples)(command)


def main(commands: Callable[..., Any] = app) -> None:
    """Runs a command line, this one by default; bad input is reported in a sentence with exit code 2."""
    wait_passively()
    with checked_streams():
        _run(commands)


def _run(commands: Callable[..., Any]) -> None:
    start = perf_counter()
    begin_output()
    try:
        commands(standalone_mode=True)
    except AsgatError as error:
        fail(str(error))
    except (RuntimeError, MemoryError) as error:
        sentence = hardware_error(error)
        if sentence is None:
            raise
        fail(sentence)
    finally:
        detail(f"{perf_counter() - start:.1f} s")
        end_output()


def fail(sentence: str) -> NoReturn:
    print_error(sentence)
    report_to_launcher(printable(sentence))
    sys.exit(2)


def print_version(wanted: bool) -> None:
    if wanted:
        from asgat import __version__

        console.print(__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=print_version)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print settings, device and times too.")] = False,
) -> None:
    if quiet and verbose:
        raise AsgatError("--quiet and --verbose contradict each other; give one of them.")
    begin_output(quiet, verbose)
