"""What is going on, on standard error, while frameworks are being run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from whygpu.cli.terminal import shows
from whygpu.model.derived import display_name

if TYPE_CHECKING:
    from whygpu.probes.runner import Progress, ProgressEvent


@contextmanager
def progress() -> Iterator[Progress | None]:
    """A callback for the probes' events; None where nobody is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    running: dict[str, str] = {}
    spinner = "dots" if shows("⠋", sys.stderr) else "line"
    with console.status("looking at this machine ...", spinner=spinner) as status:

        def show(event: ProgressEvent) -> None:
            if event.kind == "ended":
                running.pop(event.probe, None)
            else:
                running[event.probe] = event.text or "start"
            words = (f"{display_name(name)} ({stage})" for name, stage in running.items())
            status.update("running " + ", ".join(words) if running else "judging ...")

        yield show
