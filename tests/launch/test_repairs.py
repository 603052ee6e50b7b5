"""What is put right for one process: a machine with the fault, and the change that is proposed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.kit import machine
from whygpu.causes import catalogue
from whygpu.causes.evidence.keras_backend import Choice
from whygpu.diagnosis.engine import diagnose
from whygpu.launch.environment import changed
from whygpu.launch.repairs import REPAIRERS, repairs_for
from whygpu.model.policy import Repair
from whygpu.model.report import Report

HEALTHY = 'only = ["tensorflow"]\nprobes_left_out = "example"\n'


def judged(toml: str) -> Report:
    return diagnose(machine(toml), catalogue())


def mended(toml: str, environ: Mapping[str, str] | None = None) -> tuple[Repair, ...]:
    """The repairs, on a machine that is healthy as soon as anything is changed."""
    given = environ or {}

    def examine(after: Mapping[str, str]) -> Report:
        return judged(toml) if after == given else judged(HEALTHY)

    return repairs_for(judged(toml), given, examine)


def after(repairs: tuple[Repair, ...], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    return changed(environ or {}, (action for repair in repairs for action in repair.actions))


def test_every_repairer_is_for_a_cause() -> None:
    assert REPAIRERS.keys() <= {cause.slug for cause in catalogue()}


MIXED = (
    HEALTHY
    + """
[target.frameworks.tensorflow.libraries."libcusolver.so.11"]
outcome = "symbol-missing"
chain = ["libcusolver.so.11"]
detail = "libcusolver.so.11: undefined symbol: cublasSetEnvironmentMode"
searched = [{path = "/opt/cuda/lib64", kind = "ld-library-path", result = "found"}]
"""
)


def test_a_folder_with_copies_that_do_not_fit_goes() -> None:
    environ = {"LD_LIBRARY_PATH": "/opt/driver:/opt/cuda/lib64/"}
    repairs = mended(MIXED, environ)
    assert after(repairs, environ) == {"LD_LIBRARY_PATH": "/opt/driver"}
    assert repairs[0].what == "/opt/cuda/lib64/ removed from LD_LIBRARY_PATH"
    assert mended(MIXED, {}) == (), "it is not on the variable, and cannot be removed from it"


def test_a_stub_in_the_drivers_place_goes() -> None:
    toml = (
        HEALTHY
        + '[driver.cuda_library]\npath = "/opt/cuda/stubs/libcuda.so.1"\nkind = "toolkit-stub"\n'
    )
    environ = {"LD_LIBRARY_PATH": "/opt/cuda/stubs"}
    assert after(mended(toml, environ), environ) == {}


def test_a_broken_file_on_the_variable_goes() -> None:
    toml = (
        HEALTHY
        + """
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "broken-file"
chain = ["libcudnn.so.9"]
path = "/opt/bad/libcudnn.so.9"
detail = "/opt/bad/libcudnn.so.9: file too short"
searched = [{path = "/opt/bad", kind = "ld-library-path", result = "broken"}]
"""
    )
    environ = {"LD_LIBRARY_PATH": "/opt/bad"}
    assert after(mended(toml, environ), environ) == {}


WHEEL = "/venv/lib/python3.11/site-packages/nvidia/cudnn/lib"
OTHER_CUDNN = (
    HEALTHY
    + f"""
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
path = "/usr/lib/libcudnn.so.9"
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "{WHEEL}/libcudnn.so.9"
version = "9.27.0"
origin = "wheel"
owner = "nvidia-cudnn-cu12 9.27.0.42"
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "/usr/lib/libcudnn.so.9"
version = "9.14.0"
origin = "system"
owner = ""
"""
)


def test_the_wheels_cudnn_comes_first() -> None:
    assert after(mended(OTHER_CUDNN)) == {"LD_LIBRARY_PATH": WHEEL}
    environ = {"LD_LIBRARY_PATH": "/usr/lib"}
    assert after(mended(OTHER_CUDNN, environ), environ) == {}


NO_COMPILER = HEALTHY + "[target.packages.nvidia-cuda-nvcc-cu12]\nremove = true\n"


def test_xla_is_shown_its_files(tmp_path: Path) -> None:
    place = tmp_path / "cuda"
    (place / "nvvm" / "libdevice").mkdir(parents=True)
    (place / "nvvm" / "libdevice" / "libdevice.10.bc").touch()
    environ = {"CUDA_HOME": str(place), "PATH": "/bin", "XLA_FLAGS": "--xla_one=1"}
    changes = after(mended(NO_COMPILER, environ), environ)
    assert changes["XLA_FLAGS"] == f"--xla_one=1 --xla_gpu_cuda_data_dir={place}"
    assert changes["PATH"] == "/bin"
    (place / "bin").mkdir()
    (place / "bin" / "ptxas").touch()
    assert after(mended(NO_COMPILER, environ), environ)["PATH"] == f"{place}/bin:/bin"


def test_xla_is_not_sent_to_a_folder_that_is_not_there() -> None:
    toml = (
        HEALTHY
        + """
