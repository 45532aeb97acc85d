"""Several models of one form as one module, so that many runs are one tensor program."""

import copy
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.kernels.dropout import dropout_seeds

Model = TypeVar("Model", bound=nn.Module)


def stackable(model: nn.Module) -> bool:
    """Whether the model's ``forward`` knows stacked weights."""
    return bool(getattr(model, "stackable", False))


def stack(models: Sequence[Model]) -> Model:
    r"""R models that may differ in weights and dropout as one module of the same class.

    Its parameters and buffers have the models' names and a leading dimension, [R, ...]; its ``forward`` takes what a
    single model's takes and returns [R, ...]. Nothing is mixed between runs: on the CPU, logits and gradients of each
    are to the last bit those of the model alone, whatever the other runs are. Runs have to be stacked again to change
    their number. The stack shares nothing with the models.

    Example:
        >>> from asgat.nn import ASGAT
        >>> stacked = stack([ASGAT(8, 16, 3), ASGAT(8, 16, 3, dropout=0.5)])
        >>> stacked(torch.randn(5, 8), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
        torch.Size([2, 5, 3])
    """
    if not models or not all(stackable(model) and type(model) is type(models[0]) for model in models):
        kinds = ", ".join(sorted({type(model).__name__ for model in models})) or "no model"
        raise AsgatError(f"Only models of one class that supports stacking can be stacked, not {kinds}.")
    stacked = copy.deepcopy(models[0])
    for target, *owners in zip(stacked.modules(), *(model.modules() for model in models), strict=True):
        for kind in ("_parameters", "_buffers"):
            for name, value in vars(target)[kind].items():
                if value is not None:
                    values = torch.stack([vars(owner)[kind][name].detach() for owner in owners])
                    learned = isinstance(value, nn.Parameter)
                    vars(target)[kind][name] = nn.Parameter(values, value.requires_grad) if learned else values
        if isinstance(getattr(target, "dropout", None), int | float):
            target.dropout = tuple(float(owner.dropout) for owner in owners)
    return stacked


@torch.no_grad()
def load_run_state(stacked: nn.Module, row: int, state: dict[str, Tensor]) -> None:
    """Gives one run the weights of a single model's ``state_dict``, in place."""
    held = stacked.state_dict()
    if held.keys() != state.keys():
        raise AsgatError(f"The state does not fit the model: {sorted(held.keys() ^ state.keys())} are not in both.")
    for name, value in held.items():
        value[row].copy_(state[name])


@torch.no_grad()
def count_dropouts(stacked: nn.Module, *inputs: Any) -> int:
    """How many seeds one training ``forward`` on these inputs takes from :func:`~asgat.kernels.dropout_seeds`.

    Found by running it once.
    """
    count = 0
    parameter = next(stacked.parameters())

    def seeds() -> Tensor:
        nonlocal count
        count += 1
        return torch.zeros(parameter.size(0), dtype=torch.int64, device=parameter.device)

    training = stacked.training
    with dropout_seeds(seeds):
        stacked.train()(*inputs)
    stacked.train(training)
    return count
