"""Hung, slow, or not let run: what a process did until its time was up."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cases import each
from whygpu.host.processor_time import (
    ENOUGH,
    ProcessorTime,
    Watch,
    in_words,
    processor_time,
    was_at_work,
)


@each(
    ("limit", "before", "spent", "at_work"),
    [
        (120, (0.5, 0.0), (0.5, 0.1), False),  # it stands still: in the driver, at a lock
        (6, (3.5, 1.0), (3.5, 1.0), False),  # the same, after an import that took long
        (120, (2.0, 80.0), (2.5, 109.0), True),  # it was not let run
        (120, (40.0, 49.0), (55.0, 64.0), True),  # it had half of a processor, and may need longer
        (120, (50.0, 40.0), (ENOUGH, 60.0), False),  # it ran for longer than it can need
        (120, (89.0, 0.0), (119.0, 0.0), False),
        (5, (3.6, 0.0), (4.8, 0.0), True),  # the limit is shorter than an import may take
        (5, (0.0, 3.6), (0.0, 4.8), True),
    ],
)
def test_standing_still_is_told_from_being_at_work(
    limit: float, before: tuple[float, float], spent: tuple[float, float], at_work: bool
) -> None:
    assert was_at_work(limit, ProcessorTime(*before), ProcessorTime(*spent)) == at_work


def test_where_the_kernel_does_not_tell_nothing_is_claimed_of_being_at_work() -> None:
    assert processor_time(2**30) is None
    assert not was_at_work(5, None, ProcessorTime(5, 0))
    watch = Watch(2**30, 5)
    watch.begin_last_part()
    assert watch.at_work() == ""


def test_a_busy_machine_is_named() -> None:
    assert in_words(120, ProcessorTime(3.14, 110)) == (
        "120 s, of which this busy machine let it run for 3.1 s"
    )
    assert in_words(5, ProcessorTime(4.8, 0.1)) == "5 s, and was still working"


@pytest.mark.slow
def test_the_time_of_children_counts() -> None:
    """A framework that waits for the compiler that it has started is at work."""
    spin = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()\n"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}])"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", parent], **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()
        spent = processor_time(process.pid)
        process.stdin.write(b"\n")
    assert spent is not None
    assert spent.ran > 0.2
