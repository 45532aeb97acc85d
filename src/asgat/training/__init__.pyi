from asgat.training.early_stopping import EarlyStopping as EarlyStopping
from asgat.training.loop import train as train
from asgat.training.run_directory import RunDirectory as RunDirectory
from asgat.training.run_directory import load_model as load_model
from asgat.training.run_state import RunResult as RunResult
from asgat.training.runner import Callbacks as Callbacks
from asgat.training.runner import run as run

__all__: list[str]
