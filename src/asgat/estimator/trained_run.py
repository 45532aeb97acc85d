"""A run directory with the graph it was trained on, the starting point of predict, explain and report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data import load_dataset
from asgat.data.dataset import Dataset
from asgat.errors import AsgatError
from asgat.estimator.graph_file import decode_graph, encode_graph
from asgat.estimator.health import Health
from asgat.files.atomic import read_toml, to_json
from asgat.files.user_file import read_user_file
from asgat.graph.graph import Floats, Graph, Ints, Mask
from asgat.nn.ensemble import average
from asgat.nn.registry import model_spec
from asgat.training.inputs import graph_for, make_inputs
from asgat.training.run_directory import is_directed, load_models, read_metadata
from asgat.training.run_files import BOARD, CONFIG, UNFINISHED

GRAPH_FILE, ENCODER_FILE, HEALTH_FILE = "graph.npz", "encoder.json", "health.json"


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """A trained model with everything it was trained on.

    Args:
        name: the model's name in the registry.
        dataset: graph, features as the model takes them, labels, and one split: that of the saved model.
        ids: the user's ids of the nodes, or node numbers for a data set known by name.
        is_user_graph: whether the graph is the user's and lies in the run directory.
        partners: other models on the same data; predictions are the average of all.
    """

    path: Path
    model: nn.Module
    name: str
    config: TrainConfig
    dataset: Dataset
    ids: list[str] | list[int]
    class_names: list[str]
    feature_names: list[str]
    is_user_graph: bool
    partners: tuple["TrainedRun", ...] = ()

    @property
    def graph(self) -> Graph:
        return self.dataset.graph

    @property
    def members(self) -> int:
        """Number of networks whose outputs are averaged."""
        return self.config.members + sum(partner.members for partner in self.partners)

    @property
    def averaged(self) -> str:
        """What the predictions are the average of, in words; empty if they are a single network's."""
        if self.partners:
            names = dict.fromkeys(run.name for run in (self, *self.partners))
            return f"{self.members} networks ({' + '.join(names)})"
        return f"{self.members} networks" if self.members > 1 else ""

    @property
    def belongs_to_graph(self) -> bool:
        """Whether no other nodes can be predicted, because all weights belong to those of this graph."""
        return all(model_spec(run.name).belongs_to_graph(run.config) for run in (self, *self.partners))

    @property
    def similar(self) -> int:
        """Number of k-nearest-neighbour edges that were added per node."""
        return getattr(self.config, "similar", 0)

    @cached_property
    def attended_graph(self) -> Graph:
        """The graph as the model takes it, see :func:`~asgat.training.inputs.graph_for`."""
        return graph_for(self.dataset, self.config)

    @property
    def x(self) -> npt.NDArray[np.float32]:
        return self.dataset.x

    @property
    def y(self) -> Ints:
        return self.dataset.y

    train_mask = property(lambda self: self._mask("train"), doc="Training nodes as a mask [N].")
    val_mask = property(lambda self: self._mask("val"), doc="Validation nodes as a mask [N].")
    test_mask = property(lambda self: self._mask("test"), doc="Test nodes as a mask [N].")

    @cached_property
    def inputs(self) -> tuple[Any, ...]:
        """What the model's ``forward`` takes, on the CPU."""
        return make_inputs(self.dataset, self.name, self.config, torch.device("cpu"))

    @torch.no_grad()
    def logits(self) -> Tensor:
        """The model's output for every node, [N, classes]; with partners, the average of theirs."""
        answer: Tensor = self.model.eval()(*self.inputs)
        return average(torch.stack([answer, *(one.logits() for one in self.partners)])) if self.partners else answer

    def number_of(self, node: str | int) -> int:
        """The row of the node with an id."""
        known = {str(name): number for number, name in enumerate(self.ids)}
        if str(node) not in known:
            raise AsgatError(f"There is no node {str(node)!r} in {self.dataset.name}; its first is {self.ids[0]!r}.")
        return known[str(node)]

    def _mask(self, part: str) -> Mask:
        return self.dataset.splits[0].masks(self.dataset.num_nodes)[part]


