"""A small environment whose faults are files, so that the steps of a fix can be tested quickly.

`lib/faults/NAME` is the fault NAME. Its interpreter is a shell script that acts on
`-m pip install WORD`, as WORD says. tests/real has fixes of real environments with the real pip.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from tests.kit import machine
from whygpu.model.finding import Finding, Remedy
from whygpu.model.observed import Known
from whygpu.model.remedy import Install
from whygpu.model.report import FrameworkReport, Report
from whygpu.model.target import Installer

PIP = """#!/bin/sh
here=$(dirname "$(dirname "$0")")
[ "$1 $2 $3" = "-m pip install" ] || exit 3
echo "Collecting $4"
case "$4" in
  refused) echo "ERROR: No matching distribution found for refused" >&2; exit 1 ;;
  idle) ;;
  half-*) rm "$here/lib/faults/${4#half-}"; touch "$here/lib/faults/shown-by-${4#half-}" ;;
  in-place) printf x >> "$here/lib/numbers/large.so"; exit 1 ;;
  unreached) echo "WARNING: NewConnectionError: Failed to establish a new connection"
    echo "ERROR: No matching distribution found"; exit 1 ;;
  full) echo "ERROR: Could not install: [Errno 28] No space left on device"; exit 1 ;;
  damage) rm -r "$here/lib/numbers"; exit 1 ;;
  *) rm -f "$here/lib/faults/$4"; echo "$here" > "$here/bin/tool" ;;
esac
"""


def environment(folder: Path, *faults: str) -> Path:
    """A new environment with these faults."""
    for name in ("bin", "lib/faults", "lib/numbers"):
        (folder / name).mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (folder / "bin" / "activate").write_text("VIRTUAL_ENV=here\nexport VIRTUAL_ENV\n")
    python = folder / "bin" / "python"
    python.write_text(PIP)
    python.chmod(0o755)
    (folder / "lib" / "numbers" / "large.so").write_bytes(b"\0" * 100_000)
    (folder / "lib" / "numbers" / "small.py").write_text("one = 1\n")
    (folder / "lib" / "link").symlink_to("numbers")
    for fault in faults:
        (folder / "lib" / "faults" / fault).write_text("")
    return folder


def installs(*words: str) -> tuple[Remedy, ...]:
    return tuple(Remedy(f"Install {word}.", Install((word,))) for word in words)


def judge(
    folder: str,
    environ: Mapping[str, str],
    remedies: Mapping[str, tuple[Remedy, ...]],
    cured_by: Mapping[str, str] | None = None,
) -> Report:
    """A report on the faults in the folder. `cured_by`: variables that hide a fault."""
    hidden = {
        fault
        for fault, text in (cured_by or {}).items()
        if text in environ.get("LD_LIBRARY_PATH", "")
    }
    faults = [name for name in sorted(os.listdir(f"{folder}/lib/faults")) if name not in hidden]
    snapshot = machine()
    installer = Installer(f"{folder}/bin/python", "pip", False)
    snapshot = snapshot._replace(
        target=snapshot.target._replace(installer=Known(installer, "its files"))
    )
    findings = tuple(
        Finding(f"WG{900 + n}", fault, "error", "torch", "seen", (), remedies.get(fault, ()), "cpu")
        for n, fault in enumerate(faults)
    )
    broken = any(name.startswith("shown-by") for name in faults)
    verdict: Literal["broken", "cpu", "gpu"] = "broken" if broken else "cpu" if faults else "gpu"
    framework = FrameworkReport("torch", "2.0", verdict, (), verdict)
    return Report(snapshot, (), findings, (framework,), verdict, f"PyTorch: {verdict}")


def content(folder: Path) -> dict[str, bytes | str]:
    """Everything that the environment holds."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_bytes()
    return found
