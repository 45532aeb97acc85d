"""How near each form comes to a response, and how near the two ways of ARMA come to each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table
from torch import Tensor

from asgat.config import ASGATConfig
from asgat.data import load_dataset
from asgat.experiments.experiment import Experiment, Result
from asgat.experiments.plotting import COLOURS, new, plain, title
from asgat.experiments.reproduction import Reproduction
from asgat.experiments.trained_models import Trained, try_train
from asgat.filters import HeatFilter, SpectralFilter
from asgat.graph import Graph
from asgat.nn import ASGAT
from asgat.spectral import ArmaOperator, ChebyshevOperator
from asgat.tables import ArmaTableOperator
from asgat.training.inputs import graph_for

DATASETS = ["cora", "chameleon"]
QUICK = ["cora"]
ORDERS = [5, 10, 15, 20, 30, 45, 60]  # of a polynomial; of ARMA numerator and denominator together, 3 to 2
EXPANSIONS = [20, 30, 45, 60, 90, 120, 150, 180]
QUICK_EXPANSIONS = [20, 60, 120]
AGREEMENT = 1e-4
DEMANDING = 1e-4  # a fit_error that no filter with kinks meets without a denominator
SAMPLE = 64
DOUBLE = torch.float64
FINE = torch.linspace(0.0, 2.0, 20001, dtype=DOUBLE)
PATH = Graph.from_edges([[0], [1]], 2)  # responses know no graph; the operators ask for one
CLAIM = "ARMA is more accurate than Chebyshev polynomials"


class Response(SpectralFilter):
    """A single response without parameters."""

    def __init__(self, response: Callable[[Tensor], Tensor]) -> None:
        super().__init__(1)
        self.response = response

    def forward(self, frequency: Tensor) -> Tensor:
        return self.response(frequency).unsqueeze(1)

    def reset_parameters(self) -> None: ...


def band_pass(frequency: Tensor, low: float = 0.6, high: float = 1.4, width: float = 0.1) -> Tensor:
    """1 inside a band, 0 outside; smooth edges of the given width."""
    edges = torch.stack([(frequency - low) / width, (high - frequency) / width]).add(0.5).clamp(0.0, 1.0)
    return (edges.square() * (3.0 - 2.0 * edges)).prod(dim=0)


RESPONSES: dict[str, SpectralFilter] = {
    "heat": HeatFilter(1, scale=2.0).double(),
    "band-pass": Response(band_pass),
    "step": Response(lambda frequency: (frequency < 0.8).to(frequency.dtype)),
}
FORMS = ["Chebyshev", "Chebyshev, damped", "ARMA"]


def approximation(form: str, order: int, filter: SpectralFilter) -> Tensor:
    """The response a form gives instead of the filter's, at fine frequencies."""
    if form == "ARMA":
        numerator = round(0.6 * order)
        # Denominators wherever they help, so that the form and not its economy is seen.
        operator = ArmaOperator(PATH, numerator, order - numerator, fit_error=1e-9, dtype=DOUBLE)
        return operator.rational(filter)(FINE - 1.0)[0]
    coefficients = ChebyshevOperator(PATH, order, damping="damped" in form, dtype=DOUBLE).coefficients(filter)[0]
    angle = torch.arccos(FINE - 1.0)
    return torch.cos(angle.unsqueeze(1) * torch.arange(order + 1, dtype=DOUBLE)) @ coefficients


def errors(orders: Sequence[int]) -> list[dict[str, Any]]:
    """The largest and the mean error over [0, 2] of every form at every order."""
    rows = []
    for name, filter in RESPONSES.items():
        for form in FORMS:
            for order in orders:
                error = (approximation(form, order, filter) - filter(FINE)[:, 0]).abs()
                figures = {"max": float(error.max()), "mean": float(error.mean())}
                rows.append({"response": name, "form": form, "order": order, **figures})
    return rows


def one_hot(graph: Graph, sample: int = SAMPLE) -> Tensor:
    """Signals whose filtered images are rows of the scores, of random nodes."""
    nodes = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))[:sample]
    return torch.zeros(graph.num_nodes, len(nodes)).index_put((nodes, torch.arange(len(nodes))), torch.ones(()))


@torch.no_grad()
def compare(
    graph: Graph, filter: SpectralFilter, fit_error: float, dtype: torch.dtype, expansions: Sequence[int]
) -> dict[str, Any]:
    """Conjugate gradients against expansions of several orders, on a sample of rows."""
    signal = one_hot(graph).to(dtype)
    operator = ArmaOperator(graph, fit_error=fit_error, dtype=dtype)
    truth = operator.apply(filter, signal)
    rational = operator.rational(filter)
    rows = []
    for order in expansions:
        # Only the coefficients matter here: the smallest table there is.
        expansion = ArmaTableOperator(graph, order, fit_error=fit_error, candidates=1, builder="truncated", dtype=dtype)
        difference = (expansion.apply(filter, signal) - truth).abs()
        rows.append(
            {"order": order, "difference": float(difference.max()), "delta": float(expansion.deviation(filter).max())}
        )
    enough = [row["order"] for row in rows if row["difference"] <= AGREEMENT]
    return {
        "fit_error": fit_error,
        "largest_score": float(truth.abs().max()),
        "heads": filter.heads,
        "heads_with_denominator": int((rational.condition > 1.0).sum()),
        "condition": float(rational.condition.max()),
        "fit_residual": float(rational.residual.max()),
        "steps": operator.steps_taken,
        "cg_residual": operator.residual,
        "fallback": None if operator.rational.fallback is None else dataclasses.asdict(operator.rational.fallback),
        "orders": rows,
        "enough": min(enough, default=None),
    }


