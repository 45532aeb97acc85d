"""What forked commands and ranks import, and numba's CPU target; imported by the fork server alone."""

from importlib import import_module

from numba.core.registry import cpu_target

PACKAGES = "sklearn.base scipy.stats matplotlib.pyplot pydantic.fields rich.progress"
ASGAT = """
cli training.runner estimator.classifier estimator.predictions estimator.user_data report
disk.converter distributed.trainer nn.deep nn.from_config nn.baselines.gcn nn.baselines.mlp
tables.exact_kernels kernels.cpu.select kernels.cpu.gather_sum kernels.cpu.dropout kernels.cpu.row_softmax
tuning.evaluation tuning.tuner
"""

cpu_target.target_context.refresh()
for name in [*PACKAGES.split(), "tests.kill.campaign", "tests.distributed.ranks"]:
    import_module(name)
for name in ASGAT.split():
    import_module(f"asgat.{name}")
import_module("optuna.samplers")  # last: an extra, and the server ignores the rest where it is missing
