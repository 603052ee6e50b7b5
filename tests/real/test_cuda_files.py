"""The CUDA libraries of a real install: what the wheels' records say, the libraries confirm."""

from __future__ import annotations

import time

import pytest

from tests.real.test_loader_agrees import site_of
from tests.targets import python_of
from whygpu.collectors import cuda_files, interpreter
from whygpu.collectors.library_versions import QUESTIONS, ask
from whygpu.host.local import LocalHost
from whygpu.model.observed import Known


@pytest.mark.parametrize("target", ["tensorflow-2.21-cuda", "jax-cuda12"])
def test_versions_by_record_and_by_asking_agree(target: str) -> None:
    python = python_of(target)
    host = LocalHost()
    described = interpreter.collect(host, python)
    assert isinstance(described, Known)
    began = time.process_time()
    folders = cuda_files.library_folders(host, described.value)
    observed = cuda_files.collect(host, described.value, folders)
    seconds = time.process_time() - began
    assert isinstance(observed, Known)
    copies = [copy for copy in observed.value.copies if copy.path.startswith(str(site_of(python)))]
    assert {"cudart", "cublas", "cublasLt", "cudnn", "cufft", "cusolver", "cusparse", "nccl"} <= {
        copy.name for copy in copies
    }
    told = ask(host, {copy.path: copy.name for copy in copies if copy.name in QUESTIONS})
    for copy in copies:
        assert isinstance(copy.version, Known)
        assert copy.owner.endswith(copy.version.value)
        answer = told.get(copy.path)
        if answer is not None:
            assert isinstance(answer, Known)
            assert f"{copy.version.value}.".startswith(f"{answer.value}.")
    assert seconds < 1
