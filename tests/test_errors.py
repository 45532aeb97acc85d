import pytest

from asgat.errors import AsgatError, brief, counted, listed, shown, suggest


def test_is_a_value_error():
    with pytest.raises(ValueError, match="a sentence"):
        raise AsgatError("a sentence")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("texs", "Did you mean 'texas'? Choose from: cora, texas."),
        ("coora", "Did you mean 'cora'? Choose from: cora, texas."),
        ("zzz", "Choose from: cora, texas."),
        ("", "Choose from: cora, texas."),
    ],
)
def test_suggest_names_the_nearest_and_all(name, sentence):
    assert suggest(name, ["cora", "texas"]) == sentence


def test_many_names_are_listed_in_part():
    assert listed([]) == ""
    assert listed(["a", "b"]) == "a, b"
    assert listed("abcde") == "a, b, c, d, e"
    assert listed(range(1006), 6) == "0, 1, 2, 3, 4, 5 and 1,000 more"


def test_values_are_shown_short_whatever_they_are():
    assert shown("a") == "'a'"
    assert shown([1] * 1000) == f"{str([1] * 1000)[:100]}…"
    assert shown(1 << 40_000) == "a int too large to be shown", "Python refuses to write it"


def test_what_others_say_is_one_line():
    assert brief(ValueError("a\n\tb   c")) == "a b c"
    assert brief("x" * 300) == "x" * 300
    assert brief("x" * 301) == "x" * 300 + "…"


def test_a_number_is_named_with_its_noun():
    assert (counted(1, "head"), counted(2, "head"), counted(1200, "is", "are")) == ("1 head", "2 heads", "1,200 are")
