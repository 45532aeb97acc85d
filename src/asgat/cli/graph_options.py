"""The options of a user's graph, declared once, and what a command trains on: such a graph, or a data set by name."""

import functools
import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from asgat.cli import options
from asgat.cli.output import say
from asgat.errors import AsgatError

if TYPE_CHECKING:
    from asgat.config import TrainConfig
    from asgat.data.dataset import Dataset
    from asgat.estimator.health import Health
    from asgat.estimator.user_data import UserData
    from asgat.tabular.user_graph import UserGraph


DatasetOrRun = Annotated[
    str | None,
    typer.Argument(
        help="A name from `asgat datasets`, or a run directory of `asgat fit`.", autocompletion=options.complete_dataset
    ),
]
Column = functools.partial(typer.Option, metavar="COLUMN")
Nodes = Annotated[Path | None, typer.Option(help="Node file; .graphml and .npz may hold both.")]
Ignore = Annotated[list[str] | None, Column(help="A node column that is not a feature.")]


@dataclass(frozen=True)
class GraphOptions:
    """Where a user's graph is and what its columns mean; every field is an option of the same name."""

    edges: Annotated[
        Path | None, typer.Option(help="Edge file: .csv, .tsv or .graphml, also .gz; .parquet or .npz.")
    ] = None
    label: Annotated[str | None, Column(help="Classes; empty for nodes to predict.")] = None
    nodes: Nodes = None
    id: Annotated[str | None, Column(help="Node ids. Default: by name.")] = None
    source: Annotated[str | None, Column(help="Source of an edge. Default: by name.")] = None
    target: Annotated[str | None, Column(help="Target of an edge. Default: by name.")] = None
    weight: Annotated[str | None, Column(help="Weight of an edge. Default: 1.")] = None
    split: Annotated[list[str] | None, Column(help="train, val or test; again for another split. Default: random.")] = (
        None
    )
    ignore: Ignore = None
    categorical: Annotated[list[str] | None, Column(help="A feature whose numbers are codes of categories.")] = None
    numeric: Annotated[list[str] | None, Column(help="A feature that is a number.")] = None
    directed: Annotated[bool, typer.Option("--directed", help="Edges have a direction, source to target.")] = False
    metric: Annotated[
        str | None, typer.Option(help="Score to select by: micro_f1, macro_f1, roc_auc or log_loss. Default: micro_f1.")
    ] = None

    def __post_init__(self) -> None:
        if self.metric is not None:
            object.__setattr__(self, "metric", self.metric.replace("-", "_"))

    def given(self) -> dict[str, Any]:
        """The options that were given."""
        return {key: value for key, value in vars(self).items() if value}

    def words(self) -> list[str]:
        """The options that were given, as on a command line."""
        found: list[str] = []
        for key, value in self.given().items():
            for one in value if isinstance(value, list) else [value]:
                found += [f"--{key}"] if one is True else [f"--{key}", str(one)]
        return found

    def read(self) -> "UserGraph":
        """Reads the graph."""
        from asgat.tabular.assembly import read_graph

        if self.edges is None or self.label is None:
            lacking, what = ("--edges", "file of the edges") if self.edges is None else ("--label", "column of classes")
            raise AsgatError(f"{lacking} is missing: name the {what} of your graph.")
        roles = {key: value for key, value in self.given().items() if key not in ("edges", "nodes", "metric")}
        return read_graph(self.edges, self.nodes, **roles)

    def data_name(self) -> str:
        """What run directories are named after: the data, with the folder they lie in."""
        from asgat.tabular.assembly import data_name

        file = self.nodes or self.edges
        assert file is not None
        name, folder = data_name(file), file.absolute().parent.name
        return name if name == folder else "-".join(filter(None, (folder, name)))


def takes_graph(panel: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of :class:`GraphOptions` in place of its parameter ``graph``.

    Help shows them in a panel of their own, if it has a title.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature, own = inspect.signature(command, eval_str=True), inspect.signature(GraphOptions).parameters
        parameters: list[inspect.Parameter] = []
        for name, parameter in signature.parameters.items():
            parameters += [_shown_in(panel, one) for one in own.values()] if name == "graph" else [parameter]

        @functools.wraps(command)
        def call(**values: Any) -> None:
            graph = GraphOptions(**{name: values.pop(name) for name in own})
            command(**values, graph=graph)

        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        call.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]
        return call

    return decorate


