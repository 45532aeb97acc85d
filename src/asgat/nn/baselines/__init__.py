"""The models ASGAT is compared with: PyG's layers where PyG has them, with sparse products instead of messages."""

from asgat.lazy import lazy_package

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
