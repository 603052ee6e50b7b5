"""The Keras that an import gives, and the backend it will use."""

from __future__ import annotations

import pathlib

import pytest

from tests.collectors.frameworks.scenes import collect, only
from tests.collectors.sites import install, write
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.target import KerasSetup


@pytest.fixture(autouse=True)
def keras_home(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    for name in ("KERAS_BACKEND", "KERAS_HOME", "TF_USE_LEGACY_KERAS"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home / ".keras"


@pytest.fixture
def site(tmp_path: pathlib.Path) -> pathlib.Path:
    install(tmp_path / "site", "keras", "3.15.1")
    return tmp_path / "site"


def setup(*paths: pathlib.Path) -> KerasSetup:
    keras = only("keras", *paths).keras
    assert keras is not None
    return keras


def backend(*paths: pathlib.Path) -> Observed[str]:
    return setup(*paths).backend


def test_the_default_is_tensorflow(site: pathlib.Path) -> None:
    seen = backend(site)
    assert isinstance(seen, Known)
    assert seen.value == "tensorflow"
    assert "default" in seen.source


def test_the_file_decides_over_the_default(site: pathlib.Path, keras_home: pathlib.Path) -> None:
    write(keras_home / "keras.json", '{"backend": "jax"}')
    assert backend(site) == Known("jax", str(keras_home / "keras.json"))


def test_the_variable_decides_over_the_file(
    site: pathlib.Path, keras_home: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(keras_home / "keras.json", '{"backend": "jax"}')
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    assert backend(site) == Known("torch", "environment variable KERAS_BACKEND")


def test_an_empty_variable_decides_nothing(
    site: pathlib.Path, keras_home: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(keras_home / "keras.json", '{"backend": "jax"}')
    monkeypatch.setenv("KERAS_BACKEND", "")
    assert backend(site) == Known("jax", str(keras_home / "keras.json"))


def test_keras_home_is_where_the_file_is_looked_for(
    site: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "elsewhere/keras.json", '{"backend": "torch"}')
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "elsewhere"))
    assert backend(site) == Known("torch", str(tmp_path / "elsewhere/keras.json"))


def test_a_file_that_is_not_json_is_ignored_as_keras_does(
    site: pathlib.Path, keras_home: pathlib.Path
) -> None:
    write(keras_home / "keras.json", "{backend: jax}")
    seen = backend(site)
    assert isinstance(seen, Known)
    assert seen.value == "tensorflow"
    assert "not valid JSON" in seen.source


@pytest.mark.parametrize("text", ['["jax"]', '{"backend": 3}'])
def test_a_file_that_keras_stumbles_over_is_not_guessed_about(
    site: pathlib.Path, keras_home: pathlib.Path, text: str
) -> None:
    write(keras_home / "keras.json", text)
    assert isinstance(backend(site), Unknown)


@pytest.mark.parametrize(
    ("distribution", "version", "generation"),
    [
        ("keras", "2.15.0", "keras-2"),
        ("tf-keras", "2.21.0", "tf-keras"),
        ("keras-nightly", "3.16.0.dev1", "keras-3"),
    ],
)
def test_generations(
    tmp_path: pathlib.Path, distribution: str, version: str, generation: str
) -> None:
    install(tmp_path / "site", distribution, version)
    assert setup(tmp_path / "site").generation == generation


@pytest.mark.parametrize(("name", "version"), [("keras", "2.15.0"), ("tf-keras", "2.21.0")])
def test_those_with_one_backend_are_not_configurable(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str, version: str
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    install(tmp_path / "site", name, version)
    seen = backend(tmp_path / "site")
    assert isinstance(seen, Known)
    assert seen.value == "tensorflow"


@pytest.mark.parametrize(
    ("switch", "chosen"), [("1", "tf-keras"), ("True", "tf-keras"), ("yes", "keras"), ("", "keras")]
)
def test_the_legacy_switch_chooses_between_two(
    site: pathlib.Path, monkeypatch: pytest.MonkeyPatch, switch: str, chosen: str
) -> None:
    install(site, "tf-keras", "2.21.0")
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", switch)
    assert only("keras", site).distribution == chosen


def test_the_first_copy_on_the_path_is_the_one(site: pathlib.Path, tmp_path: pathlib.Path) -> None:
    install(tmp_path / "user", "keras", "2.15.0")
    assert only("keras", tmp_path / "user", site).version == "2.15.0"


def test_no_keras_no_entry(tmp_path: pathlib.Path) -> None:
    assert collect(tmp_path) == ()
