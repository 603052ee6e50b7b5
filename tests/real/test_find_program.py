"""`whygpu.find_batch_size` from inside a program: its trials load the file, and not the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

HEAD = f"""
import whygpu

def step(batch_size):
    held = b"x" * (batch_size * {2 << 20})

def find(step, limit="100MiB", **options):
    return whygpu.find_batch_size(step, device="cpu", limit=limit, **options)
"""
MAIN = """
if __name__ == "__main__":
    print("the program runs")
"""


def run(folder: Path, body: str, name: str = "program.py") -> subprocess.CompletedProcess[str]:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(HEAD + body)
    return subprocess.run(
        [sys.executable, str(file)],
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_a_function_of_the_program(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        MAIN
        + """
    seen = []
    result = find(step, largest=30, multiple_of=10, on_progress=seen.append)
    print(result.outcome, result.batch, int(result), len(range(result)), result.what)
    print([trial.batch for trial in result.trials], seen[0].batch, seen[-1].stage)
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "the program runs",
        "at-largest 30 30 30 program.py:step",
        "[10, 30] 10 step 3",
    ]


def test_a_function_of_a_module_and_a_name(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").touch()
    (tmp_path / "parts" / "sizes.py").write_text("SIZE = 2 << 20\n")
    (tmp_path / "parts" / "work.py").write_text(
        "from .sizes import SIZE\n"
        "class Trainer:\n"
        "    @staticmethod\n"
        "    def step(batch_size):\n"
        "        held = b'x' * (batch_size * SIZE)\n"
    )
    done = run(
        tmp_path,
        """
from parts.work import Trainer
if __name__ == "__main__":
    print(find(Trainer.step, largest=8).batch, find("parts/work.py:Trainer.step", start=2).batch)
""",
    )
    assert done.returncode == 0, done.stderr
    first, second = map(int, done.stdout.split())
    assert first == 8
    assert 38 <= second <= 44


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("find(step)", 'put the call under `if __name__ == "__main__":`'),
        ("find(lambda batch_size: None)", "<lambda> is not a function at the top level of a file"),
        ("find(step, limit='much')", "limit='much': expected"),
    ],
    ids=["no-main-part", "lambda", "limit"],
)
def test_what_cannot_be_done_says_what_can(tmp_path: Path, body: str, words: str) -> None:
    (tmp_path / "cloudpickle.py").write_text("raise ImportError")
    done = run(tmp_path, body)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("whygpu.errors.UsageError: ")
    assert words in done.stderr
