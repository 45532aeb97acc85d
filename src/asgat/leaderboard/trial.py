"""One candidate on one split: trained for a while, saved, and trained on."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from asgat.config import TrainConfig
from asgat.data.dataset import Dataset
from asgat.files.atomic import write_atomic
from asgat.files.raw_file import RawFile
from asgat.leaderboard.field import Candidate, count_parameters
from asgat.training.checkpoint import decode, encode, refusal
from asgat.training.inputs import make_features, prepare_graph
from asgat.training.objective import scores_of
from asgat.training.program import Task
from asgat.training.run_state import Outcome, Run, State
from asgat.training.runner import make_task, model_sizes

# Settings on which depends what a model prepares from the graph.
GRAPH_KEYS = (
    *("self_loops", "similar", "similar_weight", "space", "k", "heads", "operator", "order", "form", "candidates"),
    *("cap", "storage", "builder", "neighbourhood", "fit_error"),
)


class Workbench:
    """The inputs of all candidates on one data set: what several of them share is built once.

    Args:
        datasets: the data set as an undirected graph and, under True, with directed edges where there is one.
    """

    def __init__(self, datasets: dict[bool, Dataset], device: torch.device) -> None:
        self.datasets, self.device = datasets, device
        self._features: dict[Any, Any] = {}
        self._graphs: dict[Any, Any] = {}

    def task(self, candidate: Candidate, building: Any = None) -> Task:
        """What the trials of a candidate share."""
        dataset, config = self.datasets[candidate.directed], candidate.config
        values = config.to_dict()
        rows = candidate.directed, values["normalize_features"], values.get("adjacency"), values["self_loops"]
        if rows not in self._features:
            self._features[rows] = make_features(dataset, config, self.device)
        kind = "spectral" if "order" in values and "operator" in values else candidate.model
        attends = getattr(config, "attends", None)
        graph = kind, candidate.directed, attends, *(str(values.get(name)) for name in GRAPH_KEYS)
        if graph not in self._graphs:
            self._graphs[graph] = prepare_graph(dataset, candidate.model, config, self.device, building)
        inputs = self._features[rows], *self._graphs[graph]
        return make_task(dataset, candidate.model, config, self.device, inputs=inputs)

    def parameters(self, candidate: Candidate) -> int:
        """How many numbers a candidate learns."""
        sizes = model_sizes(self.datasets[candidate.directed])
        return count_parameters(candidate.model, candidate.config, **sizes)


@dataclass(eq=False)
class Trial:
    """A candidate's run on one split.

    Attributes:
        number: of the candidate in the field.
        fold: number of the split among those of :func:`~asgat.leaderboard.folds.fold_splits`.
        snapshot: the state from which an unfinished run is continued.
    """

    candidate: Candidate
    number: int
    fold: int
    run: Run
    snapshot: State = field(default_factory=dict, repr=False)

    @property
    def epochs(self) -> int:
        return len(self.run.history)

    @property
    def failed(self) -> bool:
        """Whether it diverged, or has not even had one epoch."""
        return not self.run.history or (self.run.diverged is not None and self.run.best is None)

    @property
    def score(self) -> float:
        """The validation score of the epoch that is kept so far; minus infinity if there is none."""
        if self.failed:
            return -np.inf
        if self.run.best is not None:
            return float(self.run.best["val_score"])
        return float(self.run.history[max(0, self.run.best_epoch - 1)].val_score)

    def weights(self) -> State:
        """The weights of the epoch that is kept so far."""
        return self.run.best_state or _part(self.snapshot, "kept.")

    def set_aside(self) -> bool:
        """Drops the snapshot except its weights, a quarter of it; False if there is nothing to drop."""
        kept = {name: value for name, value in self.snapshot.items() if name.startswith("kept.")}
        forgotten = len(kept) < len(self.snapshot)
        self.snapshot = kept
        return forgotten

    def take_up(self) -> None:
        """Starts again if its snapshot was dropped: there is more time than when it was set aside."""
        if not self.run.finished and self.run.history and not any(name.startswith("model.") for name in self.snapshot):
            self.run, self.snapshot = Run(self.run.job, self.run.baseline), {}

    def logits(self, task: Task) -> torch.Tensor:
        """What the weights that are kept so far give all nodes, [N, classes]."""
        return logits_of(task, self.run.job.config, self.weights())

    def outcome(self, task: Task) -> Outcome:
        """The result of its run; one that was cut off ends with the epoch that is kept so far."""
        if not self.run.finished:
            self.run.end_attempt(scores_of(self.logits(task), task.y, self.run.job.split, task.metric), self.weights())
        return self.run.outcome()


def _part(tensors: State, prefix: str) -> State:
    """The tensors whose names begin so, without the prefix."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


@torch.no_grad()
def logits_of(task: Task, config: TrainConfig, state: State) -> torch.Tensor:
    """What a trained model gives all nodes, [N, classes]."""
    model = task.example(config).to(task.y.device)
    model.load_state_dict(state)
    logits: torch.Tensor = model.eval()(*task.inputs)
    return logits


def to_probability(logits: torch.Tensor) -> npt.NDArray[np.float64]:
    return np.asarray(torch.softmax(logits.double(), dim=-1).cpu().numpy())


@dataclass(frozen=True)
class TrialStore:
    """Trials in files of a folder, one each, so that a stopped leaderboard can continue; without a folder, none."""

    folder: Path | None
    device: str
    data: str  # digest of the data set

    def _path(self, trial: Trial) -> Path:
        assert self.folder is not None
        return self.folder / f"{trial.run.job.run}-{trial.number}-{trial.fold}.safetensors"

    def save(self, trials: Sequence[Trial]) -> None:
        if self.folder is not None:
            for trial in trials:
                write_atomic(self._path(trial), encode([(trial.run, trial.snapshot)], self.device, self.data))

    def restore(self, trial: Trial) -> Trial:
        """The trial as it was saved, or as it is."""
        if self.folder is None or not (path := self._path(trial)).exists():
            return trial
        saved = decode(RawFile.read(path).content, path, self.device, self.data)
        found = saved.get((trial.run.job.run, trial.run.job.member, trial.run.job.seed))
        if found is None:  # of another kind of device
            return trial
        values, tensors = found
        try:
            trial.run.restore(values)
        except (ValueError, KeyError, TypeError) as error:
            raise refusal(path, error) from error
        trial.run.best_state = _part(tensors, "best.")
        snapshot = {name: value for name, value in tensors.items() if not name.startswith("best.")}
        return replace(trial, snapshot=snapshot)

    def clear(self) -> None:
        """Removes the files, and the folder if nothing else is in it."""
        if self.folder is not None and self.folder.is_dir():
            for path in self.folder.glob("*.safetensors"):
                path.unlink(missing_ok=True)
            if not any(self.folder.iterdir()):
                self.folder.rmdir()
