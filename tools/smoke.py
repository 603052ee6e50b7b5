"""Tries an installed whygpu as a user would, on any system: `python -m tools.smoke`.

For systems on which the tests cannot run: they prepare machines with the means of Linux.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
SNAPSHOT = ROOT / "docs/examples/tensorflow-2.21.json"
LOG = ROOT / "tests/logs/h200-torch-oom-beside.log"

TRIALS: tuple[tuple[tuple[str, ...], tuple[int, ...], str], ...] = (
    (("--help",), (0,), "usage: whygpu"),
    (("--version",), (0,), "whygpu "),
    (("explain", str(LOG)), (1,), "WG501"),
    (("lint", str(ROOT / "docs/examples")), (1,), "WG710"),
    (("plan", "tensorflow", "--snapshot", str(SNAPSHOT)), (0,), "TensorFlow"),
    (("rule", "WG203"), (0,), "library-path-conflict"),
    (("check", "--snapshot", str(SNAPSHOT)), (1,), "WG203"),
    (("check", "--python", sys.executable), (0, 1, 4), "causes checked"),
    (("explain", "no such file"), (2,), "no such file"),
)
"""Words, the exit codes that are right, and what the output must contain."""


def main() -> int:
    beside = shutil.which("whygpu", path=sysconfig.get_path("scripts"))
    assert beside is not None, f"no command whygpu in {sysconfig.get_path('scripts')}"
    commands = ((beside,), (sys.executable, "-m", "whygpu"))
    wrong = [
        complaint
        for command in commands
        for words, codes, text in TRIALS
        if (complaint := _complaint((*command, *words), codes, text))
    ]
    print(*wrong, sep="\n")
    print(f"{len(commands) * len(TRIALS)} commands tried on {sys.platform}, {len(wrong)} wrong")
    return 1 if wrong else 0


def _complaint(command: tuple[str, ...], codes: tuple[int, ...], text: str) -> str:
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
    output = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.returncode in codes and text in output:
        return ""
    return f"{' '.join(command)}: exit code {done.returncode}, expected {codes}; {output[-2000:]}"


if __name__ == "__main__":
    sys.exit(main())
