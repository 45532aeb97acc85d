"""Every check of scikit-learn's ``check_estimator``, on tables of features: graphs without edges."""

import os
import subprocess
import sys

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from asgat import ASGATClassifier

# Checks that cannot apply to graphs, each with the reason. There is none: a table is read as a graph without edges.
CANNOT_APPLY: dict[str, str] = {}
SMALL = ASGATClassifier(hidden=16, heads=2, epochs=40)
NEEDS_SCIPY_ARRAY_API = "check_array_api_input"  # runs if the variable is set before SciPy is imported


@pytest.mark.filterwarnings("ignore:There are no edges")
@pytest.mark.filterwarnings("ignore:'x[0-9]+'.* the class of training and validation nodes, as a copy")
@parametrize_with_checks([SMALL], expected_failed_checks=lambda _: CANNOT_APPLY, xfail_strict=True)
def test_check(estimator, check):
    check(estimator)


def names_of_checks():
    return {check.func.__name__ for _, check in test_check.pytestmark[0].args[1]}


def test_only_existing_checks_are_listed():
    assert set(CANNOT_APPLY) | {NEEDS_SCIPY_ARRAY_API} <= names_of_checks()
    assert len(names_of_checks()) > 45


def test_the_check_that_needs_an_environment_variable():
    code = (
        "from sklearn.utils import estimator_checks as checks\n"
        "from tests.estimator.test_sklearn_checks import SMALL\n"
        f"checks.{NEEDS_SCIPY_ARRAY_API}('ASGATClassifier', SMALL, array_namespace='numpy', "
        "expect_only_array_outputs=False)\n"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
