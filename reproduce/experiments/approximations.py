"""How well each form approximates a response, and how well the two ways to apply ARMA agree."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.polynomial import chebyshev as cheb
from torch import Tensor

from asgat.config import ASGATConfig
from asgat.data import load_dataset
from asgat.filters import HeatFilter, SpectralFilter
from asgat.graph import Graph
from asgat.nn import ASGAT
from asgat.spectral import ArmaOperator, ChebyshevOperator
from asgat.training.inputs import graph_for
from reproduce.experiment import Result, Row, Table
from reproduce.plotting import COLOURS, dataset_title, panels
from reproduce.study import Study, Trained

ORDERS = [5, 10, 15, 20, 30, 45, 60]  # of a polynomial; for ARMA numerator plus denominator, in the ratio 3 to 2
EXPANSIONS = [20, 30, 45, 60, 90, 120, 150, 180]
QUICK_EXPANSIONS = [20, 60, 120]
AGREEMENT = 1e-4
DEMANDING = 1e-4  # a fit_error that a filter with kinks cannot reach without a denominator
SAMPLE = 64
DOUBLE = torch.float64
FINE = torch.linspace(0.0, 2.0, 20001, dtype=DOUBLE)
PATH = Graph.from_edges([[0], [1]], 2)  # operators need a graph, but the responses do not depend on it


class Response(SpectralFilter):
    """Responses without parameters: frequencies [n] → [n, heads]."""

    def __init__(self, response: Callable[[Tensor], Tensor], heads: int = 1) -> None:
        super().__init__(heads)
        self.response = response

    def forward(self, frequency: Tensor) -> Tensor:
        return self.response(frequency)

    def reset_parameters(self) -> None: ...


def band_pass(frequency: Tensor, low: float = 0.6, high: float = 1.4, width: float = 0.1) -> Tensor:
    """1 inside a band, 0 outside; smooth edges of the given width."""
    edges = torch.stack([(frequency - low) / width, (high - frequency) / width]).add(0.5).clamp(0.0, 1.0)
    return (edges.square() * (3.0 - 2.0 * edges)).prod(dim=0)


RESPONSES: dict[str, SpectralFilter] = {
    "heat": HeatFilter(1, scale=2.0).double(),
    "band-pass": Response(lambda frequency: band_pass(frequency).unsqueeze(1)),
    "step": Response(lambda frequency: (frequency < 0.8).to(frequency.dtype).unsqueeze(1)),
}
FORMS = ["Chebyshev", "Chebyshev, damped", "ARMA"]


def approximation(form: str, order: int, filter: SpectralFilter) -> Tensor:
    if form == "ARMA":
        numerator = round(0.6 * order)
        # With such a fit_error denominators are used wherever they help.
        operator = ArmaOperator(PATH, numerator, order - numerator, fit_error=1e-9, dtype=DOUBLE)
        return operator.rational(filter)(FINE - 1.0)[0]
    coefficients = ChebyshevOperator(PATH, order, damping="damped" in form, dtype=DOUBLE).coefficients(filter)[0]
    return torch.from_numpy(cheb.chebval(FINE.numpy() - 1.0, coefficients.detach().numpy()))


def errors(orders: Sequence[int]) -> list[Row]:
    """The largest and the mean error over [0, 2] of every form at every order."""
    rows = []
    for (name, filter), form, order in itertools.product(RESPONSES.items(), FORMS, orders):
        error = (approximation(form, order, filter) - filter(FINE)[:, 0]).abs()
        row = {"response": name, "form": form, "order": order}
        rows.append({**row, "max": float(error.max()), "mean": float(error.mean())})
    return rows


@torch.no_grad()
def compare(
    graph: Graph, filter: SpectralFilter, fit_error: float, dtype: torch.dtype, expansions: Sequence[int]
) -> Row:
    """Conjugate gradients compared with expansions of several orders, on random rows of the scores."""
    nodes = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))[:SAMPLE]
    signal = torch.nn.functional.one_hot(nodes, graph.num_nodes).T.to(dtype)
    operator = ArmaOperator(graph, fit_error=fit_error, dtype=dtype)
    truth, rational = operator.apply(filter, signal), operator.rational(filter)

    def fit(frequency: Tensor) -> Tensor:
        return rational(2.0 / operator.lambda_max * frequency.double() - 1.0).T.to(frequency.dtype)

    rows = []
    for order in expansions:
        expansion = ChebyshevOperator(graph, order, dtype=dtype).apply(Response(fit, filter.heads), signal)
        rows.append({"order": order, "difference": float((expansion - truth).abs().max())})
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
        "enough": min((row["order"] for row in rows if row["difference"] <= AGREEMENT), default=None),
    }


def compare_trained(trained: Trained, expansions: Sequence[int]) -> list[Row]:
    """The filters of the first run's asgat-arma, as fitted in training and with denominators wherever they help."""
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


