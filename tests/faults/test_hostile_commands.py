"""A command that whygpu starts cannot take all memory, or print for ever."""

from __future__ import annotations

import pytest

from tests import bounded

PRINTS_FOR_EVER = "import os\nwhile True: os.write({stream}, b'x' * 65536)"
TAKES_ALL_MEMORY = "held = []\nwhile True: held.append(bytearray(1 << 24))"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (PRINTS_FOR_EVER.format(stream=1), "printed more than 1 MiB"),
        (PRINTS_FOR_EVER.format(stream=2), "printed more than 1 MiB"),
        (TAKES_ALL_MEMORY, "used more than 2 GiB of memory"),
    ],
)
def test_a_command_that_does_not_know_when_to_stop(program: str, reason: str) -> None:
    ask = """
        from whygpu.host.local import LocalHost
        print(LocalHost().run([sys.executable, "-c", sys.argv[1]], timeout=60))
    """
    ended = bounded.run(ask, program)
    assert reason in ended.stdout, ended.stderr
    assert ended.peak < bounded.LARGEST
