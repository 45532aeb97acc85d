"""How the CPU kernels reach the memory of tensors where they are not compiled."""

import numba
import numpy as np
import pytest

from asgat.kernels.cpu.jit import _interpreted_pointer


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_interpreted_kernel_sees_and_writes_the_memory_at_an_address(dtype):
    array = np.arange(12, dtype=dtype).reshape(2, 3, 2)
    seen = numba.carray(_interpreted_pointer(array.ctypes.data, np.empty(0, dtype)), array.shape)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(seen, array)
    assert seen.dtype == dtype
    seen[1, 2, 0] = 7
    assert array[1, 2, 0] == 7
