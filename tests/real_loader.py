"""Asks the real dynamic loader what it does, in processes of a given interpreter."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

SCRIPT = pathlib.Path(__file__).with_name("dlopen_script.py")

Request = tuple[str, "str | None"]
"""A library, and the path of the file that asks for it; None where it does not matter."""


class RealLoader:
    """A process of `python` that answers what dlopen does there. Use it in a with statement."""

    def __init__(self, python: str, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [python, "-S", "-E", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environ),
            text=True,
        )

    def __enter__(self) -> RealLoader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def open(self, requests: Sequence[Request], user: int | None = None) -> list[dict[str, Any]]:
        """What comes of the requests, one after the other in a fresh process.

        An answer is {"path": ...}, {"error": ...} or, for the last, {"signal": ...}.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        question = {"requests": requests, "cwd": os.getcwd(), "user": user}
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        told: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        return told
