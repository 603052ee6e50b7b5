"""The step that puts pip into an environment without it is one that works."""

from __future__ import annotations

import pathlib
import subprocess

from tests.collectors.test_installer import environment
from whygpu.collectors import installer
from whygpu.host.local import LocalHost
from whygpu.model.observed import Unknown


def test_after_ensurepip_the_environment_has_pip(tmp_path: pathlib.Path) -> None:
    target = environment(tmp_path)
    python = f"{tmp_path}/bin/python"
    assert not installer.collect(LocalHost(), target, Unknown("not looked at")).has_pip
    subprocess.run([python, "-m", "ensurepip"], check=True, capture_output=True)
    assert installer.collect(LocalHost(), target, Unknown("not looked at")).has_pip
