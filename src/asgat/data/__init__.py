"""Data sets: the paper's, a few more, and some that need no files."""

from asgat.data.dataset import Dataset, Split
from asgat.data.datasets import (
    DATASETS,
    DatasetInfo,
    Statistics,
    dataset_names,
    get_info,
    load_dataset,
    statistics_of,
)
from asgat.data.splits import stratified_splits
from asgat.data.synthetic import contextual_sbm

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetInfo",
    "Split",
    "Statistics",
    "contextual_sbm",
    "dataset_names",
    "get_info",
    "load_dataset",
    "statistics_of",
    "stratified_splits",
]
