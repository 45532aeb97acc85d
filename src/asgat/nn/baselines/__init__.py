"""The models ASGAT is compared with, each over PyG's layers where PyG has them."""

from asgat.nn.baselines.gcn import GCN
from asgat.nn.baselines.mlp import MLP

__all__ = ["GCN", "MLP"]
