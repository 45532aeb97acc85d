"""Every data set by name."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from asgat.data.dataset import Dataset
from asgat.data.dataset_info import DatasetInfo, FileReader, Statistics
from asgat.data.download import read_files
from asgat.data.geom_gcn import load_webgraph, webgraph_files
from asgat.data.heterophilous import heterophilous_files, load_heterophilous
from asgat.data.planetoid import load_planetoid, planetoid_files
from asgat.data.published_relations import PUBLISHED, read_relations
from asgat.data.synthetic import contextual_sbm
from asgat.data.toy import digits, karate
from asgat.errors import AsgatError, suggest

_GITHUB = "https://github.com"
_PLANETOID = FileReader(planetoid_files, load_planetoid)
_WEBGRAPH = FileReader(webgraph_files, load_webgraph)
_HETEROPHILOUS = FileReader(heterophilous_files, load_heterophilous)


def _planetoid(name: str, description: str, statistics: Statistics, note: str = "") -> DatasetInfo:
    source = f"{_GITHUB}/kimiyoung/planetoid"
    return DatasetInfo(name, description, source, ("full", "public", "geom-gcn"), statistics, _PLANETOID, note=note)


def _webgraph(name: str, description: str, statistics: Statistics, note: str = "") -> DatasetInfo:
    source = f"{_GITHUB}/graphdml-uiuc-jlu/geom-gcn"
    return DatasetInfo(name, description, source, ("geom-gcn",), statistics, _WEBGRAPH, note=note)


def _heterophilous(
    name: str,
    description: str,
    protocol: str,
    statistics: Statistics,
    metric: str = "micro_f1",
    note: str = "",
) -> DatasetInfo:
    source = f"{_GITHUB}/yandex-research/heterophilous-graphs"
    return DatasetInfo(name, description, source, (protocol,), statistics, _HETEROPHILOUS, metric, note)


_ENTRIES = (
    _planetoid("cora", "papers on machine learning that cite each other", Statistics(2708, 10556, 1433, 7, 0.825)),
    _planetoid(
        "citeseer",
        "papers on computer science that cite each other",
        Statistics(3327, 9228, 3703, 6, 0.706),
        note="15 nodes have neither features nor a label; they stay in the graph and are in no split.",
    ),
    _planetoid("pubmed", "papers on diabetes that cite each other", Statistics(19717, 88651, 500, 3, 0.792)),
    _webgraph("texas", "web pages of a computer science department", Statistics(183, 574, 1703, 5, 0.057)),
    _webgraph(
        "cornell",
        "web pages of a computer science department, as published",
        Statistics(183, 557, 1703, 5, 0.301),
        note="The published node file is a copy of Texas's: Cornell's edges, Texas's features and labels. "
        "Kept because the paper's results are on it; cornell-true is the real one.",
    ),
    _webgraph("wisconsin", "web pages of a computer science department", Statistics(251, 916, 1703, 5, 0.155)),
    _heterophilous("chameleon", "Wikipedia pages on chameleons", "geom-gcn", Statistics(2277, 62792, 2325, 5, 0.247)),
    _heterophilous("squirrel", "Wikipedia pages on squirrels", "geom-gcn", Statistics(5201, 396846, 2089, 5, 0.217)),
    _heterophilous(
        "chameleon-out",
        "Chameleon, pages joined by the pages they link to",
        "geom-gcn",
        Statistics(2277, 1228727, 2325, 5, 0.259),
        note="The direction of links, which chameleon leaves out; see asgat.graph.cocitation.",
    ),
    _heterophilous(
        "squirrel-out",
        "Squirrel, pages joined by the pages they link to",
        "geom-gcn",
        Statistics(5201, 8466545, 2089, 5, 0.219),
        note="The direction of links, which squirrel leaves out; see asgat.graph.cocitation.",
    ),
    _heterophilous(
        "chameleon-filtered",
        "Chameleon without its duplicate nodes",
        "masks",
        Statistics(890, 17708, 2325, 5, 0.244),
    ),
    _heterophilous(
        "minesweeper",
        "a board of 100 x 100 cells, some of them mines",
        "masks",
        Statistics(10000, 78804, 7, 2, 0.683),
        metric="roc_auc",
    ),
    _heterophilous(
        "cornell-true",
        "web pages of a computer science department, with Cornell's own features and labels",
        "masks",
        Statistics(183, 554, 1703, 5, 0.111),
        note="The real Cornell; see cornell for the one in the literature.",
    ),
    DatasetInfo(
        "csbm",
        "a random graph with a homophily dial, made on the spot",
        "generated",
        ("random",),
        Statistics(800, 2400, 64, 2, 0.191),
        contextual_sbm,
        note="β depends on the seed; the number here is for seed 0.",
    ),
    DatasetInfo(
        "digits",
        "handwritten digits, each joined to its ten nearest neighbours",
        "scikit-learn",
        ("random",),
        Statistics(1797, 24680, 64, 10, 0.951),
        digits,
    ),
    DatasetInfo(
        "karate",
        "the members of a karate club and the side each took when it split",
        "Zachary (1977)",
        ("random",),
        Statistics(34, 156, 34, 2, 0.888),
        karate,
    ),
)

DATASETS: dict[str, DatasetInfo] = {entry.name: entry for entry in _ENTRIES}


def dataset_names() -> list[str]:
    """All names, in the order they are shown."""
    return list(DATASETS)


def get_info(name: str) -> DatasetInfo:
    """The registry's entry of a name; an unknown one is an error that suggests the nearest."""
    if name not in DATASETS:
        raise AsgatError(f"There is no data set {name!r}. {suggest(name, dataset_names())}")
    return DATASETS[name]


def load_dataset(
    name: str, protocol: str | None = None, data_dir: Path | str | None = None, seed: int = 0, **options: Any
) -> Dataset:
    """A data set by name, downloaded first where its files are missing.

    Args:
        name: one of :func:`dataset_names`.
        protocol: how to split it; None is the paper's way. An entry of ``DATASETS`` lists what there is.
        data_dir: folder with the files; None is ``ASGAT_DATA_DIR`` or, without it, a per-user cache.
        seed: for generated data sets and random splits; published ones do not depend on it.
        options: passed to the function that generates the data set, such as ``homophily=0.5`` for ``"csbm"``.

    Example:
        >>> load_dataset("karate")
        Dataset('karate', nodes=34, entries=156, features=34, classes=2, splits=10, protocol='random')
    """
    info = get_info(name)
    protocol = info.check_protocol(protocol)
    for option in options:
        if option not in info.option_names():
            takes = f"It takes {', '.join(info.option_names())}." if info.option_names() else "It takes none."
            raise AsgatError(f"{name} has no option {option!r}. {takes}")
    if isinstance(info.origin, FileReader):
        dataset = info.origin.load(name, protocol, read_files(info.files(protocol), data_dir))
    else:
        dataset = info.origin(seed=seed, **options)
    if name in PUBLISHED:
        dataset = replace(dataset, relations=partial(read_relations, name, dataset.num_nodes, data_dir))
    return dataset if dataset.metric == info.metric else replace(dataset, metric=info.metric)
