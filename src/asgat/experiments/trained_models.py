"""Trainings, each made once whichever experiment asks first, with what the others need of them."""

from __future__ import annotations

import io
import json
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

from asgat.config import TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.errors import AsgatError
from asgat.experiments.reproduction import QUICK_SETTINGS, RUNS, Reproduction
from asgat.files.atomic import to_json, write_atomic
from asgat.files.lock import LOCK_FILE, locked
from asgat.nn.registry import model_spec
from asgat.recipe import FOUND, load_config, read_recipe
from asgat.training.inputs import make_inputs
from asgat.training.run_directory import OtherSettingsError
from asgat.training.runner import Callbacks, run

EVALUATED = ("asgat-cheb", "asgat-arma", "asgat-linear")  # models whose weights are looked at after training
LONG = 100  # characters that a list of settings may have in the name of a folder


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

    def predictions(self, run: int) -> npt.NDArray[np.int64]:
        """The class this run's model gives every node."""
        return np.asarray(np.load(io.BytesIO(self._read(f"predictions/{run}.npy"))), dtype=np.int64)

    def load(self, run: int, device: torch.device | str = "cpu") -> nn.Module:
        """This run's model, ready to be evaluated."""
        net = _build(self.dataset, self.model, self.config)
        content = self._read(f"weights/{run}.safetensors")
        try:
            net.load_state_dict(load(content))
        except (SafetensorError, RuntimeError) as error:
            raise AsgatError(f"{self.folder} holds other weights than this model's; --fresh trains anew.") from error
        return net.to(device).eval()

    def inputs(self, device: torch.device) -> tuple[Any, ...]:
        return make_inputs(self.dataset, self.model, self.config, device)

    def remembered(self, name: str, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, kept in a file of the run directory: made once."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            write_atomic(path, to_json(make()))
        return json.loads(path.read_bytes())

    def _read(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise AsgatError(f"{self.folder / name} cannot be read: {error.strerror}; --fresh trains anew.") from error


def config_of(dataset: str, model: str, **changes: Any) -> TrainConfig:
    """A model's settings for a data set; a form of ASGAT the recipe has none for takes those of asgat-cheb.

    The order is left out where it means something else: that of ARMA is its expansion's.
    """
    recipe, spec = read_recipe(dataset), model_spec(model)
    borrowed: dict[str, Any] = {}
    if model.startswith("asgat-") and model not in recipe:
        own = {FOUND, *spec.fixed, *(("order",) if model == "asgat-arma" else ())}
        borrowed = {key: value for key, value in recipe.get("asgat-cheb", {}).items() if key not in own}
    return load_config(dataset, model, {**borrowed, **changes})


def train(study: Reproduction, dataset: str, model: str, seed: int, **changes: Any) -> Trained:
    """A model trained on all runs of a data set, or what an earlier call made of it.

    Run i has seed ``seed`` on split i; where there is one split, run i has seed ``10 * seed + i``, so that no two of
    the trainings that are averaged are the same.

    Args:
        study: where and how.
        dataset: its name.
        model: its name.
        seed: the seed.
        changes: settings other than the recipe's.
    """
    data = study.load(dataset)
    recipe = config_of(dataset, model).to_dict()
    changes = {key: value for key, value in changes.items() if recipe[key] != ("none" if value is None else value)}
    config = config_of(dataset, model, **changes)
    if study.quick:
        config = config.replace(**QUICK_SETTINGS)
    variant = "".join(f"-{key}={value}" for key, value in changes.items())
    if len(variant) > LONG:
        variant = f"-{sha256(variant.encode()).hexdigest()[:12]}"  # its config.toml says what it stands for
    folder = study.runs_folder / f"{dataset}-{model}{variant}-seed{seed}"
    what = f"{model}{variant} on {dataset}, seed {seed}"

    def waiting() -> None:
        study.say(f"{what}: waiting for another process that trains it")

    if study.fresh and folder not in study.begun and (folder / "config.toml").exists():
        with locked(folder, wait=True, waiting=waiting):
            _empty(folder)  # with all that was remembered of it
    study.begun.add(folder)
    study.say(what)
    weights = model in EVALUATED and "k" not in changes  # not those of the sweep over k: hundreds, never read

    def keep(i: int, state: dict[str, Tensor], inputs: tuple[Any, ...]) -> None:
        net = _build(data, model, config)
        net.load_state_dict(state)
        with torch.no_grad():
            prediction = net.to(study.device).eval()(*inputs).argmax(-1).cpu().numpy()
        buffer = io.BytesIO()
        np.save(buffer, prediction.astype(np.int16))
        write_atomic(folder / "predictions" / f"{i}.npy", buffer.getvalue())
        if weights:
            write_atomic(folder / "weights" / f"{i}.safetensors", save(state))

    result = run(
        data,
        model,
        config,
        study.runs(data),
        seed if len(data.splits) > 1 else RUNS * seed,
        study.device,
        folder,
        callbacks=Callbacks(
            progress=lambda i, epoch: study.say(f"{what}: run {i}, epoch {epoch.epoch}"),
            building=lambda done, rows: study.say(f"{what}: {done:,} of {rows:,} rows of the table"),
            finished=keep,
            counted=lambda done, runs: study.say(f"{what}: {done} of {runs} runs"),
            waiting=waiting,
        ),
    )
    return Trained(folder, data, model, config, result)


def try_train(study: Reproduction, dataset: str, model: str, seed: int, **changes: Any) -> Trained | None:
    """The same, or None where it cannot be done, which ``study.failed`` then tells: one model must not stop the rest.

    Raises:
        OtherSettingsError: the folder of the run holds another one.
    """
    try:
        return train(study, dataset, model, seed, **changes)
    except OtherSettingsError:
        raise
    except (AsgatError, torch.OutOfMemoryError) as error:
        study.failed[f"{model} on {dataset}, seed {seed}"] = str(error).splitlines()[0]
        return None


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK_FILE:
            path.unlink()


def _build(dataset: Dataset, model: str, config: TrainConfig) -> nn.Module:
    return model_spec(model).make(config, dataset.num_features, dataset.num_classes, dataset.num_nodes)