def collect(study: Study, name: str, datasets: Sequence[str]) -> Result:
    expansions = QUICK_EXPANSIONS if study.quick else EXPANSIONS
    study.progress("errors by order")
    result: Result = {"errors": errors(ORDERS)}
    study.progress("a sharp band on csbm")
    graph = load_dataset("csbm").graph
    result["expansion"] = compare(graph, RESPONSES["band-pass"], DEMANDING, DOUBLE, expansions)
    result["trained"] = []
    for dataset in datasets:
        trained = study.train(dataset, "asgat-arma")
        if trained is not None:
            study.progress(f"expansions of the filters of {dataset}")
            result["trained"] += compare_trained(trained, expansions)
    return result


def errors_of(result: Result, response: str, form: str) -> list[Row]:
    return [row for row in result["errors"] if (row["response"], row["form"]) == (response, form)]


def measure_of(response: str) -> str:
    """The error that is shown: the largest error at a step does not fall with the order."""
    return "mean" if response == "step" else "max"


def tables(result: Result) -> list[Table]:
    rows = [
        (name, form.split(", ")[-1], *(f"{row[measure_of(name)]:.0e}" for row in errors_of(result, name, form)))
        for name in RESPONSES
        for form in FORMS
    ]
    title = "Largest error over [0, 2] (mean error for the step) by order"
    caption = f"damped: Chebyshev with Jackson's factors; the order of ARMA is P + Q. Paper: {result['claim']}"
    shown = [Table(title, ("response", "form", *map(str, ORDERS)), rows, caption)]
    if result["trained"]:
        rows = [
            (
                dataset_title(row["dataset"]),
                str(row["layer"]),
                f"{row['fit_error']:g}",
                f"{row['heads_with_denominator']} of {row['heads']}",
                f"{row['condition']:.0f}",
                str(row["steps"]),
                str(row["enough"] or f"> {row['orders'][-1]['order']}"),
            )
            for row in result["trained"]
        ]
        headings = ("data set", "layer", "fit error", "with denominator", "condition", "steps", "order to agree")
        title = "Trained filters of asgat-arma, conjugate gradients and expansions"
        caption = f"order of the expansion at which both agree to {AGREEMENT:g}"
        shown.append(Table(title, headings, rows, caption))
    return shown


def draw(result: Result) -> dict[str, Any]:
    figure, axes = panels(12, 6.5, 2, 3)
    styles = {"Chebyshev": (COLOURS[0], "-"), "Chebyshev, damped": (COLOURS[1], "--"), "ARMA": (COLOURS[3], "-")}
    for (above, below), (name, filter) in zip(axes.T, RESPONSES.items(), strict=True):
        above.plot(FINE, filter(FINE)[:, 0], color="black", linewidth=3, alpha=0.3, label="the response")
        measure = measure_of(name)
        for form, (colour, dashes) in styles.items():
            order, label = (30, "ARMA, Q = 18, P = 12") if form == "ARMA" else (15, f"{form}, R = 15")
            above.plot(FINE, approximation(form, order, filter), dashes, color=colour, linewidth=1, label=label)
            orders, values = np.array([(row["order"], row[measure]) for row in errors_of(result, name, form)]).T
            below.plot(orders, values, f"o{dashes}", color=colour, markersize=4, label=form)
        above.set(title=name, xlabel="frequency λ", ylabel="response g(λ)")
        ylabel = f"{'mean' if measure == 'mean' else 'largest'} error over [0, 2]"
        below.set(yscale="log", xlabel="order (of ARMA: P + Q)", ylabel=ylabel)
    for axis in (axes[0, 0], axes[1, 2]):
        axis.legend(fontsize=8, frameon=False)
    return {"approximations": figure}