def compare_trained(trained: Trained, expansions: Sequence[int]) -> list[dict[str, Any]]:
    """The filters of the first run's asgat-arma, layer by layer.

    As they were fitted in training, and again with denominators for all that is not smooth.
    """
    config = cast(ASGATConfig, trained.config)
    model = cast(ASGAT, trained.load(trained.runs[0]))
    first = trained.result["rows"][0]
    graph = graph_for(trained.dataset, config)
    run = {"dataset": trained.dataset.name, "order": config.order}
    run |= {"epochs": first["epochs"], "val_micro_f1": first["val_score"]}
    return [
        {**run, "layer": layer, **compare(graph, conv.filter, fit_error, torch.float32, expansions)}
        for fit_error in (config.fit_error, DEMANDING)
        for layer, conv in enumerate(model.convs, start=1)
    ]


def collect(study: Reproduction) -> Result:
    expansions = QUICK_EXPANSIONS if study.quick else EXPANSIONS
    study.say("errors over order")
    result: Result = {"claim": CLAIM, "errors": errors(ORDERS)}
    study.say("a sharp band on csbm")
    graph = load_dataset("csbm").graph
    result["expansion"] = compare(graph, RESPONSES["band-pass"], DEMANDING, DOUBLE, expansions)
    result["trained"] = []
    for dataset in study.pick(DATASETS, QUICK, needed=False):
        trained = try_train(study, dataset, "asgat-arma", study.seeds[0])
        if trained is not None:
            study.say(f"expansions of the filters of {dataset}")
            result["trained"] += trained.remembered("expansions", partial(compare_trained, trained, expansions))
    return result


def find(result: Result, response: str, form: str) -> list[dict[str, Any]]:
    return [row for row in result["errors"] if (row["response"], row["form"]) == (response, form)]


def tables(result: Result) -> list[Table]:
    words = "Largest error over [0, 2] (of the step the mean) against order"
    table = Table(title=words, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("response", "form", *map(str, ORDERS)):
        table.add_column(heading, justify="left" if heading in ("response", "form") else "right", no_wrap=True)
    for name in RESPONSES:
        for form in FORMS:
            measure = "mean" if name == "step" else "max"
            table.add_row(name, form.split(", ")[-1], *(f"{row[measure]:.0e}" for row in find(result, name, form)))
    table.caption = f"damped: Chebyshev with Jackson's factors; the order of ARMA is P + Q. Paper: {CLAIM}"
    shown = [table]
    if result["trained"]:
        table = Table(title="Trained filters of asgat-arma, conjugate gradients and expansions", box=SIMPLE_HEAD)
        for heading in ("data set", "layer", "fit error", "with denominator", "condition", "steps", "order to agree"):
            table.add_column(heading, justify="left" if heading == "data set" else "right")
        for row in result["trained"]:
            share = f"{row['heads_with_denominator']} of {row['heads']}"
            enough = str(row["enough"] or f"> {row['orders'][-1]['order']}")
            cells = f"{row['fit_error']:g}", share, f"{row['condition']:.0f}", str(row["steps"]), enough
            table.add_row(title(row["dataset"]), str(row["layer"]), *cells)
        table.caption = f"order of the expansion at which both agree to {AGREEMENT:g}"
        shown.append(table)
    return shown


def draw(result: Result) -> dict[str, Any]:
    figure = new(12, 6.5)
    axes = figure.subplots(2, 3)
    styles = {"Chebyshev": (COLOURS[0], "-"), "Chebyshev, damped": (COLOURS[1], "--"), "ARMA": (COLOURS[3], "-")}
    for column, (name, filter) in enumerate(RESPONSES.items()):
        above, below = axes[0, column], axes[1, column]
        above.plot(FINE, filter(FINE)[:, 0], color="black", linewidth=3, alpha=0.3, label="the response")
        measure, words = ("mean", "mean") if name == "step" else ("max", "largest")
        for form, (colour, dashes) in styles.items():
            order = 30 if form == "ARMA" else 15
            label = "ARMA, Q = 18, P = 12" if form == "ARMA" else f"{form}, R = 15"
            above.plot(FINE, approximation(form, order, filter), dashes, color=colour, linewidth=1, label=label)
            own = find(result, name, form)
            orders, values = [row["order"] for row in own], [row[measure] for row in own]
            below.plot(orders, values, f"o{dashes}", color=colour, markersize=4, label=form)
        above.set(title=name, xlabel="frequency λ", ylabel="response g(λ)")
        below.set(yscale="log", xlabel="order (of ARMA: P + Q)", ylabel=f"{words} error over [0, 2]")
        plain(above)
        plain(below)
    axes[0, 0].legend(fontsize=8, frameon=False)
    axes[1, 2].legend(fontsize=8, frameon=False)
    return {"approximations": figure}


QUESTION = "How near do Chebyshev polynomials and ARMA come to a response, and what do trained filters need?"
EXPERIMENT = Experiment("approximations", QUESTION, collect, tables, draw)
