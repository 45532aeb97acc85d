r"""How far attention over candidates can be from attention over all nodes.

The claim, for one row v and head h: the k kept nodes are *exactly* the k best under scores that differ from the true
ones by at most ε(v). With nothing left out ε = 0; otherwise ε = max(0, best score left out − worst score kept). The
best score left out is not computed, but bounded by the table's extremes of each order outside the candidates,

.. math:: \psi_{vu} \le B(v) = \sum_i \max(c_i \tau^+_i(v), c_i \tau^-_i(v)), \qquad u \notin C(v),

so ε ≤ max(0, B − s) with s the worst score kept. Storage and arithmetic round: every computed score is within
ρ(v) = Σ_i (|c_i| (m_i(v) (r + (P + 3) 2⁻²⁴) + t) + f) of the true one, m_i(v) being the largest stored magnitude of
order i in the row, r the relative rounding unit of the storage, t its underflow and f that of the scores. Two scores
are compared, so the reported bound is max(B − s + ρ, 2ρ). Where scores may overflow it is infinite.

A truncated table does not know what was left out. There a sample of rows is computed exactly and their errors are
measured: the error of the kept scores, or the excess of the best node left out over the worst score kept.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds on the backward error ε of every row and head.

    Attributes:
        bound: [heads, N], never below the true ε.
        exact: [heads, N], rows proven to equal exact top-k attention, up to rounding.
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


@dataclass(frozen=True, eq=False)
class SampledCertificate(Certificate):
    """Errors of a random sample of rows, and 95 % confidence limits for all rows.

    Attributes:
        bound: true errors of the sampled rows, [heads, sample].
        exact: those at rounding level.
        num_nodes: number of all rows.
        largest: the largest error that a row can have.
    """

    num_nodes: int
    largest: float

    @property
    def complete(self) -> bool:
        """Whether all rows were sampled: the limits are then the true values."""
        return self.bound.size(1) >= self.num_nodes

    @property
    def share(self) -> float:
        """Lower limit (Clopper-Pearson) of the share of rows, worst head counted, that are exact."""
        from scipy.stats import beta

        if self.complete:
            return float(self.exact.all(dim=0).double().mean()) if self.num_nodes else 1.0
        good, rows = int(self.exact.all(dim=0).sum()), self.exact.size(1)
        return float(beta.ppf(0.05, good, rows - good + 1)) if good else 0.0

    @property
    def mean_bound(self) -> float:
        """Upper limit of the mean error of all rows, worst head counted; see :func:`mean_limit`."""
        if not self.num_nodes:
            return 0.0
        error = self.bound.amax(dim=0).double()
        return float(error.mean()) if self.complete else mean_limit(error, self.largest)

    @property
    def coverage(self) -> float:
        """Share of all rows whose error is, with 95 % confidence, at most ``max_bound``."""
        return 1.0 if self.complete else float(0.05 ** (1.0 / self.bound.size(1)))


def mean_limit(values: Tensor, largest: float, level: float = 0.05) -> float:
    r"""Upper limit of the mean of a population in [0, largest], from a random sample; missed with probability 5 %.

    Valid for every population, however skewed (betting, Waudby-Smith and Ramdas 2024): with values scaled to [0, 1] and
    a mean of at least m, :math:`\prod_j (1 + \theta (m - x_j) / (1 - m))` has an expectation of at most 1 for every
    :math:`\theta` in [0, 1], and so has an average over several :math:`\theta`. It exceeds 1 / level with a probability
    of at most the level (Markov), so every m where it does is too large. Draws without replacement are negatively
    associated, which only lowers the expectation. A sample of n zeros gives largest · (1 - level^(1/n)), or a bit more.
    """
    x = values.double().cpu() / max(largest, 1e-300)
    if not x.isfinite().all() or (x > 1.0).any():
        return torch.inf
    theta = torch.linspace(0.0, 1.0, 17, dtype=torch.float64)[1:].unsqueeze(1)
    low, high = float(x.mean()), 1.0
    for _ in range(40):  # the product grows with m
        middle = (low + high) / 2.0
        gain = torch.log1p(theta * (middle - x) / (1.0 - middle)).sum(dim=1)
        low, high = (low, middle) if float(gain.exp().mean()) >= 1.0 / level else (middle, high)
    return high * largest


def certify(
    coefficients: Tensor,
    worst_kept: Tensor,
    above: Tensor,
    below: Tensor,
    magnitude: Tensor,
    complete: Tensor,
    rounding: float,
    underflow: float = 0.0,
) -> Certificate:
    """The certificate of selected rows; O(heads · N · P) time and memory, in double precision.

    ``worst_kept`` [heads, N] is the lowest score each row kept, -inf in rows with fewer than k candidates. Of each
    order in a row, [N, P], ``above`` and ``below`` are the largest and smallest value left out, ``magnitude`` is the
    largest stored magnitude; ``complete`` rows [N] left nothing out. A stored value is off by at most ``rounding``
    times its magnitude plus ``underflow``.
    """
    c = coefficients.detach().double()
    left_out = c.clamp(min=0) @ above.double().t() + c.clamp(max=0) @ below.double().t()  # Σ max(c τ⁺, c τ⁻)
    range_of_scores = torch.finfo(worst_kept.dtype)
    largest = c.abs() @ magnitude.double().t()
    noise = (rounding + (c.size(1) + 3) * 2.0**-24) * largest
    noise = noise + underflow * c.abs().sum(dim=1, keepdim=True) + c.size(1) * range_of_scores.tiny
    kept = worst_kept.detach().double()
    excess = torch.where(complete, -torch.inf, left_out - kept + noise)
    bound = torch.maximum(excess.clamp(min=0), 2 * noise)
    finite = largest < range_of_scores.max / 2  # scores that overflow, or are NaN, prove nothing
    return Certificate(bound=bound.where(finite, torch.inf), exact=(complete.expand_as(excess) | (excess < 0)) & finite)


def certify_rows(coefficients: Tensor, truth: Tensor, index: Tensor, score: Tensor) -> Tensor:
    """The true backward errors [heads, rows] of what selected rows kept, index and score [heads, rows, k].

    ``truth`` holds the true values of all orders in these rows, [P, rows, N]; a score of -inf marks padding.
    """
    c, index = coefficients.detach().double(), index.long()
    if truth.numel() == 0:
        return c.new_zeros(c.size(0), truth.size(1))
    reached = (truth != 0).any(dim=0)
    errors = []
    for head in range(c.size(0)):  # one head at a time: its true scores take rows · N numbers
        true = torch.tensordot(c[head], truth.double(), dims=1)
        kept = ~torch.isneginf(score[head])
        own = (score[head].double() - true.gather(1, index[head])).abs().masked_fill(~kept, 0.0).amax(dim=1)
        position = index[head].where(kept, index[head][:, :1])  # the first is always kept
        left = true.masked_fill(~reached, -torch.inf).scatter(1, position, -torch.inf).amax(dim=1)
        worst = score[head].double().masked_fill(~kept, torch.inf).amin(dim=1)
        # A row that kept fewer than k and left nodes out should have taken them, whatever their score.
        short = ~kept.all(dim=1) & ~torch.isneginf(left)
        excess = torch.where(short, torch.inf, (left - worst).clamp(min=0.0))
        errors.append(torch.maximum(own, excess))
    return torch.stack(errors)
