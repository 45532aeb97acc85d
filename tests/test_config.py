import dataclasses
import math
import types
import typing
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.config import APPNPConfig, ASGATConfig, GPRGNNConfig, TrainConfig
from asgat.errors import AsgatError
from asgat.nn.registry import MODELS

KINDS: list[type[TrainConfig]] = list(dict.fromkeys([TrainConfig, *(spec.config for spec in MODELS.values())]))
FIELDS = [
    (config, field, typing.get_type_hints(config)[field.name])
    for config in KINDS
    for field in dataclasses.fields(config)
]
every_field = pytest.mark.parametrize(
    ("config", "field", "hint"), FIELDS, ids=[f"{c.__name__}.{f.name}" for c, f, _ in FIELDS]
)


def kind(hint):
    """What a setting holds: the hint without its None."""
    return typing.get_args(hint)[0] if isinstance(hint, types.UnionType) else hint


def wrong_types(hint):
    """Values of other types than the setting's, a bool for a number among them."""
    wrong = ["word", object(), [1.5], {}, b"1", 1.5, True, 3, (1, 2), None, math.nan]
    one = kind(hint)
    if one is float:
        return [w for w in wrong if type(w) not in (float, int) and not (w is None and one is not hint)]
    if one is int:
        return [w for w in wrong if type(w) is not int and not (w is None and one is not hint)]
    if one is bool:
        return [w for w in wrong if type(w) is not bool]
    if typing.get_origin(one) is tuple:
        return [w for w in wrong if w != (1, 2)]
    return wrong


@every_field
def test_every_setting_has_a_meaning_and_a_valid_default(config, field, hint):
    assert field.metadata["help"]
    assert getattr(config(), field.name) == field.default


@every_field
def test_every_setting_refuses_other_types(config, field, hint):
    cases = wrong_types(hint)
    assert cases
    for value in cases:
        with pytest.raises(AsgatError, match=rf"^{field.name} must be "):
            config(**{field.name: value})


@every_field
def test_every_setting_keeps_to_its_range(config, field, hint):
    low, below, one = field.metadata["low"], field.metadata["below"], kind(hint)
    if one in (int, float):
        assert low is not None, "a number needs a range"
        step = 1 if one is int else 1e-13
        extra = {"order": 1} if field.name == "sampling_points" else {}
        with pytest.raises(AsgatError, match=rf"{field.name} must be (at least|positive)"):
            config(**{field.name: one(low - step)})
        lowest = 2 if field.name == "sampling_points" else one(low)
        assert getattr(config(**{field.name: lowest, **extra}), field.name) == lowest
    if below is not None:
        with pytest.raises(AsgatError, match=rf"{field.name} must be below {below:g}, but is {below}"):
            config(**{field.name: below})
    if one is float:
        for value in (math.inf, -math.inf, math.nan):
            with pytest.raises(AsgatError, match=rf"{field.name} must be"):
                config(**{field.name: value})


@every_field
def test_every_choice_is_accepted_and_others_are_named(config, field, hint):
    if typing.get_origin(hint) is not Literal:
        return
    for choice in typing.get_args(hint):
        assert getattr(config(**{field.name: choice}), field.name) == choice
    with pytest.raises(
        AsgatError, match=f"{field.name} must be one of {', '.join(typing.get_args(hint))}, not 'no-such'"
    ):
        config(**{field.name: "no-such"})


