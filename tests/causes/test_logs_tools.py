"""Logs of the tools around a program: installers, container engines, schedulers, compilers."""

from __future__ import annotations

from tests.cases import each
from tests.causes.test_logs_other_programs import cause_of
from tests.kit import explained


@each(
    ("log", "cause"),
    [
        # The driver's kernel module is built or loaded by other programs.
        ("Building initial module for 6.1.0\n"
         "ERROR: Cannot create report: [Errno 17] File exists: '/var/crash/x.crash'\n"
         "Error! Bad return status for module build on kernel: 6.1.0 (x86_64)\n"
         "dpkg: error processing package nvidia-dkms-535 (--configure):\n"
         "Errors were encountered while processing:\n nvidia-dkms-535\n"
         "E: Sub-process /usr/bin/dpkg returned an error code (1)",
         "nvidia-kernel-module-state"),
        ("[ 5.1] Loading of module with unavailable key is rejected\n"
         "[ 5.2] nvidia: module verification failed", "nvidia-kernel-module-state"),
        ("dkms: running auto installation for kernel 6.1 nvidia/550.54 failed",
         "nvidia-kernel-module-state"),
        # nvidia-smi writes ERR! into its table; other programs write it as well.
        ("| ERR!   52C    P2    ERR! / 250W |   900MiB / 11019MiB |    12%      Default |",
         "ecc-xid-hardware-error"),
        ("npm ERR! code ENOENT\nnpm ERR! path /app/package.json", "not-gpu"),
        # Container engines
        ("docker: Error response from daemon: failed to discover GPU vendor from CDI: none found",
         "docker-no-gpu-runtime"),
        ("docker: Error response from daemon: driver failed programming external connectivity on "
         "endpoint a: Bind for 0.0.0.0:80 failed: port is already allocated.", "not-gpu"),
        ("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "not-gpu"),
        ('Failed to pull image "nvcr.io/nvidia/x:1": not found\nError: ImagePullBackOff',
         "not-gpu"),
        # Windows: 126 is a missing library, 127 one of another release.
        ('[E:onnxruntime:Default] LoadLibrary failed with error 126 "" when trying to load '
         '"C:\\a\\onnxruntime_providers_cuda.dll"', "cuda-runtime-missing"),
        ('[E:onnxruntime:Default] LoadLibrary failed with error 127 "The procedure could not be '
         'found." when trying to load "C:\\a\\onnxruntime_providers_cuda.dll"',
         "windows-dll-load-failed"),
        ('level=INFO source=gpu.go:3 msg="[0] CUDA GPU is too old. Compute Capability detected: '
         '3.0"\nlevel=INFO source=gpu.go:9 msg="no compatible GPUs were discovered"',
         "compute-capability-too-old"),
        # Compilers, launchers, schedulers, services
        ("nvcc -o a a.cu\na.cu(12): error: identifier \"n\" is undefined", "not-gpu"),
        ("-- CUDA 12.1 found\nfatal: unable to access 'https://x/': Could not resolve host: x",
         "not-gpu"),
        ("sbatch: error: Batch job submission failed: Requested node configuration is not "
         "available", "not-gpu"),
        ("mpirun was unable to find the specified executable file", "not-gpu"),
        ("Cannot connect to GPU backend\nYou cannot currently connect to a GPU due to usage limits "
         "in Colab.", "not-gpu"),
        ("Device: cuda:0 NVIDIA A10 : cudaMallocAsync\ngot prompt\nFailed to validate prompt for "
         "output 9:\nOutput will be ignored", "not-gpu"),
        # The Trainer of Transformers, on a machine where PyTorch sees no GPU.
        ("ValueError: FP16 Mixed precision training with AMP can only be used on CUDA devices.",
         "cpu-only-build"),
    ],
)  # fmt: skip
def test_the_cause(log: str, cause: str) -> None:
    assert cause_of(log) == cause


def test_the_driver_of_a_jetson_board_is_opened_by_members_of_a_group() -> None:
    root = explained("NvRmMemInitNvmap failed with Permission denied\n").root_causes[0]
    assert root.cause == "device-permission-denied"


@each(
    ("log", "understood"),
    [
        ("Cannot connect to GPU backend", "Colab gives this account no machine with a GPU now"),
        ("srun: error: Unable to allocate resources: Invalid account", "the scheduler refuses"),
        ("docker: Error response from daemon: pull access denied for x", "image could not be fetc"),
    ],
)
def test_what_happened_is_said(log: str, understood: str) -> None:
    assert understood in explained(log).headline


@each(
    ("log", "cause"),
    [
        # The reason stands above an exception that gives none.
        ("[TRT] [W] CUDA initialization failure with error: 35\n"
         "TypeError: pybind11::init(): factory function returned nullptr",
         "driver-too-old-for-cuda"),
        ("terminate called after throwing an instance of 'vk::DeviceLostError'\n"
         "  what():  vk::Queue::submit: ErrorDeviceLost", "non-nvidia-backend"),
        ("NotFoundError: Could not find registered platform with id: 0x1", "non-nvidia-backend"),
        # ComfyUI's own times, and an exception without its type
        ("2025-03-15T22:57:28.208512 - Device: cuda:0 NVIDIA A10 : cudaMallocAsync\n"
         "2025-03-15T22:59:31.110306 - !!! Exception during processing !!! CUDA error: operation "
         "not supported", "kernel-bug-illegal-access"),
        # Names of exceptions without "Error"
        ("GPU: NVIDIA A10\npyarrow.lib.ArrowInvalid: offset overflow", "not-gpu"),
        ("GPU: NVIDIA A10\ntorch._dynamo.exc.Unsupported: call_function print", "not-gpu"),
        ("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:", "unknown"),
        ("CalledProcessError: Command '['where', 'cl']' returned non-zero exit status 1.",
         "not-gpu"),
    ],
)  # fmt: skip
def test_where_the_reason_is(log: str, cause: str) -> None:
    assert cause_of(log) == cause


def test_a_missing_tool_is_not_a_missing_framework() -> None:
    root = explained("sudo: nvidia-smi: command not found\n").root_causes[0]
    assert root.cause == "no-nvidia-driver"
    assert root.message.startswith("nvidia-smi, a part of NVIDIA's driver, is not installed")
