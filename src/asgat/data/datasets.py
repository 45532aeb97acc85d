"""Every data set by name."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import partial
from importlib.resources import files
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
# Source, protocols with the default first, and reader of the data sets of a family, or the function that generates one.
_FAMILIES: dict[str, tuple[str, tuple[str, ...], Any]] = {
    "planetoid": (
        f"{_GITHUB}/kimiyoung/planetoid",
        ("full", "public", "geom-gcn"),
        FileReader(planetoid_files, load_planetoid),
    ),
    "webgraph": (
        f"{_GITHUB}/graphdml-uiuc-jlu/geom-gcn",
        ("geom-gcn",),
        FileReader(webgraph_files, load_webgraph),
    ),
    "heterophilous": (
        f"{_GITHUB}/yandex-research/heterophilous-graphs",
        ("masks",),
        FileReader(heterophilous_files, load_heterophilous),
    ),
    "csbm": ("generated", ("random",), contextual_sbm),
    "digits": ("scikit-learn", ("random",), digits),
    "karate": ("Zachary (1977)", ("random",), karate),
}


def _read_entry(name: str, entry: dict[str, Any]) -> DatasetInfo:
    source, protocols, origin = _FAMILIES[entry.pop("family")]
    protocols, statistics = tuple(entry.pop("protocols", protocols)), Statistics(*entry.pop("statistics"))
    return DatasetInfo(name, source=source, protocols=protocols, statistics=statistics, origin=origin, **entry)


_ENTRIES = tomllib.loads((files("asgat.data") / "datasets.toml").read_text(encoding="utf-8"))
DATASETS: dict[str, DatasetInfo] = {name: _read_entry(name, entry) for name, entry in _ENTRIES.items()}


def dataset_names() -> list[str]:
    """All names, in the order they are shown."""
    return list(DATASETS)


def get_info(name: str) -> DatasetInfo:
    """The entry of a name; the error for an unknown one suggests the nearest."""
    if name not in DATASETS:
        raise AsgatError(f"There is no data set {name!r}. {suggest(name, dataset_names())}")
    return DATASETS[name]


def load_dataset(
    name: str, protocol: str | None = None, data_dir: Path | str | None = None, seed: int = 0, **options: Any
) -> Dataset:
    """A data set by name, downloaded first where its files are missing.

    Args:
        name: one of :func:`dataset_names`.
        protocol: how to split it, one of the entry's ``protocols``; None is the paper's way.
        data_dir: folder with the files; None is ``ASGAT_DATA_DIR`` or, without it, a per-user cache.
        seed: for generated data sets and random splits.
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
