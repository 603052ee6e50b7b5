"""Flags for XLA, which dies of one that it does not know: given by release, before it starts."""

import os
import re

from whygpu_bootstrap import process_record

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


def add_deterministic(framework, version, first_release):
    """Ask for repeatable GPU kernels if the framework's XLA is of this release or a later one."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    flags = os.environ.get("XLA_FLAGS", "")
    if numbers < first_release or DETERMINISTIC.partition("=")[0] in flags:
        return
    os.environ["XLA_FLAGS"] = (flags + " " + DETERMINISTIC).strip()
    process_record.applied(framework, "XLA_FLAGS with " + DETERMINISTIC)
