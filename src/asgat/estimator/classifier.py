"""Node classification with the interface of scikit-learn: fit, predict, score, save and load."""

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from asgat.config import ASGATConfig, SpectralConfig, TrainConfig
from asgat.data.dataset import Dataset
from asgat.data.digest import dataset_digest
from asgat.errors import AsgatError, listed, suggest
from asgat.estimator.encoded_graph import (
    USER_PROTOCOL,
    EncodedGraph,
    Encoding,
    apply_encoding,
    as_mask,
    encode_user_graph,
    label_column,
)
from asgat.estimator.feature_table import is_table, read_labelled_table, read_table
from asgat.estimator.health import Health, examine
from asgat.estimator.node_matching import difference, rows_of_fitted
from asgat.estimator.sklearn_base import SklearnClassifier
from asgat.estimator.trained_run import HEALTH_FILE, checked_probability, encode_files, load_run, read_encoder
from asgat.estimator.verbosity import board_lines, training_lines
from asgat.files.lock import locked
from asgat.files.user_file import read_user_file
from asgat.graph import Graph
from asgat.leaderboard.board import (
    BoardFolder,
    BoardSettings,
    Final,
    board_content,
    predict_test_nodes,
    run_board,
    score_figures,
)
from asgat.leaderboard.contest import Report
from asgat.leaderboard.field import Candidate
from asgat.leaderboard.standings import Leaderboard
from asgat.nn.registry import make_config, model_spec
from asgat.tabular.caution import Caution, warn_of
from asgat.tabular.column import Column
from asgat.tabular.conversions import as_user_graph
from asgat.tabular.user_graph import UserGraph
from asgat.training.checkpoint import Checkpointer
from asgat.training.inputs import make_inputs
from asgat.training.loop import train_jobs
from asgat.training.result import describe_settings, result_row, run_figures, summarise
from asgat.training.run_directory import RunDirectory, read_metadata, with_partners
from asgat.training.run_files import BOARD
from asgat.training.run_state import DivergedError, Job
from asgat.training.runner import Callbacks, make_task, model_metadata, step_bytes

# Where they differ from the model's defaults; features are already scaled by their encoding.
DEFAULTS: dict[str, Any] = {"hidden": 32, "epochs": 500, "patience": 50, "max_restarts": 1, "normalize_features": False}


