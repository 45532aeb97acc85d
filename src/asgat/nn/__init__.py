"""Layers and models. They know neither files nor training."""

from asgat.nn.asgat import ASGAT
from asgat.nn.asgat_conv import ASGATConv

__all__ = ["ASGAT", "ASGATConv"]
