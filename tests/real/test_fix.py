"""`whygpu fix` as users run it, on environments with real frameworks and the real pip."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.schemas import obeys
from tests.targets import python_of
from whygpu.fixing.copying import copy_tree

PATIENCE = 400
pytestmark = pytest.mark.timeout(900)

Listing = dict[str, tuple[int, int, int]]


class Environment:
    """A copy of a target that may be changed, next to nothing else."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder = folder / "env"
        self.environ = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "LANG", "ONEDNN_MAX_CPU_ISA", "PIP_INDEX_URL")
            if name in os.environ
        }
        copy_tree(str(Path(python_of(target)).parent.parent), str(self.folder), linked_from=0)

    def pip(self, *words: str) -> None:
        done = subprocess.run(
            [self.folder / "bin" / "python", "-m", "pip", "-q", *words],
            env=self.environ,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            pytest.skip(f"pip cannot install here: {done.stderr[-300:]}")

    def fix(self, *words: str) -> tuple[dict[str, Any], int]:
        done = subprocess.run(
            [sys.executable, "-m", "whygpu", "fix", "--json", "--python", self.folder, *words],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode in (0, 1, 4), done.stderr
        return json.loads(done.stdout), done.returncode

    @property
    def files(self) -> Listing:
        """Every file: the same after a fix and its undo, not merely one of the same content."""
        found = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                if not name.endswith(".pyc"):
                    facts = os.lstat(os.path.join(folder, name))
                    path = os.path.relpath(os.path.join(folder, name), self.folder)
                    found[path] = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        return found

    @property
    def siblings(self) -> list[str]:
        return sorted(path.name for path in self.folder.parent.iterdir() if path != self.folder)


@pytest.fixture(scope="module")
def tensorflow() -> Iterator[Environment]:
    """TensorFlow with a protobuf that it cannot use. Each test leaves it as it was."""
    # On the file system of the targets, so that the copy is made of links.
    near = Path(python_of("tensorflow-2.21")).parent.parent.parent
    folder = Path(tempfile.mkdtemp(prefix=".whygpu-fix-test-", dir=near))
    try:
        made = Environment(folder, "tensorflow-2.21")
        made.pip("install", "--no-deps", "protobuf==4.25.0")
        yield made
    finally:
        shutil.rmtree(folder)


def test_the_steps_alone_cost_nothing(tensorflow: Environment) -> None:
    seen, code = tensorflow.fix("--dry-run")
    assert (code, seen["proven"], seen["after"], seen["copy"]) == (1, False, None, None)
    (step,) = seen["steps"]
    assert "pip install 'protobuf" in step["command"]


def test_a_wrong_protobuf_is_replaced_and_comes_back(tensorflow: Environment) -> None:
    before = tensorflow.files
    seen, code = tensorflow.fix()
    obeys("fix", seen)
    assert (code, seen["proven"], seen["refused"]) == (1, True, "")
    assert [cause["cause"] for cause in seen["before"]["root_causes"]] == ["protobuf-conflict"]
    assert seen["after"]["root_causes"] == []
    assert tensorflow.files == before
    assert tensorflow.siblings == []

    done, code = tensorflow.fix("--apply")
    assert (code, done["after"]["verdict"]) == (0, "no-gpu")
    assert tensorflow.siblings == [os.path.basename(done["applied"]["saved_in"])]
    again, code = tensorflow.fix()
    assert (code, again["steps"]) == (0, [])

    undone, code = tensorflow.fix("--undo")
    assert code == 0
    assert [text.partition(":")[0] for text in undone["undone"]] == ["WG308"]
    assert tensorflow.files == before
    assert tensorflow.siblings == []
