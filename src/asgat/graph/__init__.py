"""Graphs and what is measured on them or added to them."""

from asgat.graph.graph import Graph, SelfLoops

__all__ = ["Graph", "SelfLoops"]
