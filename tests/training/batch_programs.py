"""Programs on a small graph, of full batches and of mini-batches, in double precision."""

from typing import Any

import torch

from asgat.data.synthetic import contextual_sbm
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.registry import make_config, model_spec
from asgat.training.inputs import make_inputs
from asgat.training.minibatch import MinibatchProgram
from asgat.training.program import Program, Task
from asgat.training.run_state import Job, Run

DATA = contextual_sbm(num_nodes=120, num_features=6, signal=0.8, seed=2)
PLAIN: dict[str, Any] = dict(
    form="table", order=4, heads=2, hidden=4, k=3, candidates=6, dropout=0.0, layers=3, normalize_features=False
)
DTYPE = torch.float64


def make_program(kind: type[Program], model: str, changes: dict[str, Any], sparse: bool = False) -> Program:
    config = make_config(model, **{**PLAIN, **changes})
    x, operator = make_inputs(DATA, model, config, torch.device("cpu"))
    if sparse:
        x = SparseFeatures.from_dense(DATA.x)
    spec = model_spec(model)
    inputs = x.to(dtype=DTYPE), operator.to(dtype=DTYPE)
    task = Task(lambda own: spec.make(own, 6, 2, 120).to(DTYPE), inputs, torch.from_numpy(DATA.y))
    return kind(task, [Run(Job(DATA.splits[0], 5, config), 0.5)], [None])


def full(model: str, changes: dict[str, Any], sparse: bool = False) -> Program:
    return make_program(Program, model, changes, sparse)


def batched(model: str, batch_size: int, changes: dict[str, Any] | None = None, sparse: bool = False) -> Any:
    return make_program(MinibatchProgram, model, {**(changes or {}), "batch_size": batch_size}, sparse)
