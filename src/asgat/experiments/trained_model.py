"""Trained models, each trained once and shared by all experiments."""

import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from asgat.config import ASGATConfig, TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.errors import AsgatError
from asgat.experiments.reproduction import QUICK_SETTINGS, RUNS, Reproduction, cached_json
from asgat.files.atomic import write_atomic
from asgat.files.lock import LOCK_FILE, locked
from asgat.files.npz import open_npy
from asgat.files.raw_file import RawFile
from asgat.nn.registry import model_spec
from asgat.recipe import FOUND, load_config, read_recipe
from asgat.training.inputs import make_inputs
from asgat.training.metrics import micro_f1
from asgat.training.run_directory import OtherSettingsError
from asgat.training.runner import Callbacks, model_sizes, run

EVALUATED = ("asgat-cheb", "asgat-arma", "asgat-linear")  # models whose weights are examined after training
LONGEST_NAME = 100  # characters of the settings in a folder's name
REMEDY = "train again with --fresh"


@dataclass(frozen=True)
class TrainedModel:
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

    def predictions(self, run: int) -> npt.NDArray[np.int64]:
        """The predicted class of every node."""
        path = self.folder / "predictions" / f"{run}.npy"
        predicted = open_npy(path, REMEDY)
        if predicted.shape != self.dataset.y.shape or predicted.dtype.kind != "i":
            raise AsgatError(f"{path} does not hold a class for each of {self.dataset.num_nodes} nodes; {REMEDY}.")
        return predicted.astype(np.int64)

    def load(self, run: int, device: torch.device | str = "cpu") -> nn.Module:
        """The model of a run, in evaluation mode."""
        net = _build(self.dataset, self.model, self.config)
        path = self.folder / "weights" / f"{run}.safetensors"
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

    def cached(self, name: str, make: Callable[[], Any]) -> Any:
        """The value of ``make``, stored as JSON in the run directory and computed once."""
        return cached_json(self.folder / f"{name}.json", make)


def experiment_config(dataset: str, model: str, **changes: Any) -> TrainConfig:
    """A model's settings; a form of ASGAT without a recipe has those of asgat-cheb, but for the order of ARMA."""
    recipe, spec = read_recipe(dataset), model_spec(model)
    borrowed: dict[str, Any] = {}
    if spec.config is ASGATConfig and model not in recipe:
        own = {FOUND, *spec.fixed, *(("order",) if model == "asgat-arma" else ())}
        borrowed = {key: value for key, value in recipe.get("asgat-cheb", {}).items() if key not in own}
    return load_config(dataset, model, {**borrowed, **changes})


def load_or_train(reproduction: Reproduction, dataset: str, model: str, seed: int, **changes: Any) -> TrainedModel:
    """A model trained on all runs of a data set, or the result of an earlier call.

    Run i has seed ``seed`` on split i; if there is one split, run i has seed ``10 * seed + i``, so that all trainings
    that are averaged have different seeds. ``changes`` are settings that differ from the recipe's.
    """
    data = reproduction.load(dataset)
    recipe = experiment_config(dataset, model).to_dict()
    changes = {key: value for key, value in changes.items() if recipe[key] != ("none" if value is None else value)}
    config = experiment_config(dataset, model, **changes)
    if reproduction.quick:
        config = config.replace(**QUICK_SETTINGS)
    variant = "".join(f"-{key}={value}" for key, value in changes.items())
    if len(variant) > LONGEST_NAME:
        variant = f"-{sha256(variant.encode()).hexdigest()[:12]}"  # config.toml holds the settings
    folder = reproduction.runs_folder / f"{dataset}-{model}{variant}-seed{seed}"
    what = f"{model}{variant} on {dataset}, seed {seed}"

    def waiting() -> None:
        reproduction.progress(f"{what}: waiting for another process that trains it")

    if reproduction.must_renew(folder) and (folder / "config.toml").exists():
        with locked(folder, wait=True, waiting=waiting):
            _empty(folder)
    reproduction.progress(what)
    keep_weights = model in EVALUATED and "k" not in changes  # the sweep over k trains hundreds and reads none

    def finished(i: int, state: dict[str, Tensor], inputs: tuple[Any, ...]) -> None:
        net = _build(data, model, config)
        net.load_state_dict(state)
        with torch.no_grad():
            prediction = net.to(reproduction.device).eval()(*inputs).argmax(-1).cpu().numpy()
        buffer = io.BytesIO()
        np.save(buffer, prediction.astype(np.int16))
        write_atomic(folder / "predictions" / f"{i}.npy", buffer.getvalue())
        if keep_weights:
            write_atomic(folder / "weights" / f"{i}.safetensors", save(state))

    callbacks = Callbacks(
        progress=lambda i, epoch: reproduction.progress(f"{what}: run {i}, epoch {epoch.epoch}"),
        building=lambda done, rows: reproduction.progress(f"{what}: {done:,} of {rows:,} rows of the table"),
        finished=finished,
        counted=lambda done, runs: reproduction.progress(f"{what}: {done} of {runs} runs"),
        waiting=waiting,
    )
    first = seed if len(data.splits) > 1 else RUNS * seed
    result = run(data, model, config, reproduction.runs(data), first, reproduction.device, folder, callbacks=callbacks)
    return TrainedModel(folder, data, model, config, result)


def try_load_or_train(
    reproduction: Reproduction, dataset: str, model: str, seed: int, **changes: Any
) -> TrainedModel | None:
    """As :func:`load_or_train`, but a training that fails gives None and is listed in ``reproduction.failed``."""
    try:
        return load_or_train(reproduction, dataset, model, seed, **changes)
    except OtherSettingsError:
        raise
    except (AsgatError, torch.OutOfMemoryError) as error:
        reproduction.failed[f"{model} on {dataset}, seed {seed}"] = str(error).splitlines()[0]
        return None


def train_all_seeds(reproduction: Reproduction, dataset: str, model: str, **changes: Any) -> list[TrainedModel] | None:
    """A model trained with every seed; None if one of the trainings fails."""
    found = [try_load_or_train(reproduction, dataset, model, seed, **changes) for seed in reproduction.seeds]
    trained = [one for one in found if one is not None]
    return trained if len(trained) == len(found) else None


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK_FILE:
            path.unlink()


def _build(dataset: Dataset, model: str, config: TrainConfig) -> nn.Module:
    return model_spec(model).make(config, *model_sizes(dataset).values())
