"""The time that the privacy gate takes grows with the length of a text, whatever the text is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.test_pattern_time import is_slow
from tests.test_privacy import ALICE
from whygpu.privacy import Redactor

UNITS = [
    *("a.", "token", "a+", "+A1", "1:", "1.", "/home/", "GPU-a", "-", "=", "eyJ-", "eyJa.", "key="),
    *('password="', "tokens=", "://a@", "ssh a", "-----BEGIN A-----", "\\\\a\\", "host ", "A b <"),
    *("Aa1/", "ff:", "ff::", "drwxr-xr-x 1 a ", "a 1 0.0 0.0 1 1 ", "mysql -u ", "login ", "\\n"),
    *("/home/alina ", "zelda@gpubox42:~$ ", "USER=zelda\n", "hostname: a1b2 ", "/scratch/zed1 "),
    *("<password>", "&lt;token ", "<key>secret</key>", "%3Cpassword%3D", "%2525", "[n1:12] "),
    *(
        "\x1b[",
        "?key=",
        "Cookie: a=",
        "authorization: ",
        "serial   ",
        "password, ",
        "C:\\Users\\a ",
    ),
]


class Gate:
    """Looks like a pattern to the measure of how time grows."""

    def search(self, text: str) -> str:
        return Redactor(ALICE).text(text)


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_text_costs_linear_time(unit: str) -> None:
    gate: Any = Gate()
    assert not is_slow(gate, (unit * 40_000)[:40_000], (unit * 160_000)[:160_000])


def test_a_long_requirement_costs_linear_time() -> None:
    gate: Any = Gate()
    start = "Requires-Dist: "
    assert not is_slow(gate, start + "eyJ-" * 60_000, start + "eyJ-" * 240_000)
