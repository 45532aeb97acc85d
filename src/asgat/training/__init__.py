"""How any model is trained on any data set."""

from asgat.training.early_stopping import EarlyStopping
from asgat.training.loop import train
from asgat.training.run_directory import RunDirectory, load_model
from asgat.training.run_state import RunResult
from asgat.training.runner import Callbacks, run

__all__ = ["Callbacks", "EarlyStopping", "RunDirectory", "RunResult", "load_model", "run", "train"]