def checked_probability(logits: Tensor) -> Floats:
    """The probabilities of the classes, [nodes, classes]; an error if they are not numbers."""
    if not torch.isfinite(logits).all():
        raise AsgatError(
            "The model gives NaN or infinity: its weights are damaged, or its training diverged. Fit again, with a "
            "lower lr if it diverged."
        )
    return np.asarray(torch.softmax(logits.double(), dim=-1).cpu().numpy())


def _is_begun(config: Path) -> bool:
    """Whether a file is the ``config.toml`` that a training begins with."""
    try:
        return config.is_file() and {"model", "protocol", "runs"} <= read_toml(config).keys()
    except AsgatError:
        return False


def load_run(path: Path | str, data_dir: Path | str | None = None) -> TrainedRun:
    """Reads a run directory of ``asgat fit`` (the graph is in it) or of ``asgat train`` (the data set has a name)."""
    path = Path(path)
    if not (path / "model.safetensors").is_file():
        if any((path / name).exists() for name in (BOARD, UNFINISHED)) or _is_begun(path / CONFIG):
            raise AsgatError(f"{path} holds an unfinished training; start the same command again to finish it.")
        raise AsgatError(f"{path} is not a run directory with a model; `asgat fit` and `asgat train` write them.")
    models = load_models(path)
    metadata = read_metadata(path)
    own = metadata.get("protocol") == "own"
    if own:
        ids: list[str] | list[int]
        if not (path / GRAPH_FILE).is_file():
            raise AsgatError(
                f"{path} has no {GRAPH_FILE}, the graph its model was trained on; use a run directory of `asgat fit`."
            )
        dataset, ids = decode_graph(path / GRAPH_FILE, str(metadata.get("dataset", path.name)))
        encoder = read_encoder(path)
        classes, features = encoder["classes"], encoder["feature_names"]
    else:
        try:
            dataset = load_dataset(str(metadata["dataset"]), str(metadata["protocol"]), data_dir)
            run = int(metadata["run"])
            dataset = replace(dataset, splits=(dataset.splits[run if len(dataset.splits) > 1 else 0],))
        except AsgatError:
            raise
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise AsgatError(f"{path} does not say which data set its model was trained on: {error!r}.") from error
        ids = list(range(dataset.num_nodes))
        classes = [f"class {i}" for i in range(dataset.num_classes)]
        features = [f"feature {i}" for i in range(dataset.num_features)]
    wanted, held = (metadata["in_channels"], metadata["out_channels"]), (dataset.num_features, dataset.num_classes)
    named = len(features), len(classes)
    if not wanted == held == named:
        raise AsgatError(
            f"The files of {path} do not match: the model has {wanted[0]} features and {wanted[1]} classes, the graph "
            f"{held[0]} and {held[1]}, the names {named[0]} and {named[1]}; fit again."
        )
    if is_directed(metadata) != dataset.graph.directed:
        raise AsgatError(f"The files of {path} do not match: either the model or the graph is directed; fit again.")
    first, *partners = [
        TrainedRun(path, model, name, config, dataset, ids, classes, features, own) for model, name, config in models
    ]
    return replace(first, partners=tuple(partners))


def encode_files(dataset: Dataset, ids: Sequence[str], encoding: Mapping[str, Any], health: Health) -> dict[str, bytes]:
    """What a run directory holds of a user's graph: the graph, how it was encoded, and its figures."""
    texts = {ENCODER_FILE: to_json(encoding), HEALTH_FILE: to_json(health.to_dict())}
    return {GRAPH_FILE: encode_graph(dataset, ids), **texts}


def read_encoder(path: Path) -> dict[str, Any]:
    """``encoder.json`` of a run directory, with at least ``classes`` and ``feature_names``, lists of texts."""
    held = read_user_file(path / ENCODER_FILE).json_object()
    for key in ("classes", "feature_names"):
        names = held.get(key)
        if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
            raise AsgatError(f"{path / ENCODER_FILE} cannot be used: {key} is not a list of names.")
    return held
