"""The candidate table next to a graph on disk."""

from typing import cast

from asgat.config import SpectralConfig, TrainConfig
from asgat.disk.disk_graph import OnDiskGraph
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.nn.memory_plan import choose_form, table_settings
from asgat.tables.candidate_table import CandidateTable, Progress
from asgat.tables.table_cache import TableRecipe, rows_builder, tables_next_to


def store_table(graph: OnDiskGraph, config: TrainConfig, progress: Progress | None = None) -> CandidateTable:
    """Builds the table that a model with these settings needs, in the graph's folder; one that is there is taken.

    Memory: about 100 MiB, and the parts of the graph that the rows being built need, which are mapped. A build that was
    killed resumes.
    """
    if not isinstance(config, SpectralConfig) or graph.directed:
        raise AsgatError("Tables are for the ASGAT models on undirected graphs; leave out --table.")
    check_self_loops(config)
    form = choose_form(cast(Graph, graph), config)  # counts nodes and entries, and asks for nothing else
    if "table" not in form:
        raise AsgatError(f"These settings mean the {form} form, which has no table; --set form=table.")
    settings = table_settings(graph.num_nodes, config, form)
    recipe = TableRecipe(graph.graph_digest(), graph.num_nodes, graph.num_entries, settings)
    place = tables_next_to(graph.path)
    found = place.find(recipe)
    if found is not None:
        return found
    return place.build(recipe, rows_builder(recipe, graph.matrix()), progress)


def check_self_loops(config: TrainConfig) -> None:
    """Refuses settings that would change a graph on disk."""
    if config.self_loops != "keep":
        raise AsgatError(
            "A graph on disk has the self-loops it was converted with; set self_loops=keep, and convert it with "
            "--self-loops."
        )
