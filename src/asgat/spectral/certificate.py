r"""How far attention over candidates can be from attention over all nodes.

The claim, for one row v and head h: the k kept nodes are *exactly* the k best under scores that differ from the true
ones by at most ε(v). With nothing left out ε = 0; otherwise ε = max(0, best score left out − worst score kept). The
best score left out is not computed; it is bounded by what the table knows of each order outside the candidates,

.. math:: \psi_{vu} \le B(v) = \sum_i \max(c_i \tau^+_i(v), c_i \tau^-_i(v)), \qquad u \notin C(v),

so ε ≤ max(0, B − s) with s the worst score kept. Storage and arithmetic round: every computed score is within
ρ(v) = Σ_i |c_i| m_i(v) (r + (P + 3) 2⁻²⁴) of the true one, m_i(v) being the largest stored magnitude of order i in
the row and r the rounding unit of the storage. Two scores are compared, so the bound that is reported is max(B − s + ρ, 2ρ).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds on the backward error ε of every row and head.

    Attributes:
        bound: [heads, N], never below the true ε.
        exact: [heads, N], rows proven to be the paper's own, up to rounding.
    """

    bound: Tensor
    exact: Tensor

    @property
    def share(self) -> float:
        """Share of rows proven exact."""
        return float(self.exact.double().mean()) if self.exact.numel() else 1.0

    @property
    def mean_bound(self) -> float:
        return float(self.bound.mean()) if self.bound.numel() else 0.0

    @property
    def max_bound(self) -> float:
        return float(self.bound.max()) if self.bound.numel() else 0.0


def certify(
    coefficients: Tensor,
    worst_kept: Tensor,
    above: Tensor,
    below: Tensor,
    magnitude: Tensor,
    complete: Tensor,
    rounding: float,
    approximation: float = 0.0,
) -> Certificate:
    """The certificate of selected rows; O(heads · N · P) time and memory, in double precision.

    Args:
        coefficients: c [heads, P], as used for the scores.
        worst_kept: the lowest score each row kept, [heads, N]; -inf where fewer than k candidates were there.
        above, below: largest and smallest value of each order left out of a row, [N, P].
        magnitude: largest stored magnitude of each order in a row, [N, P].
        complete: rows that left nothing out, [N].
        rounding: relative rounding unit of the stored values.
        approximation: how far the polynomial itself may be from the response it stands for, counted twice.
    """
    c = coefficients.detach().double()
    left_out = c.clamp(min=0) @ above.double().t() + c.clamp(max=0) @ below.double().t()  # Σ max(c τ⁺, c τ⁻)
    noise = (rounding + (c.size(1) + 3) * 2.0**-24) * (c.abs() @ magnitude.double().t())
    kept = worst_kept.detach().double()
    excess = torch.where(complete, -torch.inf, left_out - kept + noise)
    return Certificate(
        bound=torch.maximum(excess.clamp(min=0), 2 * noise) + 2 * approximation,
        exact=complete.expand_as(excess) | (excess < 0),
    )
