"""Training: it drives any registered model on any data set and knows neither by name."""

from asgat.training.checkpoint import RunDirectory, load_model
from asgat.training.early_stopping import EarlyStopping
from asgat.training.runner import run
from asgat.training.trainer import RunResult, train

__all__ = ["EarlyStopping", "RunDirectory", "RunResult", "load_model", "run", "train"]
