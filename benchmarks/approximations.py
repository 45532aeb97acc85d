"""How near each form comes to a response, and how near the two ways of ARMA come to each other; with the figure.

python benchmarks/approximations.py --trained cora,chameleon --out docs
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from asgat.config import ASGATConfig
from asgat.data import load_dataset
from asgat.filters import HeatFilter, SpectralFilter
from asgat.graph import Graph
from asgat.nn import ASGAT
from asgat.nn.registry import make_config, model_spec
from asgat.recipe import load_config, read_recipe
from asgat.spectral import ArmaOperator, ArmaTableOperator, ChebyshevOperator
from asgat.training.runner import make_inputs
from asgat.training.trainer import train

ORDERS = [5, 10, 15, 20, 30, 45, 60]  # of a polynomial; of ARMA numerator and denominator together, 3 to 2
EXPANSIONS = [20, 30, 45, 60, 90, 120, 150, 180]
AGREEMENT = 1e-4
DEMANDING = 1e-4  # a fit_error that no filter with kinks meets without a denominator
SAMPLE = 64
DOUBLE = torch.float64
FINE = torch.linspace(0.0, 2.0, 20001, dtype=DOUBLE)
PATH = Graph.from_edges([[0], [1]], 2)  # responses know no graph; the operators ask for one


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


def errors() -> list[dict[str, Any]]:
    rows = []
    for name, filter in RESPONSES.items():
        for form in FORMS:
            for order in ORDERS:
                error = (approximation(form, order, filter) - filter(FINE)[:, 0]).abs()
                rows.append(
                    {
                        "response": name,
                        "form": form,
                        "order": order,
                        "max": float(error.max()),
                        "mean": float(error.mean()),
                    }
                )
    return rows


def one_hot(graph: Graph, sample: int = SAMPLE) -> Tensor:
    """Signals whose filtered images are rows of the scores, of random nodes."""
    nodes = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))[:sample]
    return torch.zeros(graph.num_nodes, len(nodes)).index_put((nodes, torch.arange(len(nodes))), torch.ones(()))


@torch.no_grad()
def compare(graph: Graph, filter: SpectralFilter, fit_error: float, dtype: torch.dtype) -> dict[str, Any]:
    """Conjugate gradients against expansions of several orders, on a sample of rows."""
    signal = one_hot(graph).to(dtype)
    operator = ArmaOperator(graph, fit_error=fit_error, dtype=dtype)
    truth = operator.apply(filter, signal)
    rational = operator.rational(filter)
    rows = []
    for order in EXPANSIONS:
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
        "fallback": None if operator.fallback is None else dataclasses.asdict(operator.fallback),
        "orders": rows,
        "enough": min(enough, default=None),
    }


def trained(dataset: str) -> list[dict[str, Any]]:
    """Filters of asgat-arma, trained on the first split on a table, layer by layer.

    As they were fitted in training, and again with denominators for all that is not smooth. Where the recipe has no
    settings for asgat-arma, those of asgat-cheb are taken, except for the order.
    """
    data = load_dataset(dataset)
    known = "asgat-arma" in read_recipe(dataset)
    settings = load_config(dataset, "asgat-arma" if known else "asgat-cheb").to_dict()
    own = {key: value for key, value in settings.items() if known or key not in ("operator", "order")}
    config = make_config("asgat-arma", **own)
    assert isinstance(config, ASGATConfig)
    build = partial(model_spec("asgat-arma").build, config, data.num_features, data.num_classes)
    inputs = make_inputs(data, "asgat-arma", config, torch.device("cpu"))
    outcome = train(build, inputs, torch.from_numpy(data.y), data.splits[0], config, 0)
    model = build()
    model.load_state_dict(outcome.state)
    assert isinstance(model, ASGAT)
    graph = data.graph.with_self_loops(config.self_loops)
    run = {"dataset": dataset, "order": config.order, "epochs": outcome.epochs, "val_micro_f1": outcome.val_score}
    return [
        {**run, "layer": layer, **compare(graph, conv.filter, fit_error, torch.float32)}
        for fit_error in (config.fit_error, DEMANDING)
        for layer, conv in enumerate(model.convs, start=1)
    ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.5), layout="constrained")
    axes = figure.subplots(2, 3)
    styles = {"Chebyshev": ("C0", "-"), "Chebyshev, damped": ("C1", "--"), "ARMA": ("C3", "-")}
    for column, (name, filter) in enumerate(RESPONSES.items()):
        above, below = axes[0, column], axes[1, column]
        above.plot(FINE, filter(FINE)[:, 0], color="black", linewidth=3, alpha=0.3, label="the response")
        measure, words = ("mean", "mean") if name == "step" else ("max", "largest")
        for form, (colour, dashes) in styles.items():
            order = 30 if form == "ARMA" else 15
            label = "ARMA, Q = 18, P = 12" if form == "ARMA" else f"{form}, R = 15"
            above.plot(FINE, approximation(form, order, filter), dashes, color=colour, linewidth=1, label=label)
            own = [row for row in rows if (row["response"], row["form"]) == (name, form)]
            orders, values = [row["order"] for row in own], [row[measure] for row in own]
            below.plot(orders, values, f"o{dashes}", color=colour, markersize=4, label=form)
        above.set(title=name, xlabel="frequency λ", ylabel="response g(λ)")
        below.set(yscale="log", xlabel="order (of ARMA: P + Q)", ylabel=f"{words} error over [0, 2]")
    axes[0, 0].legend(fontsize=8)
    axes[1, 2].legend(fontsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trained", default="", help="data sets to train on, as in cora,chameleon")
    parser.add_argument("--out", type=Path, default=Path("docs"))
    options = parser.parse_args()
    rows = errors()
    result: dict[str, Any] = {"errors": rows}
    print("largest (mean) error over [0, 2]")
    for name in RESPONSES:
        for form in FORMS:
            own = [row for row in rows if (row["response"], row["form"]) == (name, form)]
            figures = "  ".join(f"{row['order']}: {row['max']:.1e} ({row['mean']:.0e})" for row in own)
            print(f"{name:10} {form:18} {figures}")
    draw(rows, options.out / "figures" / "approximations.png")
    graph = load_dataset("csbm").graph
    result["expansion"] = compare(graph, RESPONSES["band-pass"], DEMANDING, DOUBLE)
    print("band-pass on csbm:", json.dumps(result["expansion"]))
    result["trained"] = []
    for dataset in filter(None, options.trained.split(",")):
        result["trained"] += trained(dataset)
    for row in result["trained"]:
        print(json.dumps(row))
    (options.out / "results" / "approximations.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
