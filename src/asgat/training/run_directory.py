"""The run directory: plain files, written whole or not at all, readable without this package."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import nn

from asgat.config import TrainConfig
from asgat.errors import AsgatError, brief, shown
from asgat.files.atomic import TEMPORARY, read_toml, to_json, to_toml, write_all, write_atomic
from asgat.files.raw_file import RawFile, check_regular
from asgat.nn.registry import make_config, model_spec
from asgat.training.run_files import CONFIG, METRICS, MODEL, RESULT, RUN_FILES, UNFINISHED, read_result
from asgat.training.run_state import Epoch, State

PARTNERS = "partners"  # models whose probabilities are averaged with those of the saved one


class OtherSettingsError(AsgatError):
    """A run directory holds a run with other settings, or of other data."""


class RunDirectory:
    """A folder with ``config.toml``, ``metrics.jsonl``, ``result.json`` and ``model.safetensors``.

    ``result.json`` is written again after every finished run (one split or seed): started again with the same settings,
    a killed command takes the finished ones over. Unfinished runs are in ``unfinished.safetensors``, as of at most half
    a minute ago. Whoever writes holds the folder's lock. A folder that does not exist is made.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._model_sha256: str | None = None  # of the model that the runs so far left behind

    def begin(self, settings: Mapping[str, Any], fresh: bool = False) -> list[dict[str, Any]]:
        """Writes the settings and returns the finished runs of an earlier start with the same settings.

        Raises:
            OtherSettingsError: the folder holds a run with other settings, or of other data.
            AsgatError: it holds something else, or cannot be written.
        """
        self._sweep()
        config = self.path / CONFIG
        if not fresh and config.exists():
            self._check_settings(settings, _with_current_settings(read_toml(config)))
            return self._finished_runs(settings) if (self.path / RESULT).exists() else []
        strange = [name for name in RUN_FILES if not fresh and (self.path / name).exists()]
        if strange:
            raise AsgatError(
                f"{self.path} holds {', '.join(strange)} but no {CONFIG}, so it is not an asgat run directory; "
                "choose another --out, or --fresh to replace these files."
            )
        self.clear()
        write_atomic(config, to_toml(settings).encode())
        return []

    def clear(self) -> None:
        """Removes the files of a run."""
        for name in RUN_FILES:
            try:
                (self.path / name).unlink(missing_ok=True)
            except OSError as error:
                raise AsgatError(f"{self.path / name} cannot be removed: {error.strerror}.") from error

    def _finished_runs(self, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
        result = self.read_result()
        strange = [row["run"] for row in result["rows"] if row["run"] not in settings["runs"]]
        if strange:
            raise AsgatError(
                f"{self.path / RESULT} is damaged: it has a row of run {strange[0]}, but the runs are "
                f"{shown(settings['runs'])}. Train again with --fresh."
            )
        self._model_sha256 = result.get("model_sha256")
        return list(result["rows"])

    def _check_settings(self, settings: Mapping[str, Any], earlier: Mapping[str, Any]) -> None:
        now, then = _flat(settings), _flat(earlier)
        then.setdefault("data", now.get("data"))  # version 0.1 did not write it
        differing = [key for key in now if now[key] != then.get(key)] + [key for key in then if key not in now]
        what = f"with other settings ({', '.join(differing)})"
        if differing == ["data"]:
            what = "of other data: graph, features, labels or splits have changed since"
        if differing:
            raise OtherSettingsError(f"{self.path} holds a run {what}; choose another --out, or --fresh to replace it.")

    def _sweep(self) -> None:
        """Removes files a killed process left half-written; whoever holds the lock is the only one who writes here."""
        for path in self.path.glob(".*"):
            if TEMPORARY.fullmatch(path.name):
                with suppress(OSError):
                    path.unlink()

    def read_result(self) -> dict[str, Any]:
        """What ``result.json`` holds; refused if it is damaged."""
        return read_result(self.path)

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Writes the result of the runs so far, and the SHA-256 of the model they left behind."""
        model = self.path / MODEL
        if self._model_sha256 is None and model.exists():  # of a run that version 0.1 began
            self._model_sha256 = sha256(model.read_bytes())
        write_atomic(self.path / RESULT, to_json({**result, "model_sha256": self._model_sha256}))

    def add_run(
        self,
        row: Mapping[str, Any],
        history: Sequence[Epoch],
        done: Sequence[Mapping[str, Any]],
        state: State,
        metadata: Mapping[str, Any],
    ) -> None:
        """Adds the epochs of a finished run and, if it is the best on validation so far, its weights.

        Epochs of runs that never finished are dropped.
        """
        path, before = self.path / METRICS, {other["run"] for other in done}
        content = RawFile.read(path).content if path.exists() else b""
        try:
            lines = content.decode().splitlines()
            kept = [line for line in lines if json.loads(line)["run"] in before]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise AsgatError(f"{path} cannot be read as metrics: {brief(error)}. Start again with --fresh.") from error
        write_atomic(path, "".join(f"{line}\n" for line in kept).encode() + encode_metrics(row["run"], history))
        best = max(((other["val_score"], -other["run"]) for other in done), default=(-1.0, 0))
        if (row["val_score"], -row["run"]) > best:  # among equals the first run, whichever ended first
            content = encode_model(state, metadata)
            write_atomic(self.path / MODEL, content)
            self._model_sha256 = sha256(content)

    def replace(
        self,
        settings: Mapping[str, Any],
        history: Sequence[Epoch],
        state: State,
        metadata: Mapping[str, Any],
        result: Mapping[str, Any],
        others: Mapping[str, bytes],
    ) -> None:
        """Writes a finished run of a single split, and other files next to it, in place of what the folder holds.

        Nothing of the old run is lost before all of the new one is on the disk.
        """
        self._sweep()
        model = encode_model(state, metadata)
        contents = {
            **others,
            CONFIG: to_toml(settings).encode(),
            METRICS: encode_metrics(metadata["run"], history),
            MODEL: model,
            RESULT: to_json({**result, "model_sha256": sha256(model)}),  # last: where it is, all is
        }
        write_all(self.path, contents)
        with suppress(OSError):
            (self.path / UNFINISHED).unlink()


def encode_metrics(run: int, history: Sequence[Epoch]) -> bytes:
    """The lines of a run in ``metrics.jsonl``."""
    return "".join(json.dumps({"run": run, **vars(epoch)}) + "\n" for epoch in history).encode()


def encode_model(state: State, metadata: Mapping[str, Any]) -> bytes:
    """Weights, settings and sizes as the content of ``model.safetensors``; equal models give equal bytes."""
    content = save(state, metadata={key: json.dumps(value) for key, value in metadata.items()})
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + size]), sort_keys=True).encode()  # it comes in a random order
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _with_current_settings(written: dict[str, Any]) -> dict[str, Any]:
    """What an earlier version wrote, as this one writes it: without removed settings, with defaults of new ones."""
    try:
        return {**written, "config": make_config(written["model"], **written["config"]).to_dict()}
    except (AsgatError, KeyError, TypeError):
        return written


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    inner = (value if isinstance(value, Mapping) else {key: value} for key, value in values.items())
    return {key: value for part in inner for key, value in part.items()}


def read_metadata(path: Path | str) -> dict[str, Any]:
    """What is written next to the weights of a run directory's model: data set, model, settings, run and sizes."""
    file = Path(path) / MODEL
    try:
        check_regular(file)
        with safe_open(str(file), framework="pt") as handle:
            return {key: json.loads(text) for key, text in handle.metadata().items()}
    except (OSError, SafetensorError, AttributeError, ValueError, RecursionError) as error:
        raise AsgatError(f"{file} is not a model of this package: {brief(error)}") from error


def is_directed(metadata: Mapping[str, Any]) -> bool:
    """Whether a model uses the direction of edges; version 0.1 knew none."""
    return metadata.get("directed") is True


def with_partners(state: State, partners: Sequence[tuple[str, TrainConfig, State]]) -> tuple[State, dict[str, Any]]:
    """The weights of a model and of those it is averaged with as those of one file, and what its metadata say."""
    weights = {
        f"{PARTNERS}.{place}.{name}": value for place, (_, _, own) in enumerate(partners) for name, value in own.items()
    }
    described = [{"model": name, "config": config.to_dict()} for name, config, _ in partners]
    return {**state, **weights}, {PARTNERS: described} if described else {}


def load_model(path: Path | str) -> tuple[nn.Module, str, TrainConfig]:
    """The trained model of a run directory, its name and its settings.

    Raises:
        AsgatError: it cannot be read, or its predictions are averaged with those of others.
    """
    model, *partners = load_models(path)
    if partners:
        names = ", ".join(name for _, name, _ in (model, *partners))
        raise AsgatError(f"{path} holds the average of several models ({names}), and one is needed; use fit --model.")
    return model


def load_models(path: Path | str) -> list[tuple[nn.Module, str, TrainConfig]]:
    """The trained model of a run directory, its name and its settings, then those it is averaged with."""
    file = Path(path) / MODEL
    metadata = read_metadata(path)
    try:
        sizes = metadata["in_channels"], metadata["out_channels"], metadata.get("num_nodes", 0), is_directed(metadata)
        content = file.read_bytes()
        weights, models = load(content), []
        for place, described in enumerate(metadata.get(PARTNERS, [])):
            prefix = f"{PARTNERS}.{place}."
            own = {key.removeprefix(prefix): weights.pop(key) for key in list(weights) if key.startswith(prefix)}
            models.append(_build(described["model"], described["config"], sizes, own))
        models.insert(0, _build(metadata["model"], metadata["config"], sizes, weights))
    except (OSError, SafetensorError, KeyError, TypeError, AttributeError, RuntimeError, ValueError) as error:
        raise AsgatError(f"{file} is not a model of this package: {brief(error)}") from error
    _check_model(Path(path), content, metadata.get("run"))
    return models


def _build(
    name: str, settings: Mapping[str, Any], sizes: tuple[Any, ...], weights: State
) -> tuple[nn.Module, str, TrainConfig]:
    config = make_config(name, **settings)
    if config.layers > len(weights):  # so many that even their outline would take minutes
        raise ValueError(f"it asks for {config.layers:,} layers, and holds {len(weights)} weights")
    with torch.device("meta"):  # sizes without memory: what they ask for must be what the file holds
        outline = model_spec(name).make(config, *sizes).state_dict()
    if {key: value.shape for key, value in outline.items()} != {key: value.shape for key, value in weights.items()}:
        raise ValueError("its weights are not those its settings ask for")
    if not all(bool(value.isfinite().all()) for value in weights.values()):
        raise ValueError("some of its weights are infinite or not a number")
    model = model_spec(name).make(config, *sizes)
    model.load_state_dict(weights)
    return model.eval(), name, config


def _check_model(path: Path, content: bytes, run: Any) -> None:
    """Refuses a model file that is not the one the result was written with.

    Version 0.1 wrote no SHA-256. A training that is killed leaves the model of a run that has no row yet.
    """
    if not (path / RESULT).exists():
        return
    result = read_result(path)
    expected = result.get("model_sha256")
    killed = not result.get("finished") and run not in [row["run"] for row in result["rows"]]
    if expected not in (None, sha256(content)) and not killed:
        raise AsgatError(
            f"{path / MODEL} is not the model that {RESULT} was written with: its SHA-256 differs from the one there. "
            "Put the right file back, or train again with --fresh."
        )
