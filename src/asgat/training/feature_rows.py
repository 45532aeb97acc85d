"""Rows of features, dense or sparse, for batches of nodes."""

import scipy.sparse as sp
from torch import Tensor

from asgat.kernels.sparse_features import SparseFeatures


class FeatureRows:
    """Features from which rows are taken in the same form. A dense tensor may be the map of a file."""

    def __init__(self, x: Tensor | SparseFeatures) -> None:
        self.x = x
        if isinstance(x, SparseFeatures):
            arrays = tuple(tensor.cpu().numpy() for tensor in (x.value, x.index, x.indptr))
            self.csr = sp.csr_array(arrays, shape=(x.size(0), x.size(1)))

    def take(self, nodes: Tensor) -> Tensor | SparseFeatures:
        if isinstance(self.x, SparseFeatures):
            return SparseFeatures.from_dense(self.csr[nodes.cpu().numpy()], self.x.device, self.x.dtype)
        return self.x.index_select(0, nodes)
