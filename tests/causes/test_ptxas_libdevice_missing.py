"""Where XLA's compiler files may come from."""

from __future__ import annotations

import pytest

from tests.kit import cause_named, command_of, machine, run

CAUSE = cause_named("ptxas-libdevice-missing")
NO_WHEEL = "\n[target.packages.nvidia-cuda-nvcc-cu12]\nremove = true\n"


@pytest.mark.parametrize(
    "there",
    [
        '[target.packages.nvidia-cuda-nvcc]\nversion = "13.0.88"\n',
        '[environment.variables.XLA_FLAGS]\nvalue = "--xla_gpu_cuda_data_dir=/opt/cuda"\n',
        '[cuda.toolkits."/usr/local/cuda"]\nversion = {unknown = "no version file"}\n',
    ],
    ids=["the wheel for CUDA 13", "XLA_FLAGS", "a toolkit"],
)
def test_each_source_is_enough(there: str) -> None:
    assert run(CAUSE, machine(f'only = ["tensorflow"]\n{NO_WHEEL}{there}')).status == "passed"


def test_jax_on_the_gpu_has_compiled_already() -> None:
    assert run(CAUSE, machine(f'only = ["jax"]\n{NO_WHEEL}')).status == "passed"


def test_jax_that_was_not_run_has_not() -> None:
    text = f'only = ["jax"]\nprobes_left_out = "example"\n{NO_WHEEL}'
    (finding,) = run(CAUSE, machine(text)).findings
    assert finding.subject == "jax"
    assert finding.confidence == "possible"
    assert command_of(finding.remedies[0]) == "python -m pip install nvidia-cuda-nvcc-cu12"


def test_pytorch_brings_its_own() -> None:
    assert run(CAUSE, machine(f'only = ["torch"]\n{NO_WHEEL}')).status == "passed"
