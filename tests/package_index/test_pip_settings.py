"""The package index, as pip's variables and configuration name it."""

from __future__ import annotations

import pathlib

import pytest

from tests.cases import each
from whygpu.errors import UsageError
from whygpu.package_index.pip_settings import (
    PUBLIC_INDEX,
    IndexSettings,
    configured_index,
    settings_of,
)


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """The only configuration file that pip reads."""
    for name in ("PIP_INDEX_URL", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "pip.conf"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(path))
    return path


@pytest.mark.slow
def test_a_variable_names_the_index(config: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("[global]\nindex-url = https://config.example/simple\n")
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable.example/simple/")
    assert configured_index().url == "https://variable.example/simple"


@pytest.mark.slow
def test_the_configuration_names_the_index(config: pathlib.Path) -> None:
    config.write_text("[global]\nindex-url = https://config.example/simple/\ncert = /etc/own.pem\n")
    assert configured_index() == IndexSettings("https://config.example/simple", "", "/etc/own.pem")


@pytest.mark.slow
def test_without_both_it_is_the_public_one(config: pathlib.Path) -> None:
    config.write_text("")
    assert configured_index().url == PUBLIC_INDEX


def test_a_password_is_no_part_of_the_url() -> None:
    found = settings_of("https://me:a%40b@example.org:8080/simple/")
    assert found == IndexSettings("https://example.org:8080/simple", "Basic bWU6YUBi")


@each(
    "address",
    ["https://[me:secret@index.example/simple", "https://me:secret@index.\u2100.example/simple"],
)
def test_an_address_that_is_none_is_wrong_usage(address: str) -> None:
    with pytest.raises(UsageError, match="is not valid") as caught:
        settings_of(address)
    assert "secret" not in str(caught.value)
