"""Layers and models. They know neither files nor training."""

from typing import TYPE_CHECKING

from asgat.lazy import lazy_names

if TYPE_CHECKING:
    from asgat.nn.asgat import ASGAT
    from asgat.nn.asgat_conv import ASGATConv
    from asgat.nn.deep import ASGATDeep, DeepBlock
    from asgat.nn.filter_conv import SpectralFilterConv

__all__ = ["ASGAT", "ASGATConv", "ASGATDeep", "DeepBlock", "SpectralFilterConv"]

__getattr__ = lazy_names(
    __name__,
    {
        "ASGAT": "asgat.nn.asgat",
        "ASGATConv": "asgat.nn.asgat_conv",
        "ASGATDeep": "asgat.nn.deep",
        "DeepBlock": "asgat.nn.deep",
        "SpectralFilterConv": "asgat.nn.filter_conv",
    },
)
