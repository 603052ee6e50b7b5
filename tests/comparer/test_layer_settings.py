"""Settings of a layer that two lanes do not share."""

from __future__ import annotations

from typing import Any

from tests.cases import each
from tests.comparer.inside import part

layer_settings = part("judging.layer_settings")


def rows(one: Any, other: Any) -> list[tuple[str, str, str]]:
    found = layer_settings.differences(one, other)
    return [(row["setting"], row["value_a"], row["value_b"]) for row in found]


@each(
    ("one", "other", "expected"),
    [
        ({"units": 4, "use_bias": True}, {"units": 4, "use_bias": True}, []),
        ({"units": 4, "rate": 0.5}, {"units": 5, "rate": 0.5}, [("units", "4", "5")]),
        ({"act": "relu"}, {}, [("act", '"relu"', "not set")]),
        ({}, {"act": None}, [("act", "not set", "null")]),
        (
            {"a": 1, "b": 2},
            {"c": 3, "b": 4},
            [("a", "1", "not set"), ("b", "2", "4"), ("c", "not set", "3")],
        ),
        (
            {"kernel": {"class_name": "Zeros", "config": {"gain": 1}}},
            {"kernel": {"class_name": "Ones", "config": {"gain": 2}}},
            [("kernel.class_name", '"Zeros"', '"Ones"'), ("kernel.config.gain", "1", "2")],
        ),
        ({"config": {}}, {"config": {"gain": 1}}, [
            ("config", "{}", "not set"), ("config.gain", "not set", "1")
        ]),
        ({"list": [{"b": 1, "a": 2}]}, {"list": []}, [("list", '[{"a": 2, "b": 1}]', "[]")]),
    ],
)  # fmt: skip
def test_what_differs_is_named_with_both_values(one: Any, other: Any, expected: Any) -> None:
    assert rows(one, other) == expected


@each("name", ["name", "module", "registered_name", "build_config", "trainable", "seed"])
def test_what_says_nothing_about_the_computation_is_left_out(name: str) -> None:
    assert rows({name: 1, "config": {name: 3}}, {name: 2, "config": {name: 4}}) == []


def test_long_values_are_shown_in_brief() -> None:
    (row,) = rows({"text": "a" * 58}, {"text": "b" * 59})
    assert row == ("text", '"' + "a" * 58 + '"', '"' + "b" * 56 + "...")
