"""Table 1: micro-F1 of every model on every data set."""

from asgat.experiments import paper
from asgat.experiments.scores import score_experiment

EXPERIMENT = score_experiment("micro", "Table 1", paper.MICRO)
