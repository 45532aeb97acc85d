"""The models ASGAT is compared with: PyG's layers where PyG has them, with sparse products instead of messages."""

from typing import TYPE_CHECKING

from asgat.lazy import lazy_names

if TYPE_CHECKING:
    from asgat.nn.baselines.appnp import APPNP
    from asgat.nn.baselines.armanet import ARMANet
    from asgat.nn.baselines.chebnet import ChebNet
    from asgat.nn.baselines.gat import GAT
    from asgat.nn.baselines.gcn import GCN
    from asgat.nn.baselines.geom_gcn import GeomGCN
    from asgat.nn.baselines.gpr_gnn import GPRGNN
    from asgat.nn.baselines.h2gcn import H2GCN
    from asgat.nn.baselines.linkx import LINKX
    from asgat.nn.baselines.mlp import MLP
    from asgat.nn.baselines.sage import SAGE
    from asgat.nn.baselines.sgc import SGC

__all__ = ["APPNP", "GAT", "GCN", "GPRGNN", "H2GCN", "LINKX", "MLP", "SAGE", "SGC", "ARMANet", "ChebNet", "GeomGCN"]

__getattr__ = lazy_names(
    __name__,
    {
        "APPNP": "asgat.nn.baselines.appnp",
        "ARMANet": "asgat.nn.baselines.armanet",
        "ChebNet": "asgat.nn.baselines.chebnet",
        "GAT": "asgat.nn.baselines.gat",
        "GCN": "asgat.nn.baselines.gcn",
        "GPRGNN": "asgat.nn.baselines.gpr_gnn",
        "GeomGCN": "asgat.nn.baselines.geom_gcn",
        "H2GCN": "asgat.nn.baselines.h2gcn",
        "LINKX": "asgat.nn.baselines.linkx",
        "MLP": "asgat.nn.baselines.mlp",
        "SAGE": "asgat.nn.baselines.sage",
        "SGC": "asgat.nn.baselines.sgc",
    },
)
