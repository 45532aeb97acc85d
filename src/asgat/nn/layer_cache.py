"""What a layer computes once and uses again."""

from asgat.nn.attention import SparseAttention


class LayerCache:
    """A copied or saved layer has an empty cache.

    Attributes:
        attention: of a filter that training does not change, and what it was computed from.
    """

    def __init__(self) -> None:
        self.attention: tuple[tuple[object, ...], SparseAttention] | None = None

    def __reduce__(self) -> tuple[type["LayerCache"], tuple[()]]:
        return LayerCache, ()
