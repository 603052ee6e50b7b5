"""Containers, WSL and other makers' GPUs in logs: what counts as a sign of them, and what not."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import explained

PROGRESS = "Epoch 1/5 loss: 0.4711"


def causes(log: str) -> list[str]:
    return [root.cause for root in explained(log).root_causes]


@each(
    "line",
    [
        'docker: Error response: could not select device driver "" with capabilities: [[gpu]].',
        'Error response: could not select device driver "nvidia" with capabilities: [[gpu]]',
        "docker: Error response from daemon: Unknown runtime specified nvidia.",
        "docker: Error response from daemon: unknown or invalid runtime name: nvidia.",
        "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: "
        "cannot open shared object file",
        "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
        "0/3 nodes are available: 1 PodToleratesNodeTaints, 3 Insufficient nvidia.com/gpu.",
        "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available.",
    ],
)
def test_what_engines_and_images_say(line: str) -> None:
    root = explained(line).root_causes[0]
    assert root.cause == "docker-no-gpu-runtime"
    assert root.confidence == "certain"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "nvidia-container-cli: initialization error: nvml error: driver/library version "
            "mismatch: unknown",
            "driver-library-version-mismatch",
        ),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=11.6, please "
            "update your driver to a newer version",
            "driver-too-old-for-cuda",
        ),
        (
            "ERROR: This container was built for NVIDIA Driver Release 470.57 or later, but\n"
            "version 450.80.02 was detected and compatibility mode is UNAVAILABLE.",
            "driver-too-old-for-cuda",
        ),
    ],
)
def test_the_engine_also_tells_what_is_not_the_containers_fault(line: str, cause: str) -> None:
    assert causes(line)[0] == cause


def test_a_container_that_works_is_no_finding() -> None:
    assert not causes(f"root@0f1e2d3c4b5a:/app# docker ps\n{PROGRESS}")


def test_the_toolkit_asking_whether_it_is_wsl_is_no_wsl() -> None:
    log = (
        "nvc.c:393] attempting to load dxcore to see if we are running under Windows Subsystem "
        "for Linux (WSL)\n"
        "nvc.c:395] dxcore initialization failed, continuing assuming a non-WSL environment\n"
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"
    )
    assert "wsl-no-gpu" not in causes(log)


def test_a_report_on_surroundings_that_names_rocm_is_no_rocm() -> None:
    log = (
        "ROCM used to build PyTorch: N/A\nHIP runtime version: N/A\n"
        f"MIOpen runtime version: N/A\n{PROGRESS}"
    )
    assert not causes(log)


def test_an_operation_that_metal_leaves_to_the_cpu_is_no_failure() -> None:
    log = (
        "UserWarning: The operator 'aten::nonzero' is not currently supported on the MPS backend "
        f"and will fall back to run on the CPU.\n{PROGRESS}"
    )
    assert not causes(log)


@each(
    "line",
    [
        "NotImplementedError: The operator 'aten::_index_put_impl_' is not current implemented "
        "for the MPS device.",
        "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't "
        "support float64. Please use float32 instead.",
        "RuntimeError: HIP error: invalid device function",
        '"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"',
        "The DirectML device has encountered an unrecoverable error (DXGI_ERROR_DEVICE_REMOVED).",
        "RuntimeError: Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES)",
        "ImportError: librocblas.so.4: cannot open shared object file: No such file or directory",
    ],
)
def test_other_makers_back_ends(line: str) -> None:
    assert causes(line)[0] == "non-nvidia-backend"


def test_cuda_is_not_to_be_had_on_a_mac() -> None:
    log = (
        '  File "/Users/kim/lib/python3.9/site-packages/torch/cuda/__init__.py", line 211\n'
        "AssertionError: Torch not compiled with CUDA enabled"
    )
    explanation = explained(log)
    assert explanation.root_causes[0].cause == "non-nvidia-backend"


def test_directml_without_the_libraries_of_windows() -> None:
    log = "ImportError: libd3d12.so: cannot open shared object file: No such file or directory"
    assert causes(log)[0] == "non-nvidia-backend"


NO_FREE_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
NO_RUNTIME = 'failed to get sandbox runtime: no runtime for "nvidia" is configured'
NO_DEVICES = "I1018 08:11:27.332166       1 main.go:346] No devices found. Waiting indefinitely."


@each(
    ("log", "message", "remedy"),
    [
        (NO_FREE_GPU, "no node offers one, or all are taken", "Check what the nodes offer"),
        (
            "0/3 nodes are available: 3 node(s) didn't have enough resource nvidia.com/mig-1g.5gb",
            "no node offers one, or all are taken",
            "Check what the nodes offer",
        ),
        (NO_RUNTIME, "does not know NVIDIA's runtime", "On the node, make NVIDIA's runtime"),
        (NO_DEVICES, "plugin finds no GPU on this node", "Check that the driver works"),
        (
            "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
            "Requested: 1, Available: 0, which is unexpected",
            "fewer GPUs free than the pod was promised",
            "Check what the nodes offer",
        ),
        # What is nearer to the node comes first.
        (f"{NO_FREE_GPU}\n{NO_DEVICES}", "plugin finds no GPU", "Check that the driver works"),
        (f"{NO_FREE_GPU}\n{NO_RUNTIME}", "does not know NVIDIA's", "On the node, make"),
    ],
)
def test_kubernetes_says_why_a_pod_gets_no_gpu(log: str, message: str, remedy: str) -> None:
    (root,) = explained(log).root_causes
    assert (root.code, root.cause, root.confidence) == ("WG804", "docker-no-gpu-runtime", "certain")
    assert message in root.message
    assert root.remedies[0].text.startswith(remedy)


@each(
    "log",
    [
        "0/3 nodes are available: 3 Insufficient cpu.",
        "Registered device plugin for 'nvidia.com/gpu' with Kubelet",
        # Every node that is no Jetson says the second, and every Jetson the first.
        "Detected non-NVML platform: could not load NVML library\nDetected Tegra platform",
        "Detected NVML platform: found NVML library\nDetected non-Tegra platform: no such file",
    ],
)
def test_other_words_of_a_cluster_are_no_lack_of_a_gpu(log: str) -> None:
    explanation = explained(log)
    assert "WG804" not in [f.code for f in (*explanation.root_causes, *explanation.symptoms)]


def test_what_the_library_of_the_driver_lacks_follows_from_the_cluster() -> None:
    library = "could not load NVML library: libnvidia-ml.so.1: cannot open shared object file"
    explanation = explained(f"{library}: No such file or directory\n{NO_DEVICES}")
    assert [root.code for root in explanation.root_causes] == ["WG804"]


def test_the_evidence_of_a_waiting_pod_is_short() -> None:
    (root,) = explained("\n".join([NO_FREE_GPU] * 6)).root_causes
    assert [evidence.line for evidence in root.evidence] == [1, 2, 3, 4]
