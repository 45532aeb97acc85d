"""How many CPU threads a problem gets."""

from typing import Any

from torch import Tensor

from asgat.config import SpectralConfig, TrainConfig
from asgat.kernels.sparse_features import SparseFeatures
from asgat.spectral import SpectralOperator
from asgat.threads import available_threads, given_threads
from asgat.training.program import Task

# Multiply-adds of a forward pass. An epoch takes about a nanosecond for each on one core, and 2 to 5 ms at least.
DENSE = 16  # multiply-adds of a product of dense matrices that take as long as one of a sparse product
ONE_THREAD = 120_000_000  # up to here a run is computed by one thread, whatever the machine
PER_THREAD = 40_000_000  # beyond, every thread gets at least so much, or starting and waiting cost more than it saves


def epoch_threads(task: Task, config: TrainConfig) -> int | None:
    """Threads for the epochs of a run, by their work unless a number was given; None on a GPU, as PyTorch is set."""
    if task.y.device.type != "cpu":
        return None
    work, given = forward_work(task, config), given_threads()
    return given or min(available_threads(), max(1, work // PER_THREAD) if work > ONE_THREAD else 1)


def threads_sentence(threads: int | None) -> str:
    """What ``--verbose`` says of them."""
    if threads is None:
        return "Threads on the CPU: as PyTorch is set."
    count = "1 thread" if threads == 1 else f"{threads} threads"
    return f"Threads on the CPU: {count}, {'as given' if given_threads() else 'by the work of an epoch'}."


def forward_work(task: Task, config: TrainConfig) -> int:
    """Multiply-adds of a forward pass, roughly: the cost of the model that ``asgat models`` states."""
    features, *prepared = task.inputs
    width = getattr(config, "heads", 1) * config.hidden
    steps = getattr(config, "steps", getattr(config, "order", 1))
    layer = 0
    for part in prepared:
        if isinstance(part, SpectralOperator) and isinstance(config, SpectralConfig):
            layer += _spectral_work(part, config)
        else:
            layer += steps * width * _stored(part)
    first = width * _stored(features) // (DENSE if isinstance(features, Tensor) else 1)
    return first + config.layers * layer


def _spectral_work(operator: SpectralOperator, config: SpectralConfig) -> int:
    nodes, (table, graph) = operator.num_nodes, (getattr(operator, name, None) for name in ("table", "graph"))
    work = 0
    if config.attends:
        pairs = nodes**2 if table is None else table.index.numel()
        degree = -(-nodes // DENSE) if config.operator == "exact" else config.order
        work += config.heads * (degree * pairs + nodes * min(config.k or nodes, nodes) * config.hidden)
    if "filters" in getattr(config, "channels", "") and graph is not None:
        work += config.order * graph.num_entries * config.hidden
    return work


def _stored(part: Any) -> int:
    """Numbers that an input holds."""
    held = part.value if isinstance(part, SparseFeatures) else part
    return held.numel() if isinstance(held, Tensor) else 0
