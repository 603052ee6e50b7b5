"""What the trials of `memory find` do with a PyTorch module is what a usual loop does."""

from __future__ import annotations

import pathlib

import pytest

import whygpu
from tests.launch.programs import environment, run
from tests.targets import python_of

INSIDE = pathlib.Path(whygpu.__path__[0]) / "work" / "inside"
PROGRAM = """
import sys, weakref
sys.path.insert(0, {inside!r})
import torch
from whygpu_work.steps import _torch

outputs, kept = [], []

class Scores(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = torch.nn.Linear(4, 9)

    def forward(self, x):
        kept.append(sum(1 for each in outputs if each() is not None))
        output = self.scores(x)
        outputs.append(weakref.ref(output))
        return output

step = _torch(Scores(), torch.zeros(1, 4), {{"batch": 3, "infer": {infer}}})
for _ in range(4):
    step.run()
print(kept)
"""


@pytest.mark.parametrize("infer", [False, True])
def test_the_output_before_is_kept_while_the_next_one_is_computed(infer: bool) -> None:
    text = PROGRAM.format(inside=str(INSIDE), infer=infer)
    done = run([python_of("torch"), "-c", text], env=environment(CUDA_VISIBLE_DEVICES="-1"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "[0, 1, 1, 1]"
