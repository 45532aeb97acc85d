"""Every data set by name, with what is known about it before it is loaded."""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from asgat.data.dataset import Dataset
from asgat.data.download import data_directory, missing_files, read_files
from asgat.data.geom_gcn import load_webgraph, webgraph_files
from asgat.data.heterophilous import heterophilous_files, load_heterophilous
from asgat.data.planetoid import load_planetoid, planetoid_files
from asgat.data.synthetic import contextual_sbm
from asgat.data.toy import digits, karate
from asgat.errors import AsgatError, suggest
from asgat.files.raw_file import RawFile
from asgat.graph.homophily import beta


@dataclass(frozen=True)
class Statistics:
    """Sizes of a data set. Entries are those of the adjacency matrix, two per undirected edge and one per self-loop or
    directed edge; beta is the paper's β, to three digits."""

    nodes: int
    entries: int
    features: int
    classes: int
    beta: float


@dataclass(frozen=True)
class FileReader:
    """How a family of published data sets is read: the files a protocol needs, and the function that loads them."""

    files: Callable[[str, str], tuple[str, ...]]
    load: Callable[[str, str, Mapping[str, RawFile]], Dataset]


@dataclass(frozen=True)
class DatasetInfo:
    """What is known about a data set.

    Args:
        protocols: ways to split it, the default (the paper's) first.
        statistics: its sizes; for generated data sets, with the default options.
        origin: a reader of files, or a function that generates the data set from a seed and options.
        note: what users should know.
    """

    name: str
    description: str
    source: str
    protocols: tuple[str, ...]
    statistics: Statistics
    origin: FileReader | Callable[..., Dataset]
    metric: str = "micro_f1"
    note: str = ""

    def files(self, protocol: str | None = None) -> tuple[str, ...]:
        """Names of the files it needs below the data directory; none if it is generated."""
        protocol = self.check_protocol(protocol)
        return self.origin.files(self.name, protocol) if isinstance(self.origin, FileReader) else ()

    def missing_files(self, protocol: str | None = None, data_dir: Path | str | None = None) -> list[str]:
        """Those of its files that would have to be downloaded."""
        return missing_files(self.files(protocol), data_dir)

    def check_protocol(self, protocol: str | None) -> str:
        """The protocol itself, or the default for None; the error for an unknown one lists those there are."""
        if protocol is not None and protocol not in self.protocols:
            raise AsgatError(
                f"{self.name} has no protocol {protocol!r}; it has {', '.join(self.protocols)}. "
                "Choose one of these, or none for the first."
            )
        return protocol or self.protocols[0]

    def option_names(self) -> list[str]:
        """The options it takes in addition to a seed; none if it is read from files."""
        if isinstance(self.origin, FileReader):
            return []
        return [name for name in inspect.signature(self.origin).parameters if name != "seed"]


def statistics_of(dataset: Dataset) -> Statistics:
    """The sizes of a loaded data set.

    For β, nodes without a label count as class 0, as in the published figures. Only CiteSeer's 15 make a difference:
    0.706 instead of 0.710, which is :func:`asgat.graph.homophily.beta` of the labelled nodes.
    """
    return Statistics(
        nodes=dataset.num_nodes,
        entries=dataset.graph.num_entries,
        features=dataset.num_features,
        classes=dataset.num_classes,
        beta=round(beta(dataset.graph, np.maximum(dataset.y, 0)), 3),
    )


# Source, protocols with the default first, and reader of the data sets of a family, or the function that generates one.
_GITHUB = "https://github.com"
_PLANETOID = FileReader(planetoid_files, load_planetoid)
_WEBGRAPH = FileReader(webgraph_files, load_webgraph)
_HETEROPHILOUS = FileReader(heterophilous_files, load_heterophilous)
_FAMILIES: dict[str, tuple[str, tuple[str, ...], Any]] = {
    "planetoid": (f"{_GITHUB}/kimiyoung/planetoid", ("full", "public", "geom-gcn"), _PLANETOID),
    "webgraph": (f"{_GITHUB}/graphdml-uiuc-jlu/geom-gcn", ("geom-gcn",), _WEBGRAPH),
    "heterophilous": (f"{_GITHUB}/yandex-research/heterophilous-graphs", ("masks",), _HETEROPHILOUS),
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
            raise AsgatError(f"{name} has no option {option!r}. It takes {', '.join(info.option_names()) or 'none'}.")
    if isinstance(info.origin, FileReader):
        dataset = info.origin.load(name, protocol, read_files(info.files(protocol), data_dir))
        dataset = replace(dataset, data_dir=data_directory(data_dir))
    else:
        dataset = info.origin(seed=seed, **options)
    return replace(dataset, metric=info.metric)