def _shown_in(panel: str | None, parameter: inspect.Parameter) -> inspect.Parameter:
    kind, option = get_args(parameter.annotation)
    option = copy(option)
    option.rich_help_panel = panel
    return parameter.replace(annotation=Annotated[kind, option])


@dataclass(frozen=True, eq=False)
class Source:
    """What a command trains on: a benchmark data set by its name, or a user's graph."""

    dataset: "Dataset"
    name: str  # what run directories are named after
    words: list[str]  # that name it on a command line
    user: "UserData | None" = None

    @property
    def default_model(self) -> str:
        """The model that is trained unless one is named."""
        return self.user.model if self.user else "asgat-cheb"

    def config(self, model: str, settings: dict[str, Any]) -> "TrainConfig":
        """The settings of a model: of the data set's recipe, or those of `asgat fit --model` for a user's graph."""
        from asgat.recipe import load_config

        return self.user.config(model, settings) if self.user else load_config(self.dataset.name, model, settings)

    def runs(self, asked: list[int]) -> list[int]:
        """The runs that are asked for; of ten, the default, those a user's graph has splits for."""
        several = len(self.dataset.splits)
        return asked[:several] if self.user and several > 1 and asked == list(range(10)) else asked

    def dataset_for(self, model: str) -> "Dataset":
        """The data set as a model takes it; a user's directed graph loses its directions where they cannot be used."""
        if self.user is None or (data := self.user.dataset_for(model)) is self.dataset:
            return self.dataset
        say(f"· {model} cannot use the direction of edges: it is trained on the undirected graph.", wrap=True)
        return data


def check_source(dataset: str | None, graph: GraphOptions, protocol: str | None = None) -> None:
    """Refuses options that do not name one thing to train on, and a misspelt name, before anything is read."""
    from asgat.data import get_info

    given, path = graph.given(), as_run_directory(dataset)
    if dataset is None and not given:
        raise AsgatError("No data was given: name a data set of `asgat datasets`, or give --edges and --label.")
    if dataset is not None and given.keys() - {"metric"}:
        option = next(key for key in given if key != "metric")
        raise AsgatError(f"Both {dataset!r} and --{option} were given; use either a name or your files.")
    if dataset is not None and path is None:
        get_info(dataset)
        if graph.metric:
            raise AsgatError(f"--metric is for your own graph; the score of {dataset} belongs to the data set.")
    elif protocol:
        raise AsgatError("--protocol is for benchmark data sets; a graph of your own takes --split.")


def as_run_directory(dataset: str | None) -> Path | None:
    """The run directory that was named instead of a data set, if it is one."""
    from asgat.data import DATASETS

    if dataset is None or dataset in DATASETS:
        return None
    try:
        is_folder = Path(dataset).is_dir()
    except (OSError, ValueError):
        is_folder = False
    if not is_folder and "/" in dataset:
        raise AsgatError(f"There is no run directory {dataset!r}. `asgat runs` lists those there are.")
    return Path(dataset) if is_folder else None


def load_source(
    dataset: str | None,
    graph: GraphOptions,
    seed: int = 0,
    runs: int = 1,
    protocol: str | None = None,
    data_dir: Path | None = None,
) -> Source:
    """What to train on, with splits for this many runs where they are drawn."""
    from asgat.data import load_dataset
    from asgat.disk.disk_graph import check_name
    from asgat.estimator.user_data import UserData

    check_source(dataset, graph, protocol)
    if dataset is None:
        user = UserData.from_graph(graph.read(), seed, runs, graph.metric)
        print_changes(user.health)
        return Source(user.dataset, graph.data_name(), graph.words(), user)
    if (path := as_run_directory(dataset)) is not None:
        user = UserData.from_run(path, graph.metric)
        return Source(user.dataset, check_name(user.dataset.name), [dataset, *graph.words()], user)
    return Source(load_dataset(dataset, protocol, data_dir), dataset, [dataset])


def print_changes(health: "Health") -> None:
    """What was changed while a graph was read; likely mistakes begin with an exclamation mark."""
    from asgat.tabular.caution import Caution

    for change in health.changes:
        say(f"{'!' if isinstance(change, Caution) else '·'} {change}", wrap=True)
