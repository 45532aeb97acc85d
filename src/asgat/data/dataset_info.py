"""What is known about a data set before it is loaded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asgat.data.dataset import Dataset
from asgat.data.download import missing_files
from asgat.errors import AsgatError
from asgat.files.raw_file import RawFile
from asgat.graph.homophily import beta


@dataclass(frozen=True)
class Statistics:
    """Sizes of a data set. Entries are those stored after symmetrising, two per edge and one per self-loop; beta is
    the paper's β, to three digits."""

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
    """The registry's entry for a data set.

    Args:
        name: its name for :func:`~asgat.data.load_dataset`.
        description: one line for people.
        source: where it comes from.
        protocols: ways to split it, the default (the paper's) first.
        statistics: its sizes; for generated data sets, with the default options.
        origin: a reader of files, or a function that generates the data set from a seed and options.
        metric: ``"micro_f1"`` or ``"roc_auc"``.
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

    @property
    def default_protocol(self) -> str:
        return self.protocols[0]

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
        return protocol or self.default_protocol

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