@dataclass(eq=False, repr=False)  # sklearn compares and shows estimators itself
class ASGATClassifier(SklearnClassifier):
    """Adaptive spectral graph attention as an estimator.

    Features are encoded and the encoding is stored; a part of the training nodes is used for early stopping; ``k`` and
    ``order`` are chosen from the graph's figures unless given. No weight depends on the number of nodes, so a fitted
    model predicts other graphs with the same columns.

    Args:
        model: a name from ``asgat models``.
        k: nodes each node attends to per head.
        order: Chebyshev order.
        heads, hidden, dropout, lr, weight_decay, epochs, patience: settings of the model and its training.
        settings: any other settings, by name.
        directed: whether edges have a direction, which only some models can use.
        preset: ``"quick"``, ``"default"`` or ``"best"``: many models are trained, as by ``asgat fit``, and the best on
            validation nodes is kept. ``model`` and its settings have no effect then.
        metric: what validation decides by: ``"micro_f1"``, ``"macro_f1"``, ``"log_loss"`` or, for two classes,
            ``"roc_auc"``.
        time_limit: of a preset, in minutes; by default its own.
        random_state: seed of the weights and of splits: a whole number, or None or a ``RandomState`` to draw one in
            every :meth:`fit`.
        verbose: 1 prints what is trained and the scores, 2 every epoch as well.
        device: ``"cpu"`` or ``"cuda"``.
        seed: an older name of ``random_state``.

    Attributes:
        classes_: the classes, in the order of the columns of ``predict_proba``.
        n_features_in_: number of columns of features, before they are encoded.
        feature_names_in_: their names, where they have any: an array's columns have none.
        config_: all settings.
        dataset_: graph, encoded features, labels and split.
        health_: figures of the graph.
        result_: scores and figures of the training, as in ``result.json``.
        module_: the trained network.
        model_, directed_: the name of its model, and whether it uses the direction of edges.
        partners_: name, settings and network of other models; predictions are the average of all.
        leaderboard_: the table of all models a preset has tried: print it, or see ``leaderboard_.to_pandas()``.

    Example:
        >>> from asgat.data import load_dataset
        >>> club = load_dataset("karate").to_pyg()
        >>> ASGATClassifier(epochs=5, heads=2).fit(club).predict_proba().shape
        (34, 2)
    """

    model: str = "asgat-plus"
    _: KW_ONLY
    k: int | None = None
    order: int | None = None
    heads: int | None = None
    hidden: int | None = None
    dropout: float | None = None
    lr: float | None = None
    weight_decay: float | None = None
    epochs: int | None = None
    patience: int | None = None
    settings: Mapping[str, Any] | None = None
    directed: bool = False
    preset: str | None = None
    metric: str = "micro_f1"
    time_limit: float | None = None
    random_state: int | np.random.RandomState | None = 0
    verbose: int = 0
    device: str = "cpu"
    seed: int | None = None

    def fit(self, graph: Any, y: Any = None, mask: Any = None, val_mask: Any = None, x: Any = None) -> Self:
        """Trains on the labelled nodes of a graph.

        Args:
            graph: as in :func:`asgat.tabular.conversions.as_user_graph`, or a table [N, F] of features or a data frame:
                a graph without edges.
            y: a label per node; None, NaN, "" or -1 where there is none. Or the name of the column, node attribute or
                tensor that holds them. By default those the graph has.
            mask: the nodes to learn from, as a mask or as indices; by default those of the graph's split, or all that
                have a label.
            val_mask: the nodes for early stopping; by default a quarter of the mask's, by class.
            x: features [N, F], where the graph has none.

        Warns:
            UserWarning: the data likely hold a mistake, such as a feature that is a copy of the label.
        """
        self._draw_seed()
        self.__dict__.pop("feature_names_in_", None)
        if x is None and is_table(graph):
            graph, y = read_labelled_table(self, graph, y), None
        label = y if isinstance(y, str) else None
        user_graph = as_user_graph(graph, x, self.directed, label)
        if label is not None and user_graph.label is None:
            known = [column.name for column in as_user_graph(graph, directed=self.directed).features]
            advice = suggest(label, known[:30]) if known else "They have no columns at all; give the labels as y."
            raise AsgatError(f"The nodes have no column {label!r} of labels. {advice}")
        y = y if label is None else None
        encoded = encode_user_graph(user_graph, y, mask, val_mask, self._seed, test=False, metric=self.metric)
        warn_of(encoded.notes)
        if self.preset is None:
            self.fit_encoded(encoded, callbacks=training_lines(self.verbose))
        else:
            self.fit_leaderboard(encoded, report=board_lines(self.verbose))
        if self.verbose:
            print(self.leaderboard_ if self.preset else f"val score {self.result_['rows'][0]['val_score']:.4f}")
        return self

    def fit_encoded(
        self,
        encoded: EncodedGraph,
        health: Health | None = None,
        callbacks: Callbacks | None = None,
        folder: Path | str | None = None,
    ) -> Self:
        """Trains on an encoded graph; with a folder, goes on from an unfinished run there.

        Raises:
            DivergedError: every attempt diverged.
        """
        callbacks, dataset = callbacks or Callbacks(), encoded.dataset
        self._begin(encoded, health)
        config = self.make_config(self.health_)
        device, settings = torch.device(self.device), self.describe(dataset, config)
        task = make_task(dataset, self.model, config, device, callbacks.building)
        if callbacks.built:
            callbacks.built(step_bytes(dataset, config, device))
        checkpointer = None
        if folder is not None:
            checkpointer = Checkpointer(folder, device.type, settings["data"], resumable=task.resumable)
        jobs = [Job(split, self._seed + i, config, i) for i, split in enumerate(dataset.splits)]
        progress = callbacks.progress
        report = None if progress is None else lambda job, epoch: progress(job.run, epoch)
        outcomes = dict(train_jobs(task, jobs, progress=report, checkpointer=checkpointer))
        candidate, finals = Candidate(self.model, self.model, directed=dataset.directed), []
        for i in range(len(jobs)):
            outcome = outcomes[i]
            if isinstance(outcome, DivergedError):
                raise outcome
            finals.append(Final(candidate, config, task, outcome))
        return self._adopt(dataset, finals)

    def fit_leaderboard(
        self,
        encoded: EncodedGraph,
        health: Health | None = None,
        report: Report | None = None,
        folder: Path | str | None = None,
    ) -> Self:
        """Trains the models of the preset, or of ``"default"``, and keeps the best; with a folder, goes on from there.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed; what was trained so far is in the folder.
        """
        self._begin(encoded, health)
        datasets, place = encoded.datasets(), BoardFolder(folder)
        settings = self.board_settings(encoded.dataset)
        used, self.board_settings_ = place.begin(settings)["seconds"], settings.to_dict()
        arguments = settings, self.health_.advised, torch.device(self.device), encoded.given_validation, place, used
        self.leaderboard_, finals = run_board(datasets, *arguments, report)
        return self._adopt(datasets[finals[0].candidate.directed], finals)

    def board_settings(self, dataset: Dataset) -> BoardSettings:
        """What a leaderboard on this data set depends on."""
        own = self.preset or "default", dataset.metric, len(dataset.splits), self._seed
        return BoardSettings(*own, dataset_digest(dataset), self.time_limit)

    def _begin(self, encoded: EncodedGraph, health: Health | None) -> None:
        names = encoded.encoding.class_names
        self.health_ = health or examine(encoded.user_graph, encoded.dataset, names, encoded.notes)
        self.encoding_, self.classes_ = encoded.encoding, encoded.encoding.classes
        self.ids_ = list(encoded.user_graph.ids)
        self._name_features()
        self.__dict__.pop("leaderboard_", None)

    def _name_features(self) -> None:
        """The columns as scikit-learn's attributes; those of an array have numbers for names."""
        names = [feature.name for feature in self.encoding_.encoder.features]
        self.n_features_in_ = len(names)
        if names != [f"x{i}" for i in range(len(names))]:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _draw_seed(self) -> None:
        if not isinstance(self._random_state, numbers.Integral):
            from sklearn.utils import check_random_state

            self.seed_ = int(check_random_state(self._random_state).randint(2**31 - 1))

    @property
    def _random_state(self) -> Any:
        return self.random_state if self.seed is None else self.seed

    @property
    def _seed(self) -> int:
        """A number for ``random_state``: itself, or the one that was drawn for this fit."""
        return int(self._random_state) if isinstance(self._random_state, numbers.Integral) else self.seed_

    def _adopt(self, dataset: Dataset, finals: Sequence[Final]) -> Self:
        """Takes trained models, one of each split; that of the first is kept."""
        first, device = finals[0], torch.device(self.device)
        self.model_, self.directed_, self.config_ = first.candidate.model, first.candidate.directed, first.config
        self.dataset_, self.module_ = dataset, first.task.example(first.config)
        self.module_.load_state_dict(first.result.state)
        self.partners_ = []
        for partner in first.partners:
            network = partner.task.example(partner.config)
            network.load_state_dict(partner.result.state)
            self.partners_.append((partner.candidate.model, partner.config, network))
        figures = [run_figures(f.task, f.config, s, f.result) for f, s in zip(finals, dataset.splits, strict=True)]
        common = set.intersection(*(set(own) for own in figures))  # repeats may have chosen models of other kinds
        rows = [
            result_row(i, {key: value for key, value in own.items() if key in common}, device)
            for i, own in enumerate(figures)
        ]
        tests = [predict_test_nodes(final, split) for final, split in zip(finals, dataset.splits, strict=True)]
        settings = self.describe(dataset, self.config_, self.model_)
        result = summarise(settings, dataset.metric, rows)
        names = {"partners": [name for name, _, _ in self.partners_]} if self.partners_ else {}
        self.history_ = first.result.history
        self.result_ = {**result, **names, "test": score_figures(dataset.metric, tests)}
        self.__dict__.pop("_inputs", None)
        if device.type == "cpu":
            self.__dict__["_inputs"] = [first.task.inputs, *(partner.task.inputs for partner in first.partners)]
        return self

    def make_config(self, health: Health) -> TrainConfig:
        """All settings: those given, else those the graph's figures suggest, else the defaults."""
        known = model_spec(self.model).config.keys()
        advised = health.advised
        if (self.settings or {}).get("similar") and advised["k"] >= health.largest_component - 1:
            del advised["k"]  # limited by a component, and these edges join components
        names = ("k", "order", "heads", "hidden", "dropout", "lr", "weight_decay", "epochs", "patience")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        config = model_spec(self.model).config
        start = {**DEFAULTS, **(advised if issubclass(config, SpectralConfig) else {})}
        if not issubclass(config, ASGATConfig):
            del start["hidden"]  # of other models the own default
        values = {key: value for key, value in start.items() if key in known}
        return make_config(self.model, **{**values, **given, **(self.settings or {})})

    def predict(self, graph: Any = None, x: Any = None) -> npt.NDArray[Any]:
        """The most likely class of every node of the fitted graph, or of another with the same columns.

        A model whose weights belong to nodes, such as linkx, predicts the fitted nodes, found by their ids in any
        order; the ids of a graph without any are its row numbers. Edges may be others.

        Warns:
            UserWarning: the edges are others, or a model was left out of an average because the nodes are others.
        """
        probability = self.predict_proba(graph, x)
        return np.asarray(self.classes_[probability.argmax(axis=1)])

    def predict_proba(self, graph: Any = None, x: Any = None) -> npt.NDArray[np.float64]:
        """Probabilities of the classes, [nodes, classes], rows as in :meth:`predict`."""
        self._check_fitted()
        if graph is None:
            return self._probability(self._inputs)
        probability, notes = self.predict_with_notes(self._read(graph, x))
        warn_of(notes)
        return probability

    def predict_with_notes(self, user_graph: UserGraph) -> tuple[npt.NDArray[np.float64], list[str]]:
        """Probabilities as in :meth:`predict_proba`, and what was noticed about the graph, in sentences.

        Where the nodes are those of the fitted graph, whatever their order, they are predicted in the fitted order.
        """
        self._check_fitted()
        rows = rows_of_fitted(self.ids_, user_graph.ids)
        if rows is None:
            inputs, notes = self._inputs_of(user_graph, same_nodes=False)
            return self._probability(inputs)[user_graph.nodes], notes
        inputs, notes = self._inputs_of(user_graph.reordered(rows), same_nodes=True)
        found = self._probability(inputs)
        probability = np.empty_like(found)
        probability[rows] = found
        return probability[user_graph.nodes], notes

    @property
    def _models(self) -> list[tuple[str, TrainConfig, torch.nn.Module]]:
        """Name, settings and network of the model and its partners."""
        return [(self.model_, self.config_, self.module_), *self.partners_]

    @property
    def belongs_to_graph(self) -> bool:
        """Whether only the nodes of the fitted graph can be predicted, because all weights belong to them."""
        return all(model_spec(name).belongs_to_graph(config) for name, config, _ in self._models)

    @torch.no_grad()
    def _probability(self, inputs: Sequence[tuple[Any, ...] | None]) -> npt.NDArray[np.float64]:
        """The mean over the models that have inputs."""
        pairs = zip(self._models, inputs, strict=True)
        found = [checked_probability(module.eval()(*own)) for (_, _, module), own in pairs if own is not None]
        return np.asarray(np.mean(found, axis=0))

    def score(self, graph: Any = None, y: Any = None, mask: Any = None, x: Any = None) -> float:
        """The share of labelled nodes that is predicted correctly.

        Args:
            graph: as for :meth:`fit`; None is the test part of the fitted graph, the labelled nodes not trained on.
            y: labels of its nodes, or the name of their column; by default those it has.
            mask: the nodes to score; by default all that have a label.
            x: features, where the graph has none.
        """
        self._check_fitted()
        if graph is None:
            nodes = self.dataset_.splits[0].test
            if not len(nodes):
                raise AsgatError(
                    "No labelled node was left to test: fit with mask=, or score other nodes, score(graph, y)."
                )
            return float(np.mean(self.predict()[nodes] == self.classes_[self.dataset_.y[nodes]]))
        user_graph = self._read(graph, x, y if isinstance(y, str) else None)
        label = label_column(user_graph, None if isinstance(y, str) else y)
        if mask is not None and user_graph.chosen is not None:
            raise AsgatError("Nodes were selected already; leave out the mask.")
        wanted = as_mask(user_graph.nodes if mask is None else mask, user_graph.num_nodes) & ~label.missing
        if not wanted.any():
            raise AsgatError("There is no labelled node to score; give y, or a mask of labelled nodes.")
        names = Column.of_objects("class", self.classes_.tolist()).texts()
        predicted = self.predict_proba(user_graph.select(None)).argmax(axis=1)
        truth = label.texts()
        return float(np.mean([names[predicted[node]] == truth[node] for node in np.flatnonzero(wanted).tolist()]))

    def _read(self, graph: Any, x: Any, label: str | None = None) -> UserGraph:
        """A graph as the fitted one was read: the column of the labels, if it is there, is no feature."""
        if x is None and is_table(graph):
            graph = read_table(self, graph)
        return as_user_graph(graph, x, self.directed_, label or self.encoding_.columns.get("label"))

    @cached_property
    def _inputs(self) -> list[tuple[Any, ...] | None]:
        """The models' inputs for the fitted graph, on the CPU; built only when that graph is predicted."""
        device = torch.device("cpu")
        return [make_inputs(self.dataset_, name, config, device) for name, config, _ in self._models]

    def _inputs_of(self, user_graph: UserGraph, same_nodes: bool) -> tuple[list[tuple[Any, ...] | None], list[str]]:
        """The models' inputs for a graph, None for those that cannot predict it, and notes in sentences.

        ``same_nodes``: whether its nodes are those of the fitted graph, in that order.
        """
        bound = [model_spec(name).belongs_to_graph(config) for name, config, _ in self._models]
        names = listed(list(dict.fromkeys(model[0] for model, own in zip(self._models, bound, strict=True) if own)))
        others = difference(self.ids_, user_graph.ids) if names and not same_nodes else ""
        if others and all(bound):
            raise AsgatError(
                f"The weights of {names} belong to the nodes of the fitted graph, and those of this graph differ: "
                f"{others}. Give the same ids, in any order, or fit a model that predicts any nodes, such as "
                "asgat-plus with its default settings (--model asgat-plus)."
            )
        dataset, notes = apply_encoding(user_graph, self.encoding_)
        if others:
            why = f"whose weights belong to the nodes of the fitted graph: {others}"
            notes = [*notes, Caution(f"Predicted without {names}, {why}.")]
        elif names and not same_edges(dataset.graph, self.dataset_.graph):
            notes = [*notes, Caution("The edges differ from those of the fitted graph; the nodes are the same.")]
        left_out = [own and not same_nodes for own in bound]
        if same_graph(dataset, self.dataset_):
            return [None if out else own for out, own in zip(left_out, self._inputs, strict=True)], notes
        device = torch.device("cpu")
        return [
            None if out else make_inputs(dataset, name, config, device)
            for out, (name, config, _) in zip(left_out, self._models, strict=True)
        ], notes

    def _check_fitted(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "module_")

    def save_pretrained(self, path: Path | str) -> Path:
        """Writes a run directory: settings, metrics, result, weights, the graph and the encoding, in plain files."""
        self._check_fitted()
        settings = self.describe(self.dataset_, self.config_, self.model_)
        partners = [(name, config, _weights(module)) for name, config, module in self.partners_]
        state, about_partners = with_partners(_weights(self.module_), partners)
        files = encode_files(self.dataset_, self.ids_, self.encoding_.to_dict(), self.health_)
        if hasattr(self, "leaderboard_"):
            files[BOARD] = board_content(self.board_settings_, self.leaderboard_.seconds, self.leaderboard_)
        metadata = {**model_metadata(settings, 0, self.dataset_), **about_partners}
        with locked(path):
            RunDirectory(path).replace(settings, self.history_, state, metadata, self.result_, files)
        return Path(path)

    @classmethod
    def from_pretrained(cls, path: Path | str) -> Self:
        """Reads a run directory of :meth:`save_pretrained` or ``asgat fit``; predictions are the same."""
        run = load_run(path)
        if not run.is_user_graph:
            raise AsgatError(f"{path} is a run on {run.dataset.name}, not of `asgat fit`; fit a model on your graph.")
        seed = read_metadata(path).get("seed", 0)
        classifier = cls(run.name, settings=run.config.to_dict(), directed=run.graph.directed, random_state=seed)
        classifier.config_, classifier.dataset_ = run.config, run.dataset
        classifier.model_, classifier.directed_ = run.name, run.graph.directed
        classifier.partners_ = [(partner.name, partner.config, partner.model) for partner in run.partners]
        held = BoardFolder(path).read()
        if held is not None:
            classifier.leaderboard_, classifier.board_settings_ = Leaderboard.from_dict(held), held["settings"]
        classifier.module_, classifier.ids_ = run.model, [str(name) for name in run.ids]
        classifier.encoding_ = Encoding.from_dict(read_encoder(Path(path)))
        classifier.classes_ = classifier.encoding_.classes
        classifier._name_features()
        classifier.result_, classifier.history_ = RunDirectory(path).read_result(), []
        classifier.health_ = Health.from_dict(read_user_file(Path(path) / HEALTH_FILE).json_object())
        return classifier

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def describe(self, dataset: Dataset, config: TrainConfig, model: str | None = None) -> dict[str, Any]:
        """What ``config.toml`` of a run directory holds; the model is the one asked for, unless another is named."""
        settings = describe_settings(
            dataset.name,
            model or self.model,
            USER_PROTOCOL,
            self._seed,
            list(range(len(dataset.splits))),
            config,
            dataset_digest(dataset),
        )
        own = {"directed": True} if dataset.graph.directed else {}
        return {**settings, **own, **({"preset": self.leaderboard_.preset} if hasattr(self, "leaderboard_") else {})}


def _weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}


def same_graph(one: Dataset, other: Dataset) -> bool:
    """Whether graph and features are equal, so that inputs need not be built again."""
    return same_edges(one.graph, other.graph) and np.array_equal(one.x, other.x)


def same_edges(one: Graph, other: Graph) -> bool:
    """Whether the edges, their weights and directions are equal."""
    a, b = one.adjacency, other.adjacency
    pairs = (a.indptr, b.indptr), (a.indices, b.indices), (a.data, b.data)
    return one.directed == other.directed and all(np.array_equal(*pair) for pair in pairs)
