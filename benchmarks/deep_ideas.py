"""Tries ideas for asgat-deep on validation nodes: no test score is kept or printed.

    python benchmarks/deep_ideas.py chameleon chameleon-directed --out trials.jsonl

Every idea and the model as it is are trained as one network with the settings of the recipe, with the same splits and
seeds and by the same program, so that scores can be compared in pairs. The rule is in docs/deep-ideas.md.
Trials that the file already has are not run again. Without a data set the table of the file is printed.
"""

import argparse
import json
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data import Dataset, load_dataset
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.attention import SparseAttention
from asgat.nn.deep import ASGATDeep
from asgat.nn.rows import by_copy
from asgat.recipe import load_config
from asgat.spectral import SpectralOperator
from asgat.threads import set_threads
from asgat.training.loop import train_runs
from asgat.training.program import Program, Task
from asgat.training.run_state import Job, Run, RunResult, baseline_score
from asgat.training.runner import make_task

BASE = "as it is"
IDEAS: dict[str, dict[str, Any]] = {
    BASE: {},
    "learned temperature": {"scores": "temperature"},
    "feature term": {"scores": "feature"},
    "signed, by the sum of sizes": {"scores": "signed-sum"},
    "signed, by k": {"scores": "signed-k"},
    "BatchNorm": {"batch_norm": True},
    "decay of adjacency rows x 10": {"decay": ("adjacency", 10)},
    "decay of adjacency rows x 0.1": {"decay": ("adjacency", 0.1)},
    "decay of filters x 0": {"decay": ("filters", 0)},
    "decay of filters x 10": {"decay": ("filters", 10)},
    "decay of dense layers x 10": {"decay": ("dense", 10)},
    "decay of dense layers x 0.1": {"decay": ("dense", 0.1)},
}
# Of search 12, trial 9: Texas has no recipe of asgat-deep; of its trials the one with attention and no dropped idea.
TEXAS = {"hidden": 64, "heads": 8, "k": 40, "order": 8, "channels": "attention+filters", "dropout": 0.5, "lr": 0.025}
TEXAS |= {"weight_decay": 0.076, "self_loops": "add", "epochs": 400, "patience": 60}
WIDTH = 8  # of the feature term, per head


class IdeaConv(ASGATConv):
    """The layer of a trained block, with other weights of the k nodes that it keeps."""

    scores: str
    of_node: Tensor
    of_other: Tensor

    def add(self, scores: str) -> None:
        """Adds the weights of an idea. One factor is zero, so that training starts from the model as it is."""
        self.scores = scores
        width = self.operators.copies * self.heads * (WIDTH if scores == "feature" else 1)
        if scores in ("feature", "temperature"):
            self.of_node = nn.Parameter(torch.zeros(self.in_channels, width))
        if scores == "feature":
            self.of_other = nn.Parameter(torch.zeros(self.in_channels, width))
            with torch.random.fork_rng(devices=[]):  # all ideas have the same random numbers for dropout
                nn.init.xavier_uniform_(self.of_node)

    def forward(self, x: Tensor | SparseFeatures, edge_index: Any, *args: Any, **options: Any) -> Any:
        assert isinstance(x, Tensor)
        assert isinstance(edge_index, SpectralOperator)
        found = self.attention(edge_index)
        return super().forward(x, edge_index, attention=self.changed(found, x))

    def changed(self, found: SparseAttention, x: Tensor) -> SparseAttention:
        assert found._score is not None
        kept = found._score > -torch.inf
        score = found._score.where(kept, 0.0)  # before the products, whose gradients would be NaN
        if self.scores.startswith("signed"):
            size = score.abs().sum(-1, keepdim=True).clamp(min=1e-12) if self.scores == "signed-sum" else score.size(-1)
            return SparseAttention(found.index, score / size, found.num_nodes)
        own = self.of_heads(x @ self.of_node)
        if self.scores == "temperature":
            score = score * own.exp()
        else:
            other, head = self.of_heads(x @ self.of_other), torch.arange(self.heads).view(-1, 1, 1)
            score = score + (own.unsqueeze(-2) * other[head, found.index.long()]).sum(-1) / WIDTH**0.5
        return SparseAttention(found.index, None, found.num_nodes, _score=score.where(kept, -torch.inf))

    def of_heads(self, rows: Tensor) -> Tensor:
        """[N, copies · heads · F] as [heads, copies · N, F]."""
        own = by_copy(rows, self.operators.copies)
        return own.view(len(own), self.heads, -1).transpose(0, 1)


