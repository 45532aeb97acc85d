"""A step of Adam for many parameters at once; on CUDA only."""

from asgat.kernels.backend import kernel

BLOCK = 1024  # entries that one program updates at most
JOINED = 1 << 16  # entries up to which gradients are joined: copying larger ones takes longer than a launch

adam_step = kernel("adam", "adam_step")
