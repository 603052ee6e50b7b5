"""What would let an installer in the copy change something outside of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from whygpu.fixing.elsewhere import pip_setting, user_packages
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.target import Interpreter


def interpreter(prefix: Path, user_site: Observed[str]) -> Interpreter:
    return Interpreter(
        f"{prefix}/bin/python", "3.12.1", "cpython", str(prefix), True, user_site, (), ()
    )


@pytest.mark.slow
def test_pips_files_may_lead_it_elsewhere(tmp_path: Path) -> None:
    settings = tmp_path / "pip.conf"
    environ = {"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": str(settings)}
    settings.write_text("[install]\ntarget = /srv/packages\n")
    assert pip_setting(sys.executable, environ) == "install.target='/srv/packages'"
    settings.write_text("[global]\ntimeout = 3\n")
    assert pip_setting(sys.executable, environ) == ""
    assert pip_setting(str(tmp_path / "missing"), environ) == ""


def test_from_conda_pip_changes_the_packages_of_the_user(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    conda = interpreter(tmp_path, Known(str(site), "here"))
    assert user_packages(conda) == "", "there are none"
    (site / "numpy-1.26.4.dist-info").mkdir()
    assert user_packages(conda) == str(site)
    assert user_packages(interpreter(tmp_path, Absent("it is off"))) == ""
    (tmp_path / "pyvenv.cfg").write_text("")
    assert user_packages(conda) == "", "in a virtual environment pip leaves them alone"
