"""The truth about speed, memory and error, measured in one run with what they are compared to."""

from asgat.bench.certificate import bench_certificate
from asgat.bench.epoch import bench_epoch
from asgat.bench.scale import bench_scale

__all__ = ["bench_certificate", "bench_epoch", "bench_scale"]
