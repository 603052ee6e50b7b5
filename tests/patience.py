"""How long tests wait for a program that should end by itself, or for what it should do.

The limit is only for programs that hang. The time of others depends on the machine and its load, so
no test has its own limit. pytest ends a test after 300 seconds; this limit is shorter, so that the
test can still report what it waited for.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

PATIENCE = 280.0
TIME_LIMITS = (0.7, 3.0, 15.0, 60.0)
"""For programs that hang on purpose; see `stopped_in_time`."""


def wait_until(
    condition: Callable[[], object], process: subprocess.Popen[Any] | None = None
) -> None:
    """Until something is so. It fails if the process that is to bring it about has ended before."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"it is not so after {PATIENCE:g} s"
        # It may have done it just before its end.
        if process is not None and process.poll() is not None and not condition():
            raise AssertionError(f"it ended with {process.returncode}: {process.communicate()}")
        time.sleep(0.01)


def stopped_in_time(
    run: Callable[[float], Result], came_far_enough: Callable[[Result], object]
) -> tuple[Result, float]:
    """What came of a program that hangs and was stopped by a time limit, and the limit.

    On a busy machine a short limit may stop the program before the place where it hangs, which
    shows nothing. So longer ones are tried until it has come so far.
    """
    for limit in TIME_LIMITS:
        result = run(limit)
        if came_far_enough(result):
            break
    return result, limit
