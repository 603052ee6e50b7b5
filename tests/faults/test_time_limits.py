"""What is still at work when its time is up is not taken for something that hangs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tests.patience import stopped_in_time
from tests.probes.test_runner import run, write
from whygpu.host.local import LocalHost
from whygpu.model.observed import Known, Unknown

__all__ = ["write"]


def test_a_probe_that_is_still_at_work_when_its_time_is_up_was_cut_short(
    write: Callable[..., Path],
) -> None:
    script = write("report.stage('import')\nwhile True: pass")
    probe, limit = stopped_in_time(
        lambda limit: run(script, timeout=limit), lambda probe: probe.stage == "import"
    )
    assert (probe.ended, probe.stage) == ("cut-short", "import")
    assert probe.how.startswith(f"{limit:g} s")


def test_a_command_that_is_still_at_work_is_unknown_and_one_that_stands_still_timed_out() -> None:
    busy = LocalHost().run([sys.executable, "-c", "while True: pass"], timeout=1.0)
    assert isinstance(busy, Unknown)
    assert "did not answer within 1 s" in busy.reason
    asleep = LocalHost().run(["/bin/sleep", "600"], timeout=1.0)
    assert isinstance(asleep, Known)
    assert asleep.value.timed_out
