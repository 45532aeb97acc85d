from typing import Any

import numpy as np
import pytest
import torch

from asgat.data import contextual_sbm
from asgat.disk.converter import write_graph
from asgat.disk.graph_table import store_table
from asgat.errors import AsgatError
from asgat.nn.from_config import make_operator
from asgat.nn.registry import make_config
from asgat.tables.table_settings import TableSettings

DATA = contextual_sbm(num_nodes=200, mean_degree=4.0, num_features=4, seed=0)
CONFIG: Any = make_config("asgat-cheb", form="table", builder="truncated", order=3, candidates=4, k=3)


def table_of(graph):
    operator: Any = make_operator(graph, CONFIG)
    return operator.table


@pytest.fixture
def graph(tmp_path):
    edges, _ = DATA.graph.edges_once()
    return write_graph(tmp_path / "g", [(*edges, None)], DATA.x, DATA.y)


def test_the_table_is_that_of_the_graph_in_memory_and_built_once(graph, monkeypatch):
    plain, seen = table_of(graph.to_dataset().graph), []
    stored = store_table(graph, CONFIG, lambda *progress: seen.append(progress))
    assert seen[-1] == (200, 200)
    assert torch.equal(stored.value, plain.value)
    monkeypatch.setattr(TableSettings, "build", None)  # nothing is built
    assert torch.equal(store_table(graph, CONFIG).index, plain.index)
    assert len(list((graph.path / "tables").iterdir())) == 1


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (make_config("gcn"), "Tables are for the ASGAT models"),
        (CONFIG.replace(self_loops="add"), "convert it with --self-loops"),
        (CONFIG.replace(form="dense"), "the dense form, which has no table"),
    ],
)
def test_settings_without_a_table_are_refused(graph, config, words):
    with pytest.raises(AsgatError, match=words):
        store_table(graph, config)


def test_a_directed_graph_has_none(tmp_path):
    edges, _ = DATA.graph.edges_once()
    graph = write_graph(tmp_path / "g", [(*edges, None)], DATA.x, np.asarray(DATA.y), directed=True)
    with pytest.raises(AsgatError, match="on undirected graphs"):
        store_table(graph, CONFIG)
