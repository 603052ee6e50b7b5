"""What is advised for a log fits what the log says."""

from __future__ import annotations

from tests.cases import each
from tests.kit import command_of, explained

NO_DEVICE_DRIVER = (
    'docker: Error response from daemon: could not select device driver "" with capabilities: '
    "[[gpu]]."
)
BFLOAT16 = (
    "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your "
    "Tesla T4 GPU has compute capability 7.5. You can use float16 instead: --dtype=half."
)
NO_DLOPEN = (
    "W0000 00:00:1700000000.000000 1 gpu_device.cc:2365] Cannot dlopen some GPU libraries. Please "
    "make sure the missing libraries mentioned above are installed properly."
)


def test_the_container_toolkit_is_installed_before_it_is_registered() -> None:
    (root,) = explained(NO_DEVICE_DRIVER).root_causes
    texts = [f"{remedy.text} {command_of(remedy)}" for remedy in root.remedies]
    install = next(i for i, text in enumerate(texts) if "nvidia-container-toolkit" in text)
    register = next(i for i, text in enumerate(texts) if "nvidia-ctk" in text)
    assert "nvidia-smi" in texts[0]
    assert texts[install].startswith("If that works")
    assert install < register


def test_a_data_type_that_the_gpu_lacks_needs_another_type_and_no_older_release() -> None:
    (root,) = explained(BFLOAT16).root_causes
    assert root.confidence == "likely"
    advice = " ".join(remedy.text for remedy in root.remedies)
    assert "float16" in advice
    assert "half" in advice
    assert "older release" not in advice


def test_the_words_of_pytorch_name_it() -> None:
    (root,) = explained("AssertionError: Torch not compiled with CUDA enabled").root_causes
    assert root.message.startswith("PyTorch")
    assert root.subject == "torch"
    assert "pip install torch" in (command_of(root.remedies[0]) or "")


@each(
    ("version", "first"), [("2.21.0", "library-path-conflict"), ("2.20.0", "cuda-runtime-missing")]
)
def test_a_release_that_is_known_to_lose_its_libraries_is_told(version: str, first: str) -> None:
    root, *others = explained(f"tensorflow {version}\n{NO_DLOPEN}").root_causes
    assert (root.cause, root.confidence) == (first, "likely")
    assert [other.confidence for other in others] == ["possible"]


def test_and_the_library_is_named() -> None:
    assert "libcusolver.so" in explained(f"tensorflow 2.21.0\n{NO_DLOPEN}").headline


def test_a_full_shared_memory_is_not_a_want_of_main_memory() -> None:
    found = explained(
        "node1:45:120 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : "
        "No space left on device\n"
        "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1275, "
        "unhandled system error, NCCL version 2.14.3\n"
    ).root_causes[0]
    assert "shared memory (/dev/shm)" in found.message
    assert any("--shm-size" in (command_of(remedy) or "") for remedy in found.remedies)


def test_vllm_hears_of_its_share_of_the_gpu() -> None:
    found = explained(
        "INFO 11-10 12:00:00 [api_server.py:1000] vLLM API server version 0.8.5\n"
        "ERROR 11-10 12:00:30 [core.py:396] torch.OutOfMemoryError: CUDA out of memory. Tried to "
        "allocate 448.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 201.00 MiB is free. "
        "Including non-PyTorch memory, this process has 23.40 GiB memory in use. Of the allocated "
        "memory 22.90 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but "
        "unallocated.\n"
    ).root_causes[0]
    assert "--gpu-memory-utilization" in found.remedies[0].text


def test_an_amd_gpu_gets_no_build_for_cuda() -> None:
    found = explained("RuntimeError: HIP error: invalid device function\n").root_causes
    assert [finding.cause for finding in found] == ["non-nvidia-backend"]


def test_a_protobuf_that_is_there_has_to_be_replaced() -> None:
    line = "ImportError: cannot import name 'runtime_version' from 'google.protobuf' (x.py)\n"
    (first, *_) = explained(line).root_causes[0].remedies
    assert command_of(first) == "python -m pip install --upgrade protobuf"


NO_CUDA = "AssertionError: Torch not compiled with CUDA enabled"


@each("path", ["C:/Users/kim/train.py", "/mnt/c/Users/kim/train.py"])
def test_the_folder_of_a_user_of_windows_is_not_on_a_mac(path: str) -> None:
    (root,) = explained(f'File "{path}", line 3\n{NO_CUDA}').root_causes
    assert root.cause == "cpu-only-build"
    assert not any("Mac" in remedy.text for remedy in root.remedies)


def test_a_release_is_chosen_for_the_python_of_a_folder_of_windows() -> None:
    path = r"C:\Users\li\AppData\Local\Programs\Python\Python310\lib\site-packages\torch\cuda"
    (root,) = explained(f'File "{path}\\__init__.py", line 211\n{NO_CUDA}').root_causes
    assert "pip install torch==" in (command_of(root.remedies[0]) or "")
    assert "Python" not in root.remedies[0].text


@each("shown", ["2.5.1+cpu", "'2.5.1+cpu'", "2.5.10+cpu"])
def test_a_version_for_the_cpu_proves_the_build(shown: str) -> None:
    session = f">>> torch.__version__\n{shown}\n>>> torch.cuda.is_available()\nFalse"
    (root,) = explained(session).root_causes
    assert (root.cause, root.confidence) == ("cpu-only-build", "certain")
    assert root.evidence[0].line == 2


def test_the_warning_of_jax_alone_gets_a_command_for_jax() -> None:
    warning = "WARNING:absl:No GPU/TPU found, falling back to CPU."
    (root,) = explained(warning).root_causes
    assert root.confidence == "possible"
    assert "jax[cuda" in (command_of(root.remedies[0]) or "")


@each(
    ("text", "words"),
    [
        ("MacBook, macOS 14.2\ntf.config.list_physical_devices('GPU')\n[]", "tensorflow-metal"),
        ("Apple M2\njax.devices()\n[CpuDevice(id=0)]", "jax-metal"),
        ("Apple M1\ntorch.cuda.is_available() False", "mps"),
    ],
)
def test_a_mac_is_not_asked_for_a_driver_of_nvidia(text: str, words: str) -> None:
    explanation = explained(text)
    guidance = explanation.guidance
    steps = guidance.steps if guidance else explanation.root_causes[0].remedies
    assert words in " ".join(step.text for step in steps)
    if guidance:
        assert "nvidia-smi" not in f"{guidance.ask} {guidance.candidates}"


def test_a_jetson_needs_builds_of_its_own() -> None:
    guidance = explained("Jetson Orin Nano, JetPack 6.0\ntorch: GPU available: False").guidance
    assert guidance is not None
    assert "Jetson" in guidance.candidates[0]
    assert "nv_tegra_release" in (guidance.ask or "")
