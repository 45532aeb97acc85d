"""scikit-learn's base classes, for a class whose import must not import scikit-learn."""

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator as NotImported
else:

    class NotImported:
        """In place of scikit-learn's classes; ``object`` itself could not be replaced."""


class SklearnClassifier(NotImported):  # type: ignore[misc]
    """A ``ClassifierMixin`` and ``BaseEstimator`` from its first object on; importing them takes as long as PyTorch."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        if NotImported in SklearnClassifier.__bases__:
            from sklearn.base import BaseEstimator, ClassifierMixin

            SklearnClassifier.__bases__ = (ClassifierMixin, BaseEstimator)
            for known in cls.__mro__[: cls.__mro__.index(SklearnClassifier)]:
                known.__init_subclass__()  # as it would have been called for a subclass of these
        return object.__new__(cls)
