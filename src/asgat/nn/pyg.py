"""What is used of PyG, imported without a warning of PyTorch 2.13 and above: PyG 2.8 uses ``torch.jit.script``."""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "`torch.jit.script")
    from torch_geometric.data import Data
    from torch_geometric.nn import LINKX, ARMAConv, ChebConv, GATConv, GCNConv, SAGEConv, SGConv

__all__ = ["LINKX", "ARMAConv", "ChebConv", "Data", "GATConv", "GCNConv", "SAGEConv", "SGConv"]
