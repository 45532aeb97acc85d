"""How near the gradients of mini-batches are to that of a full batch: numbers of `docs/scale-minibatches.md`.

python benchmarks/batch_gradients.py pubmed --batch-size 2048
python benchmarks/batch_gradients.py 50000 --batch-size 2048 --set layers=1

A model is trained by mini-batches for some epochs, without dropout. At its weights the gradients of all batches of an
epoch are summed, weighted by their sizes, and compared with the gradient of the full batch: right after an evaluation,
and at the end of the next epoch, when what batches take from the last evaluation is the oldest.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from asgat.config import TrainConfig
from asgat.data import contextual_sbm, load_dataset
from asgat.nn.registry import model_spec
from asgat.recipe import load_config
from asgat.training.minibatch import MinibatchProgram
from asgat.training.run_state import Job, Run
from asgat.training.runner import make_task, run_split

GROUPS = {"filters": "filters.filter", "attention": "attention.filter", "input": "in_weight", "all": ""}


def compare(data: Any, model: str, config: TrainConfig, epochs: int) -> list[dict[str, Any]]:
    task = make_task(data, model, config, torch.device("cpu"))
    program = MinibatchProgram(task, [Run(Job(run_split(data, 0), 0, config), 0.0)], [None])
    for _ in range(epochs):
        program.epoch()
    rows = [{"state": "after an evaluation", **cosines(program)}]
    program.step(None)
    return [*rows, {"state": "an epoch later", **cosines(program)}]


def cosines(program: MinibatchProgram) -> dict[str, float]:
    """The cosine of the two gradients, for all parameters and for some, and the ratio of their lengths."""
    program.set_training(True)
    nodes, objective = program.objective.train_nodes, program.objective
    names = [name for name, _ in program.model.named_parameters()]
    total = [torch.zeros_like(parameter) for parameter in program.parameters]
    for chosen in torch.split(torch.randperm(len(nodes)), program.batch_size):
        loss = objective.loss(program.batched.logits(nodes[chosen]), chosen)
        for own, part in zip(total, gradients(loss, program.parameters), strict=True):
            own += part * (len(chosen) / len(nodes))
    whole = gradients(objective.loss(program.model(*program.task.inputs)), program.parameters)
    found = {}
    for group, word in GROUPS.items():
        one, other = (
            torch.cat(
                [part.flatten() for name, part in zip(names, parts, strict=True) if word in name] or [torch.zeros(1)]
            )
            for parts in (total, whole)
        )
        found[group] = float(torch.nn.functional.cosine_similarity(one, other, dim=0))
    return {**found, "length": float(one.norm() / other.norm())}


def gradients(loss: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help="a name, or the number of nodes of a block model")
    parser.add_argument("--model", default="asgat-deep")
    parser.add_argument("--batch-size", type=int, default=2048)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    block_model = options.dataset.isdecimal()
    if block_model:
        data = contextual_sbm(num_nodes=int(options.dataset), mean_degree=10.0, num_features=64, seed=0)
    else:
        data = load_dataset(options.dataset)
    settings = {"dropout": "0", "form": "table", **dict(pair.split("=", 1) for pair in options.set)}
    config = model_spec(options.model).config
    values = {key: config.parse(key, value) for key, value in settings.items()}
    values["batch_size"] = options.batch_size
    for row in compare(data, options.model, load_config(data.name, options.model, values), options.epochs):
        print(
            json.dumps(
                {"dataset": options.dataset, **{k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}}
            )
        )


if __name__ == "__main__":
    main()
