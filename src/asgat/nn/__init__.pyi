from asgat.nn.asgat import ASGAT as ASGAT
from asgat.nn.asgat_conv import ASGATConv as ASGATConv
from asgat.nn.deep import ASGATDeep as ASGATDeep
from asgat.nn.deep import DeepBlock as DeepBlock
from asgat.nn.filter_conv import SpectralFilterConv as SpectralFilterConv

__all__: list[str]
