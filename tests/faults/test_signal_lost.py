"""The end of a program is noticed even if its signal reaches another thread of ours."""

from __future__ import annotations

from tests.launch.programs import PYTHON, run

CODE = """
import threading, time
from whygpu.launch.program_process import run
# A thread that does not block SIGCHLD, and that the kernel may choose for it.
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
for _ in range(20):
    assert run(["sh", "-c", "exit 7"], {"PATH": "/bin:/usr/bin"}).code == 7
"""


def test_the_end_of_a_program_is_seen_without_its_signal() -> None:
    done = run([PYTHON, "-c", CODE], limit=60)
    assert done.returncode == 0, done.stderr