[environment.variables.XLA_FLAGS]
value = "--xla_gpu_cuda_data_dir=/gone"
meaning = "example"
problem = "--xla_gpu_cuda_data_dir names /gone, which is not a folder"
"""
    )
    environ = {"XLA_FLAGS": "--xla_gpu_cuda_data_dir=/gone --xla_one=1"}
    flags = after(mended(toml, environ), environ)["XLA_FLAGS"]
    assert "/gone" not in flags
    assert "--xla_one=1" in flags


def test_a_variable_that_is_none_of_ours_to_mend_stays() -> None:
    toml = (
        HEALTHY
        + """
[environment.variables.TF_FORCE_GPU_ALLOW_GROWTH]
value = "1"
meaning = "example"
problem = "example"
"""
    )
    environ = {"TF_FORCE_GPU_ALLOW_GROWTH": "1"}
    assert mended(toml, environ) == ()


@pytest.mark.parametrize("cause", ["keras-backend-missing", "keras-backend-without-gpu"])
def test_a_backend_that_serves(cause: str) -> None:
    start = 'probes_left_out = "example"\n'
    toml = (
        start
        + {
            "keras-backend-missing": 'only = ["keras", "torch"]\n',
            "keras-backend-without-gpu": '[target.frameworks.keras.keras]\nbackend = "jax"\n'
            '[target.frameworks.jax.build]\nkind = "cpu"\n',
        }[cause]
    )
    (repair,) = mended(toml)
    assert repair.subject == "keras"
    backend = {"keras-backend-missing": "torch", "keras-backend-without-gpu": "tensorflow"}[cause]
    assert after((repair,)) == {"KERAS_BACKEND": backend}


@pytest.mark.parametrize("cause", ["keras-backend-missing", "keras-backend-without-gpu"])
def test_a_backend_that_the_user_chose_stays(cause: str) -> None:
    toml = (
        'probes_left_out = "example"\n'
        + {
            "keras-backend-missing": 'only = ["keras", "torch"]\n',
            "keras-backend-without-gpu": '[target.frameworks.jax.build]\nkind = "cpu"\n',
        }[cause]
        + '[target.frameworks.keras.keras]\nbackend = "jax"\n'
        + '[environment.variables.KERAS_BACKEND]\nvalue = "jax"\nmeaning = "example"\n'
    )
    assert cause in {finding.cause for finding in judged(toml).findings}
    assert mended(toml, {"KERAS_BACKEND": "jax"}) == ()


@pytest.mark.parametrize(
    ("choice", "on_purpose"),
    [
        (Choice("tensorflow", "variable", "KERAS_BACKEND=tensorflow"), True),
        (Choice("jax", "file", "~/.keras/keras.json"), True),
        # Keras itself writes this when it is first imported.
        (Choice("tensorflow", "file", "~/.keras/keras.json"), False),
        (Choice("tensorflow", "default", "nothing else is configured"), False),
    ],
)
def test_who_chose_the_backend(choice: Choice, on_purpose: bool) -> None:
    assert choice.on_purpose is on_purpose


def test_only_the_causes_that_are_wanted() -> None:
    report = judged(MIXED)
    environ = {"LD_LIBRARY_PATH": "/opt/cuda/lib64"}
    assert repairs_for(report, environ, lambda _: judged(HEALTHY), ("keras-backend-missing",)) == ()


def test_a_repair_that_brings_another_fault_is_none() -> None:
    report = judged(MIXED)
    environ = {"LD_LIBRARY_PATH": "/opt/cuda/lib64"}
    assert repairs_for(report, environ, lambda _: judged(OTHER_CUDNN)) == ()


TRAPPING = """
only = ["torch"]
probes_left_out = "example"
[system.cpu]
instruction_sets = ["amx_bf16", "amx_tile", "avx", "avx512f"]
trials = [{feature = "amx_tile", outcome = "traps"}, {feature = "avx512f", outcome = "runs"}]
"""


def _with_variables(toml: str, environ: Mapping[str, str]) -> Report:
    """The machine as a program with these variables finds it."""
    rows = (f'[environment.variables.{n}]\nvalue = "{v}"\n' for n, v in environ.items())
    return judged(toml + "".join(rows))


def test_onednn_is_kept_from_instructions_that_trap() -> None:
    (repair,) = repairs_for(judged(TRAPPING), {}, lambda now: _with_variables(TRAPPING, now))
    assert after((repair,)) == {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"}
    assert repair.code == "WG320"


def test_one_limit_serves_every_framework() -> None:
    both = TRAPPING.replace('["torch"]', '["torch", "tensorflow"]')
    assert len(repairs_for(judged(both), {}, lambda now: _with_variables(both, now))) == 1


@pytest.mark.parametrize("name", ["ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"])
def test_a_limit_that_the_user_has_set_stays(name: str) -> None:
    environ = {name: "AVX512_CORE_AMX"}
    report = _with_variables(TRAPPING, environ)
    assert [finding.code for finding in report.root_causes] == ["WG320"]
    assert repairs_for(report, environ, lambda now: _with_variables(TRAPPING, now)) == ()
