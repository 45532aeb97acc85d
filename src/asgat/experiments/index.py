"""The experiments by name, in the order in which `all` runs them."""

from asgat.experiments import (
    approximations,
    frequency,
    heads,
    heat,
    heterophilic_nodes,
    illustration,
    k_sweep,
    macro,
    micro,
    sparsity,
)
from asgat.experiments.experiment import Experiment

_MODULES = (micro, macro, heterophilic_nodes, sparsity, k_sweep, frequency, heads, heat, illustration, approximations)
EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
