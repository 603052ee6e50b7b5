"""Variables of the allow-list: what they mean, where they fail, and what is never taken."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from tests.collectors.transcripts import file, folder, host
from tests.machines.healthy import DRIVER, NO_DRIVER
from whygpu.collectors import environment
from whygpu.collectors.driver_answer import GpuIds
from whygpu.host.local import LocalHost
from whygpu.model.environment import Environment, Variable
from whygpu.model.observed import Absent, Known
from whygpu.tables.variables import row_of

IDS = (GpuIds("GPU-46f633e5-fbdc-f86b-7622-5e1983a4fe62"),)


def collect(environ: dict[str, str], answers: dict[str, Any] | None = None) -> Environment:
    return environment.collect(host(answers, environ), DRIVER, IDS)


def read(name: str, value: str, answers: dict[str, Any] | None = None, **others: str) -> Variable:
    found = collect({name: value, **others}, answers)
    (variable,) = (each for each in found.variables if each.name == name)
    return variable


def test_nothing_set() -> None:
    assert collect({}) == Environment((), Absent("environment variable CUDA_VISIBLE_DEVICES"))


def test_other_variables_are_not_looked_at() -> None:
    found = collect({"PATH": "/bin", "HOME": "/home/me", "MY_CUDA": "1", "TORCH": "1"})
    assert found.variables == ()


def test_variables_come_sorted_and_can_be_asked_for() -> None:
    found = collect({"XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"})
    assert [variable.name for variable in found.variables] == ["JAX_PLATFORMS", "XLA_FLAGS"]
    assert found.get("JAX_PLATFORMS") == Known("cpu", "environment variable JAX_PLATFORMS")


@each(
    ("value", "meaning", "problem"),
    [
        ("0", "CUDA sees GPU 0 and no other", ""),
        ("", "hides every GPU from CUDA", ""),
        ("9", "hides every GPU from CUDA", "'9': there is no GPU 9"),
        ("0,9", "CUDA sees GPU 0 and no other", "'9': there is no GPU 9"),
    ],
)
def test_visible_devices(value: str, meaning: str, problem: str) -> None:
    variable = read("CUDA_VISIBLE_DEVICES", value)
    assert variable.meaning == meaning
    assert variable.problem.startswith(problem)
    assert bool(variable.problem) == bool(problem)


def test_visible_devices_without_a_driver() -> None:
    found = environment.collect(host(environ={"CUDA_VISIBLE_DEVICES": "0"}), NO_DRIVER, ())
    assert "is unknown" in found.variables[0].meaning


def test_visible_devices_follows_the_device_order() -> None:
    selected = collect({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert isinstance(selected.visible_gpus, Known)
    assert selected.visible_gpus.value.visible == Known(
        (0,), "environment variable CUDA_VISIBLE_DEVICES"
    )


GOOD = [
    ("TF_FORCE_GPU_ALLOW_GROWTH", "true", "as it needs it"),
    ("TF_CPP_MIN_LOG_LEVEL", "3", "hides every reason"),
    ("TF_ENABLE_ONEDNN_OPTS", "FALSE", "oneDNN is not used"),
    ("TF_GPU_ALLOCATOR", "cuda_malloc_async", "to the CUDA driver"),
    ("TF_SOMETHING_NEW", "1", "read by TensorFlow"),
    ("KERAS_BACKEND", "jax", "runs on JAX"),
    ("KERAS_BACKEND", "", "as if it were not set"),
    ("JAX_PLATFORMS", "cpu", "keeps off the GPU"),
    ("JAX_PLATFORMS", "cuda,cpu", "these platforms only"),
    ("XLA_PYTHON_CLIENT_MEM_FRACTION", ".9", "JAX takes .9"),
    ("XLA_PYTHON_CLIENT_ALLOCATOR", "PLATFORM", "each block of memory"),
    ("XLA_FLAGS", "--xla_gpu_autotune_level=0 --xla_dump_to='/a b'", "XLA compiler"),
    ("TF_XLA_FLAGS", "--tf_xla_auto_jit=2", "use of XLA"),
    ("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:[256:1,512:2],backend:native", "PyTorch"),
    ("NVIDIA_VISIBLE_DEVICES", "void", "no part of the driver"),
    ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility", "parts of the driver"),
    ("NVIDIA_TF32_OVERRIDE", "1", "no known effect"),
    ("CUDA_DEVICE_ORDER", "PCI_BUS_ID", "bus order"),
    ("LD_LIBRARY_PATH", "/nowhere:", "(1 of 1 do not exist)"),
    ("LD_PRELOAD", "libtcmalloc.so.4", "before anything else"),
    ("PYTHONNOUSERSITE", "1", "--user"),
]


@each(("name", "value", "meaning"), GOOD)
def test_values_that_do_what_they_are_set_for(name: str, value: str, meaning: str) -> None:
    variable = read(name, value)
    assert meaning in variable.meaning
    assert variable.problem == ""
    assert variable.value == value


BAD = [
    ("TF_FORCE_GPU_ALLOW_GROWTH", "1", 'only the words "true" and "false"'),
    ("TF_FORCE_GPU_ALLOW_GROWTH", "True", 'only the words "true" and "false"'),
    ("TF_GPU_ALLOCATOR", "bfc", "keeps its own allocator"),
    ("TF_GPU_THREAD_MODE", "private", "creates no GPU device"),
    ("TF_DETERMINISTIC_OPS", "yes", "keeps its default"),
    ("KERAS_BACKEND", "theano", "no such backend"),
    ("XLA_PYTHON_CLIENT_MEM_FRACTION", "1.5", "between 0 and 1"),
    ("XLA_PYTHON_CLIENT_MEM_FRACTION", "90%", "between 0 and 1"),
    ("XLA_PYTHON_CLIENT_PREALLOCATE", "no", "takes it for true"),
    ("XLA_PYTHON_CLIENT_ALLOCATOR", "", "no such allocator"),
    ("XLA_FLAGS", "--xla_dump_hlo --garbage", "--garbage is not a flag"),
    ("XLA_FLAGS", "garbage", "there is no file garbage"),
    ("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/opt/none", "names /opt/none, which is not a folder"),
    ("TF_XLA_FLAGS", "--xla_gpu_autotune_level=0", "is not a flag"),
    ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb=128", "is not key:value"),
    ("NVIDIA_DRIVER_CAPABILITIES", "utility", "no libcuda.so.1"),
    ("CUDA_DEVICE_ORDER", "pci_bus_id", "CUDA fails to start"),
    ("CUDA_DEVICE_ORDER", "", "CUDA fails to start"),
    ("CUDA_HOME", "/opt/none", "there is no folder /opt/none"),
    ("LD_PRELOAD", "/opt/none/a.so libc.so.6", "missing: /opt/none/a.so"),
]


@each(("name", "value", "problem"), BAD)
def test_values_that_cannot_do_what_they_are_set_for(name: str, value: str, problem: str) -> None:
    assert problem in read(name, value).problem


def test_folders_and_files_that_are_there() -> None:
    cuda = {"stat /opt/cuda": folder("/opt/cuda")}
    assert read("CUDA_HOME", "/opt/cuda", cuda).problem == ""
    assert read("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/opt/cuda", cuda).problem == ""
    assert read("XLA_FLAGS", "flags.txt", {"stat flags.txt": file("flags.txt")}).problem == ""


def test_unified_memory_lifts_the_limit_of_the_fraction() -> None:
    name = "XLA_PYTHON_CLIENT_MEM_FRACTION"
    assert read(name, "4.0").problem != ""
    assert read(name, "4.0", TF_FORCE_UNIFIED_MEMORY="1").problem == ""


def test_two_names_for_one_setting_clash() -> None:
    problem = read("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5", XLA_CLIENT_MEM_FRACTION=".5").problem
    assert "together with XLA_CLIENT_MEM_FRACTION" in problem


SECRETS = {
    "NVIDIA_API_KEY": "abc",
    "NVIDIA_TOKEN": "abc",
    "TF_TOKEN_app_terraform_io": "abc",
    "TF_VAR_db": "abc",
    "TF_CLI_ARGS": "abc",
    "TF_CONFIG": '{"cluster": {"worker": ["abc:1"]}}',
    "JAX_COORDINATOR_ADDRESS": "abc:1",
    "KERAS_PASSWORD": "abc",
    "TORCH_SECRET": "abc",
    "JAX_REMOTE": "https://me:abcdefgh@example.org",
    "TF_A": "ghp_abcdefgh1234",
    "TF_B": "hf_abcdefgh1234",
    "PYTORCH_A": "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1ub3A=",
    "TORCH_A": "eyJhbGciOiJIUzI1NiJ9.abc",
    "XLA_FLAGS": "--xla_x=nvapi-abcdefgh1234",
    "LD_LIBRARY_PATH": "/a:https://me:abcdefgh@example.org",
    "MY_PASSWORD": "abc",
    "AWS_SECRET_ACCESS_KEY": "abc",
}


@each("name", SECRETS)
def test_planted_secrets_are_not_taken(name: str) -> None:
    assert collect({name: SECRETS[name]}).variables == ()


def test_gpu_identifiers_are_cut_short() -> None:
    uuid = "GPU-46f633e5-fbdc-f86b-7622-5e1983a4fe62"
    found = collect(
        {"CUDA_VISIBLE_DEVICES": uuid, "NVIDIA_VISIBLE_DEVICES": f"{uuid},MIG-{uuid}/1/0"}
    )
    assert len(found.variables) == 2
    assert "5e19" not in repr(found)


def test_folders_with_names_like_keys_are_kept() -> None:
    nix = "/nix/store/0c5b1xkz2m3n4p5q6r7s8v9w0y1z2a3b-cuda/lib"
    assert read("LD_LIBRARY_PATH", nix).value == nix


def test_this_process_s_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    monkeypatch.setenv("NVIDIA_API_KEY", "planted")
    found = environment.collect(LocalHost(), NO_DRIVER, ())
    assert isinstance(found.get("KERAS_BACKEND"), Known)
    assert all(row_of(variable.name) for variable in found.variables)
    assert "planted" not in repr(found)
