"""What the experiments share: what to train, where to write, and models that are trained once."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from asgat.config import ASGATConfig, TrainConfig
from asgat.data import Dataset, get_info, load_dataset
from asgat.data.dataset import Split
from asgat.data.download import data_directory
from asgat.errors import AsgatError
from asgat.files.atomic import write_atomic
from asgat.files.npz import open_npy
from asgat.files.raw_file import RawFile
from asgat.graph.graph import Ints
from asgat.nn.registry import model_spec
from asgat.recipe import FOUND, load_config, read_recipe
from asgat.training.inputs import make_inputs
from asgat.training.metrics import micro_f1
from asgat.training.run_directory import OtherSettingsError
from asgat.training.runner import Callbacks, model_sizes, run

SEEDS = (0, 1, 2)  # fixed before any result was seen
RUNS, QUICK_RUNS = 10, 2
QUICK_SETTINGS: dict[str, Any] = {"epochs": 40, "max_restarts": 0}
EVALUATED = ("asgat-cheb", "asgat-arma", "asgat-linear")  # models whose weights are examined after training
LONGEST_NAME = 100  # characters of the settings in a folder's name
REMEDY = "train again with --fresh"


class NoResultError(AsgatError):
    """An experiment has no data or no result; other experiments may have."""


@dataclass(frozen=True)
class Trained:
    """A model trained on the runs of a data set with one seed."""

    folder: Path
    dataset: Dataset
    model: str
    config: TrainConfig
    result: dict[str, Any]

    @property
    def runs(self) -> list[int]:
        return [row["run"] for row in self.result["rows"]]

    def split(self, run: int) -> Split:
        return self.dataset.splits[run if len(self.dataset.splits) > 1 else 0]

    def predictions(self, run: int) -> Ints:
        """The predicted class of every node."""
        return open_npy(self.folder / f"predictions-{run}.npy", REMEDY).astype(np.int64)

    def load(self, run: int, device: torch.device | str = "cpu") -> nn.Module:
        """The model of a run, in evaluation mode."""
        net = model_spec(self.model).make(self.config, *model_sizes(self.dataset).values())
        path = self.folder / f"weights-{run}.safetensors"
        try:
            net.load_state_dict(load(RawFile.read(path).content))
        except (AsgatError, SafetensorError, RuntimeError) as error:
            raise AsgatError(f"{path} does not hold the weights of this model; {REMEDY}.") from error
        return net.to(device).eval()

    def inputs(self, device: torch.device) -> tuple[Any, ...]:
        """The arguments of the model's ``forward``."""
        return make_inputs(self.dataset, self.model, self.config, device)

    def test_score(self, run: int, logits: Tensor) -> float:
        """Micro-F1 on the test nodes of a run."""
        test = self.split(run).test
        return micro_f1(self.dataset.y[test], logits.argmax(-1).cpu().numpy()[test])


