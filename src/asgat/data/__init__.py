"""Data sets: the paper's, a few more, and some that need no files."""

from typing import TYPE_CHECKING

from asgat.lazy import lazy_names

if TYPE_CHECKING:
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

__getattr__ = lazy_names(
    __name__,
    {
        "DATASETS": "asgat.data.datasets",
        "Dataset": "asgat.data.dataset",
        "DatasetInfo": "asgat.data.datasets",
        "Split": "asgat.data.dataset",
        "Statistics": "asgat.data.datasets",
        "contextual_sbm": "asgat.data.synthetic",
        "dataset_names": "asgat.data.datasets",
        "get_info": "asgat.data.datasets",
        "load_dataset": "asgat.data.datasets",
        "statistics_of": "asgat.data.datasets",
        "stratified_splits": "asgat.data.splits",
    },
)
