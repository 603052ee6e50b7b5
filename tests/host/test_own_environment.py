"""Which Python a command is about if no environment is active."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from whygpu.host.own_environment import made_for_whygpu, own_python


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


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("/home/me/.cache/uv/archive-v0/abc", "/home/me/.cache/uv/archive-v0/abc/bin"),
        ("/home/me/.local/share/pipx/venvs/whygpu", "/home/me/.local/share/pipx/venvs/whygpu/bin"),
        ("/home/me/project/.venv", None),
        ("/opt/uv/.venv", None),
    ],
)
def test_an_environment_that_a_tool_made_for_whygpu_is_passed_over(
    prefix: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "executable", f"{prefix}/bin/python")
    assert made_for_whygpu() == expected
