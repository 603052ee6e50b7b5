"""Type-checks whygpu for Windows and macOS, where modules and functions of Linux do not exist.

Part of `make lint`. What needs Linux throughout is listed here: it is imported only after
`whygpu.host.systems.require_linux()`, or runs in a process that is started on Linux only.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SYSTEMS = ("win32", "darwin")

NEEDS_LINUX = (
    "src/whygpu/collectors/instruction_worker.py",
    "src/whygpu/collectors/proc_worker.py",
    "src/whygpu/fixing/",
    "src/whygpu/launch/bootstrap/",
    "src/whygpu/launch/host_memory.py",
    "src/whygpu/launch/program_process.py",
    "src/whygpu/launch/run_folder.py",
    "src/whygpu/launch/streams.py",
    "src/whygpu/memory/find.py",
    "src/whygpu/probes/child.py",
    "src/whygpu/probes/scripts/",
    "src/whygpu/work/inside/",
)
"""Files, and folders with a slash at the end."""


def main() -> int:
    checks = {system: _start(system) for system in SYSTEMS}
    wrong = 0
    for system, check in checks.items():
        output, _ = check.communicate()
        errors = [line for line in output.splitlines() if _counts(line)]
        if check.returncode not in (0, 1):
            errors = output.splitlines()
        wrong += len(errors)
        print(f"types on {system}: {f'{len(errors)} errors' if errors else 'fine'}")
        print(*errors, sep="\n", end="\n" if errors else "")
    return 1 if wrong else 0


WITHOUT_PACKAGES = (
    "--follow-imports=skip",
    "--allow-subclassing-any",
    "--allow-untyped-decorators",
    "--no-warn-return-any",
    "--no-warn-unused-ignores",
)
"""What a system lacks is seen in whygpu's own code and in the stubs of the standard library. Other
packages are as large as both, and mypy reads them for this system anyway."""


def _start(system: str) -> subprocess.Popen[str]:
    words = ("--platform", system, "--cache-dir", f".mypy_cache/{system}", "--no-error-summary")
    return subprocess.Popen(
        (sys.executable, "-m", "mypy", *words, *WITHOUT_PACKAGES, "src"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _counts(line: str) -> bool:
    return ": error:" in line and not line.startswith(NEEDS_LINUX)


if __name__ == "__main__":
    sys.exit(main())
