"""Table 2: macro-F1 of every model on every data set."""

from asgat.experiments import paper
from asgat.experiments.scores import score_experiment

EXPERIMENT = score_experiment("macro", "Table 2", paper.MACRO)
