import torch

from asgat.kernels.sparse_features import SparseFeatures
from asgat.training.feature_rows import FeatureRows


def test_rows_keep_the_form_of_the_features():
    dense = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    nodes = torch.tensor([2, 0])
    rows = FeatureRows(dense).take(nodes)
    assert isinstance(rows, torch.Tensor)
    assert rows.equal(dense[nodes])
    sparse = FeatureRows(SparseFeatures.from_dense(dense)).take(nodes)
    assert isinstance(sparse, SparseFeatures)
    assert sparse.to_dense().equal(dense[nodes])
