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


def fixes(log: str) -> str:
    """The texts and commands of all remedies for a log."""
    roots = explained(log).root_causes
    return "\n".join(f"{remedy.text} {remedy.action}" for root in roots for remedy in root.remedies)


WSL = "5.15.167.4-microsoft-standard-WSL2"
OF_IMAGE = "root@3c2b1d2e3f4a:/app# python train.py"
REFUSED_COMPAT = "Error 804: forward compatibility was attempted on non supported HW"
NO_DRIVER = "RuntimeError: Found no NVIDIA driver on your system."


@each(
    "place",
    [
        OF_IMAGE,
        "== PyTorch ==\nNVIDIA Release 23.05 (build 60708168)",
        "$ docker run --gpus all -it nvcr.io/nvidia/pytorch:23.05-py3",
        "/opt/pytorch/pytorch/c10/cuda/CUDAFunctions.cpp:109",
    ],
)
def test_a_container_with_newer_libraries_is_not_restarted(place: str) -> None:
    log = f"{place}\nRuntimeError: Unexpected error from cudaGetDeviceCount(). {REFUSED_COMPAT}\n"
    assert causes(log)[0] == "driver-too-old-for-cuda"
    assert "reboot" not in fixes(log)


def test_outside_a_container_the_restart_comes_after_the_question_for_one() -> None:
    log = f"RuntimeError: {REFUSED_COMPAT}\n"
    root = explained(log).root_causes[0]
    assert root.cause == "driver-library-version-mismatch"
    assert "container" in root.remedies[0].text
    assert "reboot" in str(root.remedies[1].action)


def test_two_versions_of_a_driver_are_normal_under_wsl() -> None:
    log = (
        f"{WSL}\nE cuda_driver.cc:282] failed call to cuInit: CUDA_ERROR_NOT_FOUND: named symbol "
        "not found\nI cuda_diagnostics.cc:241] libcuda reported version is: 555.42.2\n"
        "I cuda_diagnostics.cc:245] kernel reported version is: 555.85\n"
    )
    assert causes(log) == ["wsl-no-gpu"]
    assert "1.15 or newer" in fixes(log)
    assert "modprobe" not in fixes(log)


@each("place", [f"{OF_IMAGE}\n{WSL}", f"PS C:\\Users\\me> docker compose up\n{OF_IMAGE}"])
def test_docker_on_windows_needs_no_toolkit(place: str) -> None:
    advice = fixes(f"{place}\n{NO_DRIVER}\n")
    assert "Start the container with GPUs" in advice
    assert "nvidia-ctk" not in advice
    assert "/usr/lib/wsl/lib" not in advice


@each(
    "line",
    [
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: no",
        "nvidia-container-cli: initialization error: WSL environment detected but no adapters were "
        "found: unknown.",
    ],
)
def test_the_toolkit_that_reports_an_error_is_installed(line: str) -> None:
    assert "install NVIDIA's container toolkit" not in fixes(line)
    assert "nvidia-ctk" not in fixes(line)


def test_an_image_with_k8s_in_its_name_runs_in_docker() -> None:
    log = (
        "$ docker run --rm --gpus=all nvcr.io/nvidia/k8s/cuda-sample:nbody\n"
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: no\n"
    )
    assert "pod" not in fixes(log)


TPU = "COLAB_TPU_1VM=1\nTPU_ACCELERATOR_TYPE=v2-8\n"
NO_DEVICE = "RuntimeError: No CUDA GPUs are available\n"


@each(
    ("log", "code"),
    [
        (TPU + NO_DEVICE, "WG808"),
        (TPU + "AssertionError: Torch not compiled with CUDA enabled\n", "WG808"),
        ("/kaggle/working/run.py\n" + NO_DEVICE, "WG808"),
        ("KeyError: 'COLAB_TPU_ADDR'\n" + NO_DEVICE, "WG808"),
        ("AssertionError: Torch not compiled with CUDA enabled\n/content/x.py\n", "WG301"),
        ("/content/x.py\n%env CUDA_VISIBLE_DEVICES=-1\n" + NO_DEVICE, "WG401"),
    ],
)
def test_a_runtime_of_a_notebook_service_may_have_no_gpu(log: str, code: str) -> None:
    assert explained(log).root_causes[0].code == code


def test_a_program_that_looked_for_a_tpu_has_found_none() -> None:
    message = explained("KeyError: 'COLAB_TPU_ADDR'\n" + NO_DEVICE).root_causes[0].message
    assert "was started without a GPU" in message


def test_a_runtime_with_a_gpu_is_fine() -> None:
    ready = (
        "/content/notebook\nI gpu_device.cc:2021] Created device /job:localhost/replica:0/task:0/"
        "device:GPU:0 with 9 MB memory:  -> device: 0, name: Tesla T4, pci bus id: 0000:00:04.0,"
        f" compute capability: 7.5\n{PROGRESS}\n"
    )
    assert explained(ready).verdict == "nothing-wrong"


@each(
    "line",
    [
        "Failed to initialize NVML: Unknown Error",
        "after a day in docker it says: failed to initialize nvml unknown error",
        "Failed to initialize NVML: ERROR_UNKNOWN",
    ],
)
def test_access_that_was_lost_however_it_is_written(line: str) -> None:
    assert causes(line) == ["docker-no-gpu-runtime"]


def test_an_optimizer_that_metal_cannot_compile_has_remedies_of_its_own() -> None:
    (root,) = explained(
        "2023-01-05 12:38:02.1: W op_kernel.cc:1830] OP_REQUIRES failed at xla_ops.cc:418 : "
        "NOT_FOUND: could not find registered platform with id: 0x105"
    ).root_causes
    assert root.cause == "non-nvidia-backend"
    assert "legacy.Adam" in root.remedies[0].text
    assert "not all" in root.remedies[0].text
    other = "RuntimeError: MPS: Unsupported Border padding mode"
    assert "legacy" not in str(explained(other).root_causes[0].remedies)


NO_DEVICE = (
    "2019-08-13 11:02:51.856630: E tensorflow/stream_executor/cuda/cuda_driver.cc:300] failed call "
    "to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n"
)


@each(
    "told",
    [
        "It is the same with docker and conda.",
        "It happens both inside docker and on the host.",
        "This runs without docker, directly on the server.",
        "I am not using a container.",
    ],
)
def test_a_sentence_that_speaks_of_containers_and_of_other_places_is_no_container(
    told: str,
) -> None:
    assert "docker-no-gpu-runtime" not in causes(f"{told}\n{NO_DEVICE}")
    assert causes(f"I run it in docker.\n{NO_DEVICE}")[0] == "docker-no-gpu-runtime"
