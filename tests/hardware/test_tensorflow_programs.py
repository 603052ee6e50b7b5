"""TensorFlow programs on a real GPU do what is expected, and explain names why they fail."""

from __future__ import annotations

import re

import pytest

from tests.hardware.tensorflow_programs import PROGRAMS, Program
from tests.hardware.test_run import PYTHON, _gpus, needs
from tests.kit import explained
from tools.gpu_experiments import run_program

pytestmark = pytest.mark.skipif(_gpus() != 1, reason="these programs are for exactly one GPU")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_does_what_is_expected(program: Program) -> None:
    needs("tensorflow")
    ended = run_program(program, PYTHON)
    assert re.search(program.prints, ended.output), ended.output
    assert bool(ended.code) == program.fails
    if program.cause:
        explanation = explained(ended.output)
        causes = [finding.cause for finding in explanation.root_causes] or [explanation.verdict]
        assert causes[0] == program.cause, ended.output
