"""Training: it drives any registered model on any data set and knows neither by name."""

from asgat.training.early_stopping import EarlyStopping
from asgat.training.run_directory import RunDirectory, load_model
from asgat.training.runner import run
from asgat.training.trainer import RunResult, train

__all__ = ["EarlyStopping", "RunDirectory", "RunResult", "load_model", "run", "train"]
