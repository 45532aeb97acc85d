"""One reproducible hypothesis profile for all tests."""

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.strategies", "tests.dense", "tests.spectral.conformance")

settings.register_profile(
    "asgat",
    deadline=None,  # the first call into torch takes its time
    max_examples=40,
    derandomize=True,
    database=None,
    # Conformance tests are inherited by one class per operator, which is what the check warns of.
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)
settings.load_profile("asgat")
