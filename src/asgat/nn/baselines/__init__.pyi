from asgat.nn.baselines.appnp import APPNP as APPNP
from asgat.nn.baselines.armanet import ARMANet as ARMANet
from asgat.nn.baselines.chebnet import ChebNet as ChebNet
from asgat.nn.baselines.gat import GAT as GAT
from asgat.nn.baselines.gcn import GCN as GCN
from asgat.nn.baselines.gpr_gnn import GPRGNN as GPRGNN
from asgat.nn.baselines.h2gcn import H2GCN as H2GCN
from asgat.nn.baselines.linkx import LINKX as LINKX
from asgat.nn.baselines.mlp import MLP as MLP
from asgat.nn.baselines.sage import SAGE as SAGE
from asgat.nn.baselines.sgc import SGC as SGC

__all__: list[str]