@dataclass
class Study:
    """One call of ``python -m reproduce``."""

    out: Path  # folder of results, figures and run directories
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seeds: Sequence[int] = SEEDS  # of the trainings whose mean is reported
    quick: bool = False  # a few runs and epochs, to check that everything works; the numbers are not results
    data_dir: Path | None = None
    datasets: Sequence[str] | None = None  # instead of an experiment's own
    models: Sequence[str] | None = None  # instead of an experiment's own
    fresh: bool = False  # discard earlier runs
    progress: Callable[[str], None] = lambda _: None  # called with a description of what is being done
    skipped: dict[str, str] = field(default_factory=dict)  # data sets that were left out, and the reason
    failed: dict[str, str] = field(default_factory=dict)  # trainings that failed, and the reason
    _loaded: dict[str, Dataset] = field(default_factory=dict)
    _renewed: set[Path] = field(default_factory=set)  # run directories that this call has begun

    def __post_init__(self) -> None:
        if self.quick:
            self.seeds = self.seeds[:1]

    def select_datasets(self, own: Sequence[str], quick: Sequence[str], needed: bool = True) -> list[str]:
        """The user's data sets, or the experiment's own, or the quick ones; only those whose files are present."""
        names = list(self.datasets or (quick if self.quick else own))
        absent = [name for name in names if get_info(name).missing_files(None, self.data_dir)]
        folder = data_directory(self.data_dir)
        self.skipped.update({name: f"its files are not in {folder}" for name in absent})
        present = [name for name in names if name not in absent]
        if needed and not present:
            raise NoResultError(
                f"The files of {', '.join(names)} are not in {folder}; set ASGAT_DATA_DIR or --data-dir to the folder "
                "that has them, or download them with `asgat train NAME`."
            )
        return present

    def load(self, name: str) -> Dataset:
        if name not in self._loaded:
            self._loaded[name] = load_dataset(name, data_dir=self.data_dir)
        return self._loaded[name]

    def train(self, dataset: str, model: str, seed: int | None = None, **changes: Any) -> Trained | None:
        """A model trained on all runs of a data set, or the result of an earlier call; the first seed by default.

        Run i has that seed on split i; if there is one split, run i has seed ``10 * seed + i``, so that all trainings
        that are averaged have different seeds. ``changes`` are settings that differ from the recipe's. A training that
        fails gives None and is listed in ``failed``.
        """
        seed = self.seeds[0] if seed is None else seed
        try:
            return self._train(dataset, model, seed, changes)
        except OtherSettingsError:
            raise
        except (AsgatError, torch.OutOfMemoryError) as error:
            self.failed[f"{model} on {dataset}, seed {seed}"] = str(error).splitlines()[0]
            return None

    def train_all_seeds(self, dataset: str, model: str, **changes: Any) -> list[Trained] | None:
        """A model trained with every seed; None if one of the trainings fails."""
        found = [self.train(dataset, model, seed, **changes) for seed in self.seeds]
        trained = [one for one in found if one is not None]
        return trained if len(trained) == len(found) else None

    def _train(self, dataset: str, model: str, seed: int, changes: dict[str, Any]) -> Trained:
        data, recipe = self.load(dataset), study_config(dataset, model).to_dict()
        changes = {key: value for key, value in changes.items() if recipe[key] != ("none" if value is None else value)}
        config = study_config(dataset, model, **changes)
        if self.quick:
            config = config.replace(**QUICK_SETTINGS)
        variant = "".join(f"-{key}={value}" for key, value in changes.items())
        if len(variant) > LONGEST_NAME:
            variant = f"-{sha256(variant.encode()).hexdigest()[:12]}"  # config.toml holds the settings
        folder = self.out / ("runs-quick" if self.quick else "runs") / f"{dataset}-{model}{variant}-seed{seed}"
        what = f"{model}{variant} on {dataset}, seed {seed}"
        self.progress(what)
        keep_weights = model in EVALUATED and "k" not in changes  # the sweep over k trains hundreds and reads none

        def finished(i: int, state: dict[str, Tensor], inputs: tuple[Any, ...]) -> None:
            net = model_spec(model).make(config, *model_sizes(data).values())
            net.load_state_dict(state)
            with torch.no_grad():
                predicted = net.to(self.device).eval()(*inputs).argmax(-1).cpu().numpy()
            buffer = io.BytesIO()
            np.save(buffer, predicted.astype(np.int16))
            write_atomic(folder / f"predictions-{i}.npy", buffer.getvalue())
            if keep_weights:
                write_atomic(folder / f"weights-{i}.safetensors", save(state))

        callbacks = Callbacks(
            progress=lambda i, epoch: self.progress(f"{what}: run {i}, epoch {epoch.epoch}"),
            finished=finished,
            waiting=lambda: self.progress(f"{what}: waiting for another process that trains it"),
        )
        splits = len(data.splits)
        runs = range(min(splits if splits > 1 else RUNS, QUICK_RUNS if self.quick else RUNS))
        fresh = self.fresh and folder not in self._renewed
        self._renewed.add(folder)
        first = seed if splits > 1 else RUNS * seed
        result = run(data, model, config, runs, first, self.device, folder, fresh, callbacks)
        return Trained(folder, data, model, config, result)


def study_config(dataset: str, model: str, **changes: Any) -> TrainConfig:
    """A model's settings; a form of ASGAT without a recipe has those of asgat-cheb, but for the order of ARMA."""
    recipe, spec = read_recipe(dataset), model_spec(model)
    borrowed: dict[str, Any] = {}
    if spec.config is ASGATConfig and model not in recipe:
        own = {FOUND, *spec.fixed, *(("order",) if model == "asgat-arma" else ())}
        borrowed = {key: value for key, value in recipe.get("asgat-cheb", {}).items() if key not in own}
    return load_config(dataset, model, {**borrowed, **changes})
