"""Flags for XLA, which aborts the process if it does not know one: added only to known releases."""

import os

from whygpu_bootstrap.policy.attempts import CannotCall


def add(flag: str, version: str, first_release: "tuple[int, ...]") -> None:
    """Add a flag to XLA_FLAGS, if the release of the framework knows it."""
    import re

    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < first_release:
        release = ".".join(str(number) for number in first_release)
        raise CannotCall("XLA knows %s only since release %s" % (flag.partition("=")[0], release))
    flags = os.environ.get("XLA_FLAGS", "")
    # A flag that the user has given keeps its value.
    if flag.partition("=")[0] not in flags:
        os.environ["XLA_FLAGS"] = (flags + " " + flag).strip()
