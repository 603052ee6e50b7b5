"""Wishes are read as people write them."""

from __future__ import annotations

import pytest

from tests.cases import each
from whygpu.errors import UsageError
from whygpu.model.install_plan import Wish
from whygpu.planner.wishes import allows, keras_backend, parse, parse_all


@each(
    ("text", "wish"),
    [
        ("tensorflow", Wish("tensorflow", "")),
        ("tensorflow==2.15", Wish("tensorflow", "==2.15.*")),
        ("tensorflow==2.15.1", Wish("tensorflow", "==2.15.1")),
        ("tensorflow==2", Wish("tensorflow", "==2.*")),
        ("TensorFlow >= 2.14, != 2.16", Wish("tensorflow", ">= 2.14, !=2.16.*")),
        ("tensorflow[and-cuda]==2.15", Wish("tensorflow", "==2.15.*")),
        ("pytorch", Wish("torch", "")),
        ("tf", Wish("tensorflow", "")),
        ("tensorflow_gpu<2", Wish("tensorflow", "<2")),
        ("onnxruntime-gpu", Wish("onnxruntime", "")),
        ("onnxruntime", Wish("onnxruntime", "")),
        ("cupy>=13", Wish("cupy", ">=13")),
    ],
)
def test_a_wish(text: str, wish: Wish) -> None:
    assert parse(text) == wish


def test_a_short_version_means_its_patch_releases() -> None:
    wish = parse("tensorflow==2.15")
    assert allows(wish, "2.15.1")
    assert not allows(wish, "2.16.0")


@each(
    "text",
    ["tensroflow", "tensorflow=2.15", "tensorflow==new", "==2", "", f"torch=={'9' * 5000}"],
)
def test_what_is_no_wish(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


def test_a_misspelt_framework_is_met_with_the_one_that_was_meant() -> None:
    with pytest.raises(UsageError, match="did you mean tensorflow"):
        parse("tensorflo==2.15")


def test_another_package_is_not_taken_for_a_mistyped_framework() -> None:
    with pytest.raises(UsageError, match=r"^'numpy': expected one of"):
        parse("numpy")
    with pytest.raises(UsageError, match="did you mean tensorflow"):
        parse("ensorflow")


def test_nothing_wished_for_is_tensorflow() -> None:
    assert parse_all([]) == (Wish("tensorflow", ""),)


def test_keras_alone_gets_its_default_backend() -> None:
    assert [wish.framework for wish in parse_all(["keras"])] == ["keras", "tensorflow"]
    assert [wish.framework for wish in parse_all(["keras", "jax"])] == ["keras", "jax"]

    assert [wish.framework for wish in parse_all(["keras", "torch"])] == ["keras", "torch"]
    assert [wish.framework for wish in parse_all(["cupy"])] == ["cupy"]


@each(
    ("wishes", "backend"),
    [
        (["keras"], "tensorflow"),
        (["keras", "jax"], "jax"),
        (["torch", "keras", "jax"], "torch"),
        (["jax", "tensorflow", "keras"], "tensorflow"),
        (["jax", "torch"], None),
        (["cupy"], None),
    ],
)
def test_keras_computes_with_its_default_if_that_is_wished_for_else_with_the_first(
    wishes: list[str], backend: str | None
) -> None:
    assert keras_backend(parse_all(wishes)) == backend


def test_a_framework_wished_for_twice_is_an_error() -> None:
    with pytest.raises(UsageError, match="given twice"):
        parse_all(["tf>=2.14", "tensorflow<2.17"])
