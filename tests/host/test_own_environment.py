"""Which Python a command is about if no environment is active."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from whygpu.host.own_environment import own_python


@pytest.mark.parametrize(
    ("mark", "package", "expected"),
    [
        ("pyvenv.cfg", "torch", sys.executable),
        ("conda-meta", "tensorflow", sys.executable),
        ("pyvenv.cfg", "requests", None),
        ("", "torch", None),
    ],
)
def test_an_environment_with_a_framework_is_what_the_command_is_about(
    mark: str, package: str, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "lib" / "site-packages"
    (site / package).mkdir(parents=True)
    if mark:
        (tmp_path / mark).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(site)])
    assert own_python() == expected
