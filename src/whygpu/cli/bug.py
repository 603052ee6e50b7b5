"""A bug in whygpu becomes a report that can be pasted into an issue."""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from collections.abc import Sequence

from whygpu.host.local import LocalHost
from whygpu.model.codec import printable
from whygpu.privacy import Redactor
from whygpu.version import VERSION


def report(error: BaseException, arguments: Sequence[str]) -> str:
    """Write the report to a file; returns what to tell the user."""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    text = (
        "## whygpu failed\n\n"
        f"whygpu {VERSION}, Python {platform.python_version()}, {platform.platform()}\n\n"
        f"Command: `whygpu {' '.join(arguments)}`\n\n"
        f"```\n{trace}```\n"
    )
    redactor = Redactor(LocalHost().platform)
    text = printable(redactor.text(text))
    said = redactor.text(f"whygpu: this is a bug in whygpu: {type(error).__name__}: {error}\n")
    try:
        number, path = tempfile.mkstemp(prefix="whygpu-bug-", suffix=".md")
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as failure:
        return f"{said}The report could not be saved ({failure}); here it is:\n\n{text}"
    return f"{said}Please report it: a text ready to paste, private data removed, is in\n  {path}"
