import numpy as np
import torch

from asgat.training import kept_rows
from asgat.training.kept_rows import KeptRows


def test_rows_beyond_the_limit_are_kept_in_a_file(monkeypatch):
    monkeypatch.setattr(kept_rows, "KEPT_BYTES", 200)
    mapped = []
    memmap = np.memmap

    def watched(*arguments, **options):
        mapped.append(options["shape"])
        return memmap(*arguments, **options)

    monkeypatch.setattr(np, "memmap", watched)
    keeper = KeptRows(torch.device("cpu"), torch.float32)
    small, large, other = keeper.new(10, 3), keeper.new(20, 2, 3), keeper.new(10, 2)
    assert mapped == [(20, 2, 3)], "the limit is for all of them"
    for rows in (small, large, other):
        assert not rows.any()
        rows[3] = 2.0
        assert (
            keeper.take(rows, torch.tensor([3, 1]))[:, 0] == torch.tensor([2.0, 0.0]).view(2, *[1] * (rows.dim() - 2))
        ).all()
