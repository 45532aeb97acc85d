"""The run directory: plain files, written whole or not at all, readable without this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.errors import AsgatError, brief
from asgat.files.atomic import TEMPORARY, read_toml, to_json, to_toml, write_atomic


class OtherSettingsError(AsgatError):
    """A run directory holds a run with other settings."""


class RunDirectory:
    """A folder with ``config.toml``, ``metrics.jsonl``, ``result.json`` and ``model.safetensors``.

    ``result.json`` is renewed after every finished run (one split or seed): started again with the same settings, a
    killed command takes the finished ones over. The run it was in is in ``unfinished.safetensors``, as of at most half
    a minute ago. Whoever writes holds the folder's lock.

    Args:
        path: the folder; made if it is not there.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def begin(self, settings: Mapping[str, Any], fresh: bool = False) -> list[dict[str, Any]]:
        """Writes the settings and returns the finished runs of an earlier start with the same settings.

        Raises:
            AsgatError: the folder holds a run with other settings, or cannot be written.
        """
        self._sweep()
        config = self.path / "config.toml"
        if not fresh and config.exists():
            earlier = _with_current_settings(read_toml(config))
            if earlier != settings:
                differing = [key for key in _flat(settings) if _flat(settings).get(key) != _flat(earlier).get(key)]
                differing += [key for key in _flat(earlier) if key not in _flat(settings)]
                raise OtherSettingsError(
                    f"{self.path} holds a run with other settings ({', '.join(differing)}); "
                    "choose another --out, or --fresh to replace it."
                )
            return list(self.read_result().get("rows", [])) if (self.path / "result.json").exists() else []
        names = ("result.json", "metrics.jsonl", "model.safetensors", "unfinished.safetensors")
        strange = [name for name in names if not fresh and (self.path / name).exists()]
        if strange:
            raise AsgatError(
                f"{self.path} holds {', '.join(strange)} but no config.toml, so it is no run directory of ours; "
                "choose another --out, or --fresh to replace these files."
            )
        for name in names:
            try:
                (self.path / name).unlink(missing_ok=True)
            except OSError as error:
                raise AsgatError(f"{self.path / name} cannot be removed: {error.strerror}.") from error
        write_atomic(config, to_toml(settings).encode())
        return []

    def _sweep(self) -> None:
        """Removes what killed processes left half-written; whoever holds the lock is the only one who writes here."""
        for path in self.path.glob(".*"):
            if TEMPORARY.fullmatch(path.name):
                with suppress(OSError):
                    path.unlink()

    def read_result(self) -> dict[str, Any]:
        path = self.path / "result.json"
        try:
            result = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise AsgatError(f"{path} cannot be read as a result: {brief(error)}.") from error
        if not isinstance(result, dict):
            raise AsgatError(f"{path} cannot be read as a result: it holds no object.")
        return result

    def write_result(self, result: Mapping[str, Any]) -> None:
        write_atomic(self.path / "result.json", to_json(result))

    def add_metrics(self, rows: list[dict[str, Any]], runs_before: list[int]) -> None:
        """Adds a finished run's epochs; lines of runs that never finished are dropped."""
        path = self.path / "metrics.jsonl"
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            kept = [line for line in lines if json.loads(line)["run"] in runs_before]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise AsgatError(f"{path} cannot be read as metrics: {brief(error)}. Start anew with --fresh.") from error
        write_atomic(path, "".join(f"{line}\n" for line in kept + [json.dumps(row) for row in rows]).encode())

    def write_model(self, state: dict[str, Tensor], metadata: Mapping[str, Any]) -> None:
        text = {key: json.dumps(value) for key, value in metadata.items()}
        write_atomic(self.path / "model.safetensors", save(state, metadata=text))


def _with_current_settings(written: dict[str, Any]) -> dict[str, Any]:
    """What an earlier version wrote, as this one writes it: without removed settings, with defaults of new ones."""
    from asgat.nn.registry import make_config

    try:
        return {**written, "config": make_config(written["model"], **written["config"]).to_dict()}
    except (AsgatError, KeyError, TypeError):
        return written


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat.update(value if isinstance(value, Mapping) else {key: value})
    return flat


def read_metadata(path: Path | str) -> dict[str, Any]:
    """What is written beside the weights of a run directory's model: data set, model, settings, run and sizes."""
    file = Path(path) / "model.safetensors"
    try:
        with safe_open(str(file), framework="pt") as handle:
            return {key: json.loads(text) for key, text in handle.metadata().items()}
    except (OSError, SafetensorError, AttributeError, ValueError, RecursionError) as error:
        raise AsgatError(f"{file} holds no model of this package: {brief(error)}") from error


def load_model(path: Path | str) -> tuple[nn.Module, str, TrainConfig]:
    """The trained model of a run directory, its name and its settings."""
    from asgat.nn.registry import make_config, model_spec

    file = Path(path) / "model.safetensors"
    metadata = read_metadata(path)
    try:
        name = metadata["model"]
        config = make_config(name, **metadata["config"])
        sizes = metadata["in_channels"], metadata["out_channels"], metadata.get("num_nodes", 0)
        weights = load_file(str(file))
        if config.layers > len(weights):  # so many that even their outline would take minutes
            raise ValueError(f"it asks for {config.layers:,} layers, and holds {len(weights)} weights")
        with torch.device("meta"):  # sizes without memory: what they ask for must be what the file holds
            outline = model_spec(name).make(config, *sizes).state_dict()
        if {key: value.shape for key, value in outline.items()} != {key: value.shape for key, value in weights.items()}:
            raise ValueError("its weights are not those its settings ask for")
        model = model_spec(name).make(config, *sizes)
        model.load_state_dict(weights)
    except (OSError, SafetensorError, KeyError, TypeError, AttributeError, RuntimeError, ValueError) as error:
        raise AsgatError(f"{file} holds no model of this package: {brief(error)}") from error
    return model.eval(), name, config
