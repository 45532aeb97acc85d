"""What a run is trained on and what it is scored by."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.config import TrainConfig
from asgat.data.dataset import Split
from asgat.training.metrics import macro_f1, micro_f1, roc_auc


class Objective:
    """Training loss, validation loss and score of one run, from the logits of all nodes.

    Labels of validation and test nodes do not enter the training loss.
    """

    def __init__(self, y: Tensor, split: Split, config: TrainConfig, metric: str) -> None:
        self.metric = metric
        self.train_nodes, self.val_nodes = (torch.from_numpy(part).to(y.device) for part in (split.train, split.val))
        self.train_labels, self.val_labels = y[self.train_nodes], y[self.val_nodes]
        self.weight = balanced_weights(self.train_labels, config.balance) if config.balanced else None

    def loss(self, logits: Tensor, chosen: Any = None) -> Tensor:
        """Mean training loss; ``chosen`` are positions among the training nodes, whose logits are then given."""
        if chosen is None:
            logits, labels, weight = logits.index_select(0, self.train_nodes), self.train_labels, self.weight
        else:
            labels = self.train_labels[chosen]
            weight = None if self.weight is None else self.weight[chosen] * (len(self.train_labels) / len(labels))
        if weight is None:
            return F.cross_entropy(logits, labels)
        return F.cross_entropy(logits, labels, reduction="none") @ weight.to(logits.dtype)

    def validate(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Validation loss and score, both in double precision."""
        logits = logits.index_select(0, self.val_nodes)
        return F.cross_entropy(logits, self.val_labels).double(), score(logits, self.val_labels, self.metric)


def balanced_weights(labels: Tensor, balance: float = 1.0) -> Tensor:
    r"""For every node :math:`n_c^{-b}`, with :math:`n_c` the size of its class, divided by their sum.

    A class has a total weight of :math:`n_c^{1 - b}`: with a ``balance`` b of 1 all classes weigh the same, with 0 all
    nodes do.
    """
    weights = torch.bincount(labels)[labels].double().pow(-balance)
    return weights / weights.sum()


def class_weights(sizes: Tensor, balance: float = 1.0) -> Tensor:
    """The :func:`balanced_weights` of a node of each class, [classes], from the number of nodes in each."""
    weights = sizes.double().clamp(min=1).pow(-balance)  # a class without nodes has no weight to divide
    return weights / (sizes * weights).sum()


def score(logits: Tensor, labels: Tensor, metric: str) -> Tensor:
    """The score of some nodes by a metric, higher is better, in double precision on their device.

    That of ``log_loss`` is minus the loss.
    """
    if metric == "roc_auc":
        return roc_auc(labels, torch.nan_to_num((logits[:, 1] - logits[:, 0]).double()))
    if metric == "log_loss":
        return -F.cross_entropy(logits, labels).double()
    if metric == "macro_f1":
        return mean_f1(logits.argmax(-1), labels, logits.size(-1))
    if metric != "micro_f1":
        raise AssertionError(f"there is no metric {metric!r}")
    return share((logits.argmax(-1) == labels).double().sum(), len(labels))


def mean_f1(prediction: Tensor, labels: Tensor, classes: int) -> Tensor:
    """:func:`~asgat.training.metrics.macro_f1` on the device; nothing waits for it."""
    names = torch.arange(classes, device=labels.device)
    predicted, true = prediction.unsqueeze(-1) == names, labels.unsqueeze(-1) == names
    both, total = (predicted & true).sum(0).double(), (predicted.sum(0) + true.sum(0)).double()
    return (2 * both / total.clamp(min=1)).sum() / (total > 0).sum()


def share(count: Tensor, total: int) -> Tensor:
    """``count / total``, rounded as Python rounds it, so that it can be compared with the baseline of a run.

    CUDA divides by a number, and takes means, by multiplying with the reciprocal; it divides by a tensor exactly.
    """
    return count / count.new_full((), total)


def scores_of(logits: Tensor, y: Tensor, split: Split, metric: str) -> dict[str, Any]:
    """Validation loss and score and the test scores of a trained model, from its logits."""
    val, test = (torch.from_numpy(part).to(y.device) for part in (split.val, split.test))
    truth, prediction = y[test].cpu().numpy(), logits[test].argmax(-1).cpu().numpy()
    return {
        "val_loss": F.cross_entropy(logits[val], y[val]).item(),
        "val_score": score(logits[val], y[val], metric).item(),
        "micro_f1": micro_f1(truth, prediction),
        "macro_f1": macro_f1(truth, prediction),
        "roc_auc": score(logits[test], y[test], metric).item() if metric == "roc_auc" else None,
    }


@torch.no_grad()
def evaluate(model: torch.nn.Module, inputs: tuple[Any, ...], y: Tensor, split: Split, metric: str) -> dict[str, Any]:
    """:func:`scores_of` the model's logits."""
    return scores_of(model.eval()(*inputs), y, split, metric)
