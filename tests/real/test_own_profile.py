"""`with whygpu.profile():` in a real program."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest

import whygpu
from tests.launch.programs import environment
from tests.patience import PATIENCE
from tests.targets import python_of

SOURCE = pathlib.Path(whygpu.__path__[0]).parent
PROGRAM = """
import json, torch, whygpu
# On a crowded machine, its threads wait for each other for longer than the batches take.
torch.set_num_threads(1)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def slow_batches():
    for _ in range(60):
        sum(range(600000))
        yield torch.ones(32, 64)

def train():
    for batch in slow_batches():
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()

try:
    with whygpu.profile(quiet=True) as profiled:
        train()
        END
except KeyboardInterrupt:
    print("interrupted")
print(json.dumps([each.category for each in profiled.answer.shares]))
"""


def run(program: pathlib.Path) -> list[str]:
    done = subprocess.run(
        [python_of("torch"), str(program)],
        env=environment(PYTHONPATH=str(SOURCE), CUDA_VISIBLE_DEVICES="-1"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("end", ["pass", "raise KeyboardInterrupt"])
def test_the_answer_is_there_also_after_ctrl_c(end: str, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("END", end))
    *before, last = run(program)
    assert before == ([] if end == "pass" else ["interrupted"])
    assert json.loads(last)[0] == "input"


def test_a_block_that_fails_prints_what_it_did_until_then(tmp_path: pathlib.Path) -> None:
    """Nothing was printed after the one thing that everybody does with a slow cell: stop it."""
    program = tmp_path / "program.py"
    text = PROGRAM.replace("END", "raise KeyboardInterrupt").replace("quiet=True", "")
    program.write_text("import sys; sys.stderr = sys.stdout\n" + text)
    printed = run(program)
    assert printed[0].startswith("whygpu: ")
    assert any("steps of an optimizer" in line for line in printed)
    assert "interrupted" in printed


def test_a_notebook_shows_the_answer_as_a_page(tmp_path: pathlib.Path) -> None:
    """The function that makes HTML was only handed in by other verbs."""
    program = tmp_path / "program.py"
    *lines, _ = PROGRAM.replace("END", "pass").strip().splitlines()
    program.write_text("\n".join([*lines, "print(profiled.answer._repr_html_()[:4000])"]))
    assert "<" in run(program)[0]
