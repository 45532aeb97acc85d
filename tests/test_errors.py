import pytest

from asgat.errors import AsgatError, suggest


def test_is_a_value_error():
    with pytest.raises(ValueError, match="a sentence"):
        raise AsgatError("a sentence")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("texs", "Did you mean 'texas'? Known are: cora, texas."),
        ("coora", "Did you mean 'cora'? Known are: cora, texas."),
        ("zzz", "Known are: cora, texas."),
        ("", "Known are: cora, texas."),
    ],
)
def test_suggest_names_the_nearest_and_all(name, sentence):
    assert suggest(name, ["cora", "texas"]) == sentence
