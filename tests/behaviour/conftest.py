"""Commands run in the process of the tests, on one thread."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # networks this small are faster so, and their numbers do not depend on the machine's cores
    yield
    torch.set_num_threads(before)
