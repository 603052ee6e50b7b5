"""Runs cases, each in a folder of its own, and sees what they print, change and leave behind."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple

from tests.faults.case import Case, lay_out

SECONDS = 20.0
"""For one start, on a machine that does other things as well."""
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
_PLAIN = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", "TERM": "xterm"}


class Outcome(NamedTuple):
    case: Case
    code: int
    timed_out: bool
    peak_kib: int
    left: tuple[str, ...]
    """Command lines of processes that went on."""
    temporary: tuple[str, ...]
    """Files left in the temporary folder."""
    stdout: bytes
    stderr: bytes
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    """The files of the case's folder by name; a link by where it points."""


class Sandbox:
    """Holds one process that whygpu is forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)

    def run(self, case: Case) -> Outcome:
        place = pathlib.Path(tempfile.mkdtemp(prefix="whygpu-fault-"))
        try:
            return self._run(case, place)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _run(self, case: Case, place: pathlib.Path) -> Outcome:
        folder, home, temporary = (place / name for name in ("work", "home", "tmp"))
        for each in (folder, home, temporary):
            each.mkdir()
        lay_out(case.files, folder)
        (place / "stdin").write_bytes(case.stdin)
        before = _contents(folder)
        answer = self._ask(
            {
                "argv": case.argv,
                "folder": str(folder),
                "environ": {
                    **_PLAIN,
                    "HOME": str(home),
                    "TMPDIR": str(temporary),
                    **case.environ,
                },
                "stdin": str(place / "stdin"),
                "stdout": str(place / "stdout"),
                "stderr": str(place / "stderr"),
                "seconds": SECONDS,
            }
        )
        return Outcome(
            case=case,
            code=answer["code"],
            timed_out=answer["timed_out"],
            peak_kib=answer["peak_kib"],
            left=tuple(answer["left"]),
            temporary=tuple(sorted(os.listdir(temporary))),
            stdout=(place / "stdout").read_bytes(),
            stderr=(place / "stderr").read_bytes(),
            before=before,
            after=_contents(folder),
        )

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def _contents(folder: pathlib.Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = b"-> " + os.readlink(os.fsencode(path))
        elif path.is_file():
            found[name] = path.read_bytes()
    return found
