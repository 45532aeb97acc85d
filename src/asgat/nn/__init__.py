"""Layers and models. They know neither files nor training."""

from asgat.nn.asgat import ASGAT
from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.deep import ASGATDeep, DeepBlock
from asgat.nn.filter_conv import SpectralFilterConv

__all__ = ["ASGAT", "ASGATConv", "ASGATDeep", "DeepBlock", "SpectralFilterConv"]
