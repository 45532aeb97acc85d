from asgat.data.dataset import Dataset as Dataset
from asgat.data.dataset import Split as Split
from asgat.data.datasets import DATASETS as DATASETS
from asgat.data.datasets import DatasetInfo as DatasetInfo
from asgat.data.datasets import Statistics as Statistics
from asgat.data.datasets import dataset_names as dataset_names
from asgat.data.datasets import get_info as get_info
from asgat.data.datasets import load_dataset as load_dataset
from asgat.data.datasets import statistics_of as statistics_of
from asgat.data.splits import stratified_splits as stratified_splits
from asgat.data.synthetic import contextual_sbm as contextual_sbm

__all__: list[str]
