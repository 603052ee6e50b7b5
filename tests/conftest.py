"""What holds for every test."""

from __future__ import annotations

import gc
import os
import signal
import tempfile


def pytest_configure() -> None:
    """Give signals their ordinary meaning, and programs a folder to write to, whoever started us.

    A shell starts what runs in the background with SIGINT ignored, nohup with SIGHUP ignored, and
    both are inherited: tests that send these signals would then wait in vain.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # No test reads the release table that a developer has updated.
    os.environ["XDG_DATA_HOME"] = os.path.join(tempfile.gettempdir(), "whygpu-no-such-data")
    if "TMPDIR" in os.environ:
        # Python passes over a folder that is full or cannot be written to; compilers do not.
        os.environ["TMPDIR"] = tempfile.gettempdir()


def pytest_collection_finish() -> None:
    """What is loaded by now stays to the end: no search for garbage has to go through it."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """pytest searches for garbage several times at its end: spare it what the tests have cached."""
    gc.freeze()
