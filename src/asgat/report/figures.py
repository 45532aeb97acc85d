"""Figures of trained models."""

from __future__ import annotations

import io
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from asgat.filters import SpectralFilter
from asgat.graph import Graph
from asgat.nn import ASGAT
from asgat.spectral import spectral_density
from asgat.training.checkpoint import write_atomic


def character(response: np.ndarray, frequency: np.ndarray, density: np.ndarray) -> str:
    """Names the shape of a response over the graph's spectrum.

    It is low-pass or high-pass if it follows λ; otherwise it may follow (λ - 1)²: "both ends" attends to nodes an even
    number of steps away, "middle" is its opposite. A response without shape is flat.
    """
    weight = density / density.sum()

    def correlation(shape: np.ndarray) -> float:
        x, g = shape - weight @ shape, response - weight @ response
        spread = np.sqrt((weight @ x**2) * (weight @ g**2))
        return float(weight @ (x * g) / spread) if spread > 1e-12 else 0.0

    slope, bend = correlation(frequency), correlation((frequency - 1.0) ** 2)
    if abs(slope) > 0.5:
        return "high-pass" if slope > 0 else "low-pass"
    if abs(bend) > 0.5:
        return "both ends" if bend > 0 else "middle"
    return "mixed" if slope or bend else "flat"


def filter_figure(model: ASGAT, graph: Graph, path: Path, title: str) -> Path:
    """Draws the learned response of every head over λ, one panel per layer, the graph's spectral density behind.

    The scale of a response matters (softmax sharpens with it) and so does its shape; only its level does little.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure  # not pyplot: a notebook's backend and figures stay as they are

    frequency = np.linspace(0.0, 2.0, 401)
    density = spectral_density(graph, frequency)
    layers = model.convs
    figure = Figure(figsize=(4.8 * len(layers) + 1.0, 4.0), layout="constrained")
    axes = figure.subplots(1, len(layers), squeeze=False)
    for number, (axis, layer) in enumerate(zip(axes[0], layers, strict=True), start=1):
        response = evaluate(layer.filter, frequency)
        behind = axis.twinx()
        behind.fill_between(frequency, density, color="0.88", linewidth=0)
        behind.set_ylim(0, 1.6 * max(np.quantile(density, 0.995), 1e-9))
        behind.set_yticks([])
        axis.set_zorder(behind.get_zorder() + 1)
        axis.patch.set_visible(False)
        colours = colormaps["viridis"](np.linspace(0.0, 0.9, response.shape[1]))
        for head, colour in enumerate(colours):
            kind = character(response[:, head], frequency, density)
            axis.plot(frequency, response[:, head], color=colour, lw=1.8, label=f"head {head + 1}: {kind}")
        axis.axhline(0.0, color="0.6", lw=0.6)
        axis.set(xlim=(0, 2), xlabel="frequency λ", title=f"layer {number}")
        axis.legend(fontsize=7, framealpha=0.9, ncols=2 if response.shape[1] > 6 else 1)
    axes[0][0].set_ylabel("learned response g(λ)")
    axes[0][-1].text(
        1.02, 0.5, "grey: density of the graph's eigenvalues", transform=axes[0][-1].transAxes,
        rotation=90, va="center", fontsize=8, color="0.4",
    )  # fmt: skip
    figure.suptitle(title)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    write_atomic(path, buffer.getvalue())
    return path


@torch.no_grad()
def evaluate(filter: SpectralFilter, frequency: np.ndarray) -> np.ndarray:
    """Responses [n, heads] of a filter at the given frequencies."""
    like = next(chain(filter.parameters(), filter.buffers()), torch.empty(0))
    response: torch.Tensor = filter(torch.as_tensor(frequency, dtype=like.dtype, device=like.device))
    return np.asarray(response.cpu().numpy())
