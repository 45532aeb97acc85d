import subprocess
import sys

from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier

from asgat.estimator.sklearn_base import SklearnClassifier


def test_in_a_new_process_scikit_learn_comes_with_the_first_object():
    code = (
        "import pickle, sys\n"
        "from asgat.estimator.sklearn_base import SklearnClassifier\n"
        "class Some(SklearnClassifier):\n"
        "    def __init__(self, a=1): self.a = a\n"
        "    def fit(self, X, y, weight=None): return self\n"
        "class Other(Some):\n"
        "    pass\n"
        "assert 'sklearn' not in sys.modules\n"
        "one = pickle.loads(pickle.dumps(Other(a=3)))\n"
        "from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier\n"
        "assert isinstance(one, BaseEstimator) and issubclass(Some, ClassifierMixin)\n"
        "assert (clone(one).a, clone(one).set_params(a=4).a, Some(2).a) == (3, 4, 2)\n"
        "assert is_classifier(one) and repr(one) == 'Other(a=3)'\n"
        "assert hasattr(Some, 'set_fit_request') and hasattr(Other, 'set_fit_request')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_subclass_is_an_estimator():
    class Some(SklearnClassifier):
        def __init__(self, a=1):
            self.a = a

    one = Some(a=5)
    assert isinstance(one, BaseEstimator)
    assert isinstance(one, ClassifierMixin)
    assert clone(one).get_params() == {"a": 5}
    assert is_classifier(one)
