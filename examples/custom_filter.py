"""A custom filter: a few bumps over the frequencies, with learned centres, widths and heights.

Run it with: python examples/custom_filter.py
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.data import load_dataset
from asgat.filters import SpectralFilter
from asgat.nn import ASGAT


class BumpFilter(SpectralFilter):
    r"""The response :math:`g(\lambda) = \sum_j h_j \exp(-(\lambda - c_j)^2 / 2 w_j^2)`, one set of bumps per head.

    A filter defines two things: its responses at given frequencies, and its initial parameters.
    """

    def __init__(self, heads: int, bumps: int = 4) -> None:
        super().__init__(heads)
        self.centre = nn.Parameter(torch.empty(bumps, heads))
        self.log_width = nn.Parameter(torch.empty(bumps, heads))
        self.height = nn.Parameter(torch.empty(bumps, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.centre.uniform_(0.0, 2.0)  # the spectrum of the normalised Laplacian
            self.log_width.fill_(-1.0)
            self.height.normal_()

    def forward(self, frequency: Tensor) -> Tensor:
        distance = (frequency.view(-1, 1, 1) - self.centre) / self.log_width.exp()
        return (self.height * torch.exp(-0.5 * distance**2)).sum(dim=1)


def main(epochs: int = 60) -> float:
    torch.manual_seed(0)
    data = load_dataset("csbm").to_pyg()
    train, test = data.train_mask[:, 0], data.test_mask[:, 0]
    model = ASGAT(data.num_features, 16, 2, heads=4, k=6, order=12, filter=partial(BumpFilter, bumps=3), cached=True)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        optimiser.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index)[train], data.y[train])
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        right = model.eval()(data.x, data.edge_index).argmax(-1) == data.y
        response = model.convs[0].filter(torch.linspace(0, 2, 5))
    print("responses of the first layer's heads at λ = 0, 0.5, 1, 1.5, 2:")
    for head, values in enumerate(response.t().tolist()):
        print(f"  head {head}: " + "  ".join(f"{value:+.2f}" for value in values))
    score = float(right[test].double().mean())
    print(f"test {score:.1%}")
    return score


if __name__ == "__main__":
    main()
