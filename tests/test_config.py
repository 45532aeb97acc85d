"""Every setting once: its meaning, its type, its range, its text and its way through TOML."""

import dataclasses
import math
import re
import tomllib
import types
import typing
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.config import GROUPS, LARGEST, POSITIVE, ASGATConfig, SGCConfig, SpectralConfig, TrainConfig
from asgat.errors import AsgatError
from asgat.files.atomic import to_toml
from asgat.nn.registry import MODELS

BASES: list[type[TrainConfig]] = [TrainConfig, SpectralConfig]
KINDS = list(dict.fromkeys([*BASES, *(spec.config for spec in MODELS.values())]))
FIELDS = [  # each where it is defined
    pytest.param(config, field, typing.get_type_hints(config)[field.name], id=f"{config.__name__}.{field.name}")
    for config in KINDS
    for field in dataclasses.fields(config)
    if field.name in vars(config)["__annotations__"]
]
VALUES = ["word", object(), [1.5], {}, b"1", 1.5, True, 3, (1, 2), None, math.nan, math.inf, -math.inf]


def accepted_types(kind: Any) -> tuple[type, ...]:
    """The types a setting of this kind is given as; a choice takes its own words only."""
    if typing.get_origin(kind) is Literal:
        return ()
    return {bool: (bool,), int: (int,), float: (int, float)}.get(kind, (tuple,))


@pytest.mark.parametrize(("config", "field", "hint"), FIELDS)
def test_every_setting(config, field, hint):
    name, default, bounds = field.name, field.default, field.metadata
    kind = typing.get_args(hint)[0] if isinstance(hint, types.UnionType) else hint

    def refused(value, match):
        with pytest.raises(AsgatError, match=rf"^{name} must {match}"):
            config(**{name: value})

    def kept(value):
        return getattr(config(**{name: value}), name)

    assert bounds["help"]
    assert bounds["group"] in GROUPS
    assert kept(default) == getattr(config(), name) == default

    for value in VALUES:
        fits = type(value) in accepted_types(kind) and not (isinstance(value, float) and not math.isfinite(value))
        if not fits and not (value is None and kind is not hint):
            refused(value, "be ")

    if kind in (int, float, tuple[int, ...]):
        low, high, below = (bounds.get(key) for key in ("low", "high", "below"))
        assert low is not None, "a number has a lower bound"
        assert high is not None or kind is float, "a count has an upper bound"
        wrap = (lambda number: (number,)) if kind == tuple[int, ...] else kind
        number = wrap(low)
        assert kept(number) == number
        step = 1 if kind is not float else POSITIVE / 10
        refused(wrap(low - step), "be positive" if low == POSITIVE else f"be at least {low:g}, but is")
        if high is not None:
            assert kept(wrap(high)) == wrap(high)
            refused(wrap(high + (1 if kind is not float else 0.01)), f"be at most {high}, but is")
        if below is not None:
            refused(below, f"be below {below:g}, but is {below}")
        if kind is not float:
            for huge in (2**63, -(2**63) - 1, 1 << 40_000):
                refused(wrap(huge), r"fit in 64 bits, but has \d+")
    elif typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        assert [kept(choice) for choice in choices] == list(choices)
        refused("no-such", re.escape(f"be one of {', '.join(choices)}, not 'no-such'"))

    parsed = config.parse(name, str(config().to_dict()[name]))
    assert type(parsed) is type(default)
    assert kept(parsed) == default
    assert kept(tomllib.loads(to_toml(config().to_dict()))[name]) == default


def test_every_setting_is_tested():
    assert {str(param.id).split(".")[1] for param in FIELDS} == set().union(*(config.keys() for config in KINDS))


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
        ("filter_hidden", "3,x", "filter_hidden must be whole numbers separated by commas, not '3,x'"),
        ("dropuot", "0.5", "Unknown setting 'dropuot'. Did you mean 'dropout'"),
        ("damping", "false", "damping is no longer a setting but an argument of ChebyshevOperator; leave it out"),
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
        ({"filter_hidden": (3, 0)}, "filter_hidden must be at least 1, but is 0"),
        ({"filter_hidden": [8] * 101}, "filter_hidden must be a list of at most 100 whole numbers"),
        ({"k": 4611686018427387904}, f"k must be at most {LARGEST}, but is 4611686018427387904"),
        ({"order": 20_000}, "order must be at most 1000, but is 20000"),
    ],
)
def test_values_that_would_take_all_memory(values, sentence):
    with pytest.raises(AsgatError, match=sentence):
        ASGATConfig(**values)


@pytest.mark.parametrize(("key", "default"), [(key, value) for key, (value, _) in ASGATConfig.PRUNED.items()])
def test_settings_of_earlier_versions(key, default):
    assert key not in ASGATConfig.keys()  # noqa: SIM118
    assert ASGATConfig.without_pruned({"lr": 0.5, key: default}) == {"lr": 0.5}
    other = {"none": 20, "bound": "lanczos", "False": True}.get(str(default)) or 2 * default
    for read in (lambda: ASGATConfig.without_pruned({key: other}), lambda: ASGATConfig.parse(key, str(other))):
        with pytest.raises(AsgatError, match=rf"^{key} is no longer a setting( but .*)?; .* {default}\.$"):
            read()


def test_a_setting_one_model_lost_is_kept_by_others():
    assert "steps" in ASGATConfig.PRUNED
    assert SGCConfig.without_pruned({"steps": 7}) == {"steps": 7}


CONFIGS = st.builds(
    ASGATConfig,
    lr=st.floats(1e-6, 1.0),
    dropout=st.floats(0.0, 0.99),
    k=st.none() | st.integers(1, 50),
    elu=st.sampled_from(["every", "hidden", "last", "none"]),
    root=st.booleans(),
    order=st.integers(1, 20),
    filter=st.sampled_from(["mlp", "heat", "polynomial"]),
    filter_hidden=st.lists(st.integers(1, 64), max_size=3).map(tuple),
)


@given(CONFIGS)
def test_settings_survive_plain_values_and_toml(config):
    plain = config.to_dict()
    assert all(isinstance(v, (int, float, str, bool, list)) for v in plain.values()), "TOML and JSON can hold them"
    assert set(plain) == set(ASGATConfig.keys())
    assert ASGATConfig(**plain) == ASGATConfig(**tomllib.loads(to_toml(plain))) == config


def test_settings_cannot_be_changed_but_replaced():
    config = TrainConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.lr = 0.1  # type: ignore[misc]
    assert config.replace(lr=0.1) == TrainConfig(lr=0.1)
    with pytest.raises(AsgatError, match="lr must be positive, but is 0"):
        config.replace(lr=0)


def test_a_long_value_is_not_repeated_in_full():
    with pytest.raises(AsgatError) as caught:
        ASGATConfig(filter="x" * 5000)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300