@every_field
def test_the_text_of_a_default_is_parsed_back(config, field, hint):
    text = str(config().to_dict()[field.name])
    parsed = config.parse(field.name, text)
    assert getattr(config(**{field.name: parsed}), field.name) == field.default
    assert type(parsed) is type(field.default)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("lr", "1e-3", 0.001),
        ("lr", "1", 1.0),
        ("hidden", "32", 32),
        ("root", "true", True),
        ("root", "False", False),
        ("root", "YES", True),
        ("root", "0", False),
        ("k", "none", None),
        ("k", "None", None),
        ("k", "7", 7),
        ("elu", "last", "last"),
        ("filter_hidden", "32,64,32", (32, 64, 32)),
        ("filter_hidden", "[32, 64]", (32, 64)),
        ("filter_hidden", "(8,)", (8,)),
        ("filter_hidden", "", ()),
    ],
)
def test_parse(key, text, value):
    parsed = ASGATConfig.parse(key, text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("hidden", "many", "hidden must be a whole number, not 'many'"),
        ("hidden", "1.5", "hidden must be a whole number, not '1.5'"),
        ("lr", "fast", "lr must be a number, not 'fast'"),
        ("root", "maybe", "root must be true or false, not 'maybe'"),
        ("k", "all", "k must be a whole number, not 'all'"),
        ("filter_hidden", "3,x", "filter_hidden must be whole numbers with commas, not '3,x'"),
        ("dropuot", "0.5", "Unknown setting 'dropuot'. Did you mean 'dropout'"),
    ],
)
def test_parse_errors(key, text, sentence):
    with pytest.raises(AsgatError, match=sentence):
        ASGATConfig.parse(key, text)


def test_numbers_take_their_setting_s_type():
    config = ASGATConfig(lr=1, filter_hidden=[3, 4], k="none")  # type: ignore[arg-type]
    assert type(config.lr) is float
    assert config.filter_hidden == (3, 4)
    assert config.k is None


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"order": 4, "sampling_points": 4}, r"sampling_points must be at least order \+ 1 = 5, not 4"),
        ({"filter_hidden": (3, 0)}, r"sizes of at least 1, but is \[3, 0\]"),
    ],
)
def test_settings_that_do_not_fit_together(values, sentence):
    with pytest.raises(AsgatError, match=sentence):
        ASGATConfig(**values)


CONFIGS = st.builds(
    ASGATConfig,
    lr=st.floats(1e-6, 1.0),
    dropout=st.floats(0.0, 0.99),
    k=st.none() | st.integers(1, 50),
    elu=st.sampled_from(["every", "hidden", "last", "none"]),
    root=st.booleans(),
    order=st.integers(1, 20),
    sampling_points=st.none() | st.integers(21, 40),
    filter=st.sampled_from(["mlp", "heat", "polynomial"]),
    filter_hidden=st.lists(st.integers(1, 64), max_size=3).map(tuple),
)


@given(CONFIGS)
def test_plain_values_give_the_same_settings_back(config):
    plain = config.to_dict()
    assert all(isinstance(v, (int, float, str, bool, list)) for v in plain.values()), "TOML and JSON can hold them"
    assert set(plain) == set(ASGATConfig.keys())
    assert ASGATConfig(**plain) == config


@pytest.mark.parametrize("config", [ASGATConfig, APPNPConfig, GPRGNNConfig])
def test_a_probability_is_at_most_1(config):
    assert config(alpha=1.0).alpha == 1.0
    with pytest.raises(AsgatError, match=r"alpha must be at most 1, but is 1\.01"):
        config(alpha=1.01)


def test_settings_cannot_be_changed_but_replaced():
    config = TrainConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.lr = 0.1  # type: ignore[misc]
    assert config.replace(lr=0.1) == TrainConfig(lr=0.1)
    with pytest.raises(AsgatError, match="lr must be positive, but is 0"):
        config.replace(lr=0)


@pytest.mark.parametrize(
    "value", [2**63, -(2**63) - 1, 10**400, 1 << 40_000], ids=["2^63", "-2^63-1", "10^400", "2^40000"]
)
@pytest.mark.parametrize("key", ["hidden", "lr", "k", "layers"])
def test_numbers_no_computer_counts_to_are_told(key, value):
    with pytest.raises(
        AsgatError, match=rf"^{key} must be a number a computer counts to, below 2\^63, but has \d+ bits"
    ):
        ASGATConfig(**{key: value})
    with pytest.raises(AsgatError, match="filter_hidden must be"):
        ASGATConfig(filter_hidden=(8, value))


def test_a_long_value_is_not_repeated_in_full():
    with pytest.raises(AsgatError) as told:
        ASGATConfig(filter="x" * 5000)  # type: ignore[arg-type]
    assert len(str(told.value)) < 300
