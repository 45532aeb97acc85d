"""The experiments by name, in the order in which `all` runs them."""

from asgat.experiments import (
    approximations,
    authors,
    frequency,
    heads,
    heat,
    heterophilic_nodes,
    illustration,
    k_sweep,
    scores,
    sparsity,
)

_MODULES = (heterophilic_nodes, sparsity, k_sweep, frequency, heads, heat, illustration, approximations, authors)
_ALL = (*scores.EXPERIMENTS.values(), *(module.EXPERIMENT for module in _MODULES))
EXPERIMENTS = {experiment.name: experiment for experiment in _ALL}
