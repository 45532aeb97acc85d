"""The command line: one module per group of commands."""

from asgat.cli.app import main

__all__ = ["main"]
