"""The commands of ``python -m reproduce``; options, output and errors are those of ``asgat``."""

import typer

from asgat.cli.app import Commands, root

app = typer.Typer(
    name="python -m reproduce",
    cls=Commands,
    callback=root,
    help="The paper's tables and figures, benchmarks, and models that the package does without.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