def changed(model: nn.Module, scores: str | None = None, batch_norm: bool = False) -> ASGATDeep:
    """The model with an idea; its other weights are drawn as before."""
    assert isinstance(model, ASGATDeep)
    for conv in model.convs if scores else []:
        conv.__class__ = IdeaConv
        conv.add(scores)  # type: ignore[operator]
    if batch_norm:
        *norms, last = (nn.BatchNorm1d(model.norm_weight.numel()) for _ in range(len(model.blocks) + 1))
        model.norms = nn.ModuleList([*norms, last])
        for block, norm in zip(model.each_block(), norms, strict=True):
            vars(block)["normalise"] = partial(without_operator, norm)
        vars(model)["decode"] = lambda h, operator: last(h) @ model.out_weight + model.out_bias
    return model


def without_operator(norm: nn.Module, h: Tensor, operator: SpectralOperator) -> Tensor:
    return cast(Tensor, norm(h))


class IdeaProgram(Program):
    """Trains one run, with a weight decay of its own for some weights."""

    decay: tuple[str, float] | None = None

    def step(self) -> Tensor:
        config = self.run.job.config
        if self.decay is not None:  # before AdamW's own decay, as a factor that makes the two the wanted one
            part, by = self.decay
            own = config.lr * config.weight_decay
            with torch.no_grad():
                for value in parts_of(self.model, part):
                    value.mul_((1 - by * own) / (1 - own))
        return super().step()


def parts_of(model: nn.Module, part: str) -> list[Tensor]:
    """The weights of a part: responses of filters, adjacency rows, or all other matrices."""
    assert isinstance(model, ASGATDeep)
    if part == "adjacency":
        return [model.in_weight[model.in_channels :]]
    of_filters = {name: value for name, value in model.named_parameters() if ".filter." in name}
    if part == "filters":
        return list(of_filters.values())
    others = [v for name, v in model.named_parameters() if name not in of_filters and v.dim() == 2]
    return [v[: model.in_channels] if v is model.in_weight else v for v in others]


def measure(dataset: Dataset, task: Task, config: TrainConfig, idea: str, i: int, seed: int) -> dict[str, Any]:
    """The validation score of one training, at the epoch that early stopping keeps."""
    options = dict(IDEAS[idea])
    program = type("ProgramOfIdea", (IdeaProgram,), {"decay": options.pop("decay", None)})
    own = replace(task, build=lambda config: changed(task.build(config), **options))
    run = Run(Job(dataset.splits[i], seed, config, i), baseline_score(dataset.y, dataset.splits[i], task.metric))
    list(train_runs(own, [run], make_program=program))
    outcome = run.outcome()
    figures = (
        {"val": outcome.val_score, "epochs": outcome.epochs, "seconds": round(outcome.seconds, 1)}
        if isinstance(outcome, RunResult)
        else {"error": str(outcome)}
    )
    return {"dataset": dataset.name, "idea": idea, "split": i, "seed": seed, **figures}


def table(rows: list[dict[str, Any]]) -> str:
    """Mean validation score of the model as it is, and the ideas' differences with standard errors, in percent."""
    scores = {(row["dataset"], row["idea"], row["split"], row["seed"]): 100 * row["val"] for row in rows}
    names = list(dict.fromkeys(name for name, *_ in scores))
    lines = ["| idea | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    for idea in IDEAS:
        cells = []
        for name in names:
            keys = [key[2:] for key in scores if key[:2] == (name, idea) and (name, BASE, *key[2:]) in scores]
            own, base = (np.array([scores[name, which, *key] for key in keys]) for which in (idea, BASE))
            gain, many = own - base, len(keys) > 1
            error = gain.std(ddof=1) / len(keys) ** 0.5 if many else 0.0
            cells.append(
                "" if not many else f"{own.mean():.2f}" if idea == BASE else f"{gain.mean():+.2f} ± {error:.2f}"
            )
        lines.append(f"| {idea} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*")
    parser.add_argument("--ideas", nargs="*", default=list(IDEAS), choices=list(IDEAS))
    parser.add_argument("--splits", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--epochs", type=int, help="fewer epochs, for a test of this script")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, one added for every training")
    given = parser.parse_args()
    set_threads(1)
    rows = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    known = {(row["dataset"], row["idea"], row["split"], row["seed"]) for row in rows}
    for name in given.datasets:
        changes = {**(TEXAS if name == "texas" else {}), **({"epochs": given.epochs} if given.epochs else {})}
        dataset, config = load_dataset(name), load_config(name, "asgat-deep", {**changes, "members": 1})
        task = make_task(dataset, "asgat-deep", config, torch.device("cpu"))
        for seed, i, idea in product(given.seeds, given.splits, given.ideas):
            if (name, idea, i, seed) in known or ("adjacency" in idea and not getattr(config, "adjacency", False)):
                continue
            rows.append(measure(dataset, task, config, idea, i, seed))
            print(json.dumps(rows[-1]), flush=True)
            with given.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
