"""How any model is trained on any data set."""

from typing import TYPE_CHECKING

from asgat.lazy import lazy_names

if TYPE_CHECKING:
    from asgat.training.early_stopping import EarlyStopping
    from asgat.training.loop import train
    from asgat.training.run_directory import RunDirectory, load_model
    from asgat.training.run_state import RunResult
    from asgat.training.runner import Callbacks, run

__all__ = ["Callbacks", "EarlyStopping", "RunDirectory", "RunResult", "load_model", "run", "train"]

__getattr__ = lazy_names(
    __name__,
    {
        "Callbacks": "asgat.training.runner",
        "EarlyStopping": "asgat.training.early_stopping",
        "RunDirectory": "asgat.training.run_directory",
        "RunResult": "asgat.training.run_state",
        "load_model": "asgat.training.run_directory",
        "run": "asgat.training.runner",
        "train": "asgat.training.loop",
    },
)
