from asgat.data.datasets import load_dataset as load_dataset
from asgat.estimator.classifier import ASGATClassifier as ASGATClassifier
from asgat.graph.graph import Graph as Graph
from asgat.nn.asgat import ASGAT as ASGAT
from asgat.nn.asgat_conv import ASGATConv as ASGATConv
from asgat.nn.deep import ASGATDeep as ASGATDeep
from asgat.nn.filter_conv import SpectralFilterConv as SpectralFilterConv
from asgat.tabular.assembly import read_graph as read_graph
from asgat.tabular.conversions import as_user_graph as as_user_graph

__all__: list[str]
__version__: str
