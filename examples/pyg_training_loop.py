"""ASGATConv in a custom PyG training loop: it takes x and edge_index like any PyG layer.

Run it with: python examples/pyg_training_loop.py
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.data import load_dataset
from asgat.nn import ASGATConv


class Net(nn.Module):
    """One layer of spectral attention, then a linear map."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        # cached: the graph does not change between epochs, so the operator is built once.
        self.attention = ASGATConv(features, 16, heads=4, k=6, order=8, dropout=0.3, root=True, cached=True)
        self.classify = nn.Linear(4 * 16, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        logits: Tensor = self.classify(F.elu(self.attention(x, edge_index)))
        return logits


def main(epochs: int = 60) -> float:
    torch.manual_seed(0)
    data = load_dataset("csbm").to_pyg()
    train, val, test = (data[f"{part}_mask"][:, 0] for part in ("train", "val", "test"))
    model = Net(data.num_features, 2)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best, score = 0.0, 0.0
    for epoch in range(1, epochs + 1):
        model.train()
        optimiser.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index)[train], data.y[train])
        loss.backward()
        optimiser.step()
        model.eval()
        with torch.no_grad():
            right = model(data.x, data.edge_index).argmax(-1) == data.y
        if (now := right[val].double().mean().item()) > best:  # the epoch is chosen on validation nodes
            best, score = now, right[test].double().mean().item()
        if epoch % 20 == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}, validation {now:.1%}")
    print(f"test {score:.1%}")
    return score


if __name__ == "__main__":
    main()
