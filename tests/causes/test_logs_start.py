"""Why CUDA did not start: the same words, and what the other lines make of them."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import explained
from whygpu.model.explanation import Explanation

NO_DEVICE = "E cuda_driver.cc:300] failed call to cuInit: CUDA_ERROR_NO_DEVICE"
UNKNOWN = "E cuda_driver.cc:300] failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error"
NO_LIBRARY = (
    "W dso_loader.cc:64] Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: "
    "cannot open shared object file: No such file or directory"
)
CODE_303 = "W cuda_driver.cc:269] failed call to cuInit: UNKNOWN ERROR (303)"
NO_KERNEL = (
    "I cuda_diagnostics.cc:156] kernel driver does not appear to be running on this host (box): "
    "/proc/driver/nvidia/version does not exist"
)
MATCHING = "I cuda_diagnostics.cc:310] kernel version seems to match DSO: 455.23.5"
IN_CONTAINER = "root@0f1e2d3c4b5a:/app# python train.py"
IN_WSL = "Linux pc 5.15.90.1-microsoft-standard-WSL2 #1 SMP x86_64 GNU/Linux"
INSUFFICIENT = (
    "RuntimeError: cuda runtime error (35) : CUDA driver version is insufficient for CUDA runtime "
    "version at torch/csrc/cuda/Module.cpp:51"
)
NO_CUDART = "Could not find cuda drivers on your machine, GPU will not be used."
SMI_TABLE = """| NVIDIA-SMI 440.64       Driver Version: 440.64       CUDA Version: 10.2     |
|   0  Tesla V100-PCIE...  Off  | 00000000:61:00.0 Off |                    0 |
| N/A   41C    P0    36W / 250W |    317MiB / 16160MiB |      0%      Default |"""
SMI_FAILED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that "
    "the latest NVIDIA driver is installed and running."
)
PROGRESS = "Epoch 1/5 loss: 0.4711"
STRANGER = "ValueError: Shapes (None, 1) and (None, 3) are incompatible"


def said(*lines: str) -> Explanation:
    return explained("\n".join(lines))


def first(*lines: str) -> str:
    explanation = said(*lines)
    assert explanation.root_causes, explanation
    return explanation.root_causes[0].cause


@each(
    ("lines", "cause"),
    [
        ((NO_DEVICE, MATCHING), "visible-devices-hides-gpu"),
        ((NO_DEVICE, NO_KERNEL), "no-nvidia-driver"),
        ((IN_CONTAINER, NO_DEVICE, NO_KERNEL), "docker-no-gpu-runtime"),
        ((IN_WSL, NO_DEVICE, NO_KERNEL), "wsl-no-gpu"),
        ((NO_DEVICE, "$ nvidia-smi", SMI_FAILED), "nvidia-kernel-module-state"),
        ((NO_DEVICE, SMI_TABLE), "visible-devices-hides-gpu"),
        (("TensorFlow 2.16.1", NO_CUDART, SMI_TABLE), "cuda-runtime-missing"),
        (("nvidia-smi shows my RTX 4070", NO_CUDART, "tf 2.16.1"), "cuda-runtime-missing"),
        ((UNKNOWN, MATCHING), "nvidia-kernel-module-state"),
        ((NO_LIBRARY, CODE_303, NO_KERNEL), "no-nvidia-driver"),
        ((IN_CONTAINER, NO_LIBRARY, CODE_303), "docker-no-gpu-runtime"),
        ((IN_WSL, NO_LIBRARY, CODE_303), "wsl-no-gpu"),
        ((NO_LIBRARY, CODE_303, SMI_TABLE), "docker-no-gpu-runtime"),
        ((INSUFFICIENT,), "driver-too-old-for-cuda"),
        ((INSUFFICIENT, SMI_TABLE), "driver-too-old-for-cuda"),
        (("bash: nvidia-smi: command not found", INSUFFICIENT), "no-nvidia-driver"),
    ],
)
def test_the_other_lines_decide(lines: tuple[str, ...], cause: str) -> None:
    assert first(*lines) == cause


def test_versions_that_differ_outweigh_every_code_of_cuinit() -> None:
    apart = (
        "E cuda_diagnostics.cc:296] kernel version 367.44.0 does not match DSO version 352.99.0 -- "
        "cannot find working devices in this configuration"
    )
    for status in (NO_DEVICE, UNKNOWN):
        explanation = said(status, apart)
        assert [root.cause for root in explanation.root_causes] == [
            "driver-library-version-mismatch"
        ]
        assert "367.44.0" in explanation.root_causes[0].message
        assert "352.99.0" in explanation.root_causes[0].message


def test_what_an_ordinary_machine_without_a_gpu_says_is_harmless_where_the_program_works() -> None:
    explanation = said(NO_LIBRARY, CODE_303, NO_KERNEL, PROGRESS)
    assert explanation.verdict == "nothing-wrong"
    assert [symptom.cause for symptom in explanation.symptoms][:1] == ["no-nvidia-driver"]


def test_and_beside_the_point_where_it_fails_of_something_else() -> None:
    assert said(NO_LIBRARY, CODE_303, NO_KERNEL, STRANGER).verdict == "not-gpu"


def test_but_it_is_the_answer_where_the_program_ends_for_want_of_a_gpu() -> None:
    explanation = said(NO_DEVICE, NO_KERNEL, "RuntimeError: No GPU found, training needs one")
    assert explanation.root_causes[0].cause == "no-nvidia-driver"
    assert explanation.root_causes[0].severity == "error"
    assert 3 in [evidence.line for evidence in explanation.root_causes[0].evidence]


def test_a_working_driver_whose_gpu_is_hidden_is_worth_a_word_even_if_the_program_runs() -> None:
    explanation = said(NO_DEVICE, MATCHING, PROGRESS)
    assert explanation.verdict == "found"
    assert explanation.root_causes[0].ask


def test_a_gpu_that_was_hidden_on_purpose_is_not_complained_about() -> None:
    hidden = 'os.environ["CUDA_VISIBLE_DEVICES"] = "-1"'
    assert said(hidden, NO_DEVICE, MATCHING, PROGRESS).verdict == "nothing-wrong"
    assert said(hidden, NO_DEVICE, MATCHING, STRANGER).verdict == "not-gpu"


def test_none_in_python_means_that_nothing_is_hidden() -> None:
    explanation = said("os.environ['CUDA_VISIBLE_DEVICES']: None", NO_DEVICE, NO_KERNEL)
    assert explanation.root_causes[0].cause == "no-nvidia-driver"


def test_a_device_that_was_created_refutes_what_another_process_said() -> None:
    ready = (
        "I gpu_device.cc:1053] Created TensorFlow device (/job:localhost/replica:0/task:0/"
        "device:GPU:0 with 7439 MB memory) -> physical GPU (device: 0, name: GeForce GTX 1080, "
        "pci bus id: 0000:01:00.0, compute capability: 6.1)"
    )
    assert not said(ready, NO_LIBRARY, PROGRESS).root_causes


def test_where_two_are_possible_both_are_told_with_the_question_that_decides() -> None:
    explanation = said("RuntimeError: No CUDA GPUs are available")
    causes = [root.cause for root in explanation.root_causes]
    assert causes == ["visible-devices-hides-gpu", "no-nvidia-driver"]
    assert all(root.ask for root in explanation.root_causes)


def test_no_cuda_drivers_may_mean_libraries_only() -> None:
    """TensorFlow prints it if libcudart is missing, whether or not there is a driver."""
    unseen = "Could not find cuda drivers on your machine, GPU will not be used."
    assert "only the CUDA libraries are missing" in said(unseen).headline
    assert "found no NVIDIA driver" in said(unseen, CODE_303).headline


def test_jax_says_no_visible_devices_after_any_refusal() -> None:
    refused = (
        "E cuda_platform.cc:51] failed call to cuInit: INTERNAL: CUDA error: Failed call to "
        "cuInit: CUDA_ERROR_UNKNOWN: unknown error"
    )
    follow = "jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: No visible GPU devices."
    assert first(refused, follow) == "nvidia-kernel-module-state"
    assert first(follow) == "visible-devices-hides-gpu"


def test_the_table_of_drivers_makes_it_certain() -> None:
    log = (
        "tensorflow-gpu==2.4.1",
        "I cuda_diagnostics.cc:204] libcuda reported version is: 418.87.0",
        "tensorflow.python.framework.errors_impl.InternalError: cudaGetDevice() failed. Status: "
        "CUDA driver version is insufficient for CUDA runtime version",
    )
    root = said(*log).root_causes[0]
    assert (root.cause, root.confidence) == ("driver-too-old-for-cuda", "certain")
    assert "418.87.0" in root.message
    assert "CUDA 11.0" in root.message
    assert "450.36.06" in root.remedies[1].text


def test_a_crash_in_the_start_of_the_driver_belongs_to_it() -> None:
    explanation = said(
        "Exception Type:        EXC_BAD_ACCESS (SIGSEGV)",
        "4   _pywrap_tensorflow.so  perftools::gputools::cuda::CUDADriver::Init() + 569",
        NO_DEVICE,
    )
    assert explanation.root_causes[0].cause == "visible-devices-hides-gpu"


CRASHES = (
    "Segmentation fault (core dumped)",
    "Aborted (core dumped)",
    "bash: line 1: 19819 Segmentation fault      python train.py",
    "Fatal Python error: Segmentation fault",
)


@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_is_no_evidence_for_a_missing_driver(crash: str) -> None:
    """TensorFlow goes on without a GPU; what crashes it next, it does not say."""
    explanation = said(NO_LIBRARY, CODE_303, NO_KERNEL, crash)
    assert (explanation.verdict, explanation.root_causes) == ("unknown", ())
    assert "crashed" in explanation.headline
    assert "line 4" in explanation.headline
    assert [line.line for line in explanation.unexplained] == [4]
    assert all(
        evidence.line != 4 for finding in explanation.symptoms for evidence in finding.evidence
    )


def test_what_keeps_the_gpu_idle_is_said_beside_a_crash_that_it_does_not_account_for() -> None:
    explanation = said(UNKNOWN, MATCHING, "Segmentation fault (core dumped)")
    assert [root.cause for root in explanation.root_causes] == ["nvidia-kernel-module-state"]
    assert [line.line for line in explanation.unexplained] == [3]


def test_no_memory_is_the_answer_where_the_crash_says_so() -> None:
    thrown = "terminate called after throwing an instance of 'St9bad_alloc'"
    explanation = said(NO_LIBRARY, CODE_303, thrown, "  what():  std::bad_alloc", "Aborted")
    assert [root.cause for root in explanation.root_causes] == ["host-oom"]


@each("number", [8, 48, 62, 79, 119])
def test_xids_of_the_hardware_are_the_hardwares(number: int) -> None:
    line = f"NVRM: Xid (PCI:0000:61:00): {number}, pid=4711, name=python3"
    root = said(line).root_causes[0]
    assert (root.cause, root.confidence) == ("ecc-xid-hardware-error", "certain")
    assert f"Xid {number}" in root.message


@each("number", [13, 31, 43, 45])
def test_xids_that_follow_a_program_do_not_accuse_the_hardware(number: int) -> None:
    line = f"NVRM: Xid (PCI:0000:61:00): {number}, pid=4711, name=python3"
    assert said(line).root_causes[0].confidence == "possible"
    failed = said(line, "RuntimeError: CUDA error: an illegal memory access was encountered")
    assert "ecc-xid-hardware-error" not in [root.cause for root in failed.root_causes]


def test_an_application_xid_caused_by_one_of_the_hardware_is_the_hardwares() -> None:
    line = "NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 1 caused by previous Xid 149"
    assert "Xid 149" in said(line).root_causes[0].message


@each(
    ("number", "meaning", "first_step"),
    [
        (48, "an uncorrectable memory error", "Reset the GPU"),
        (79, "the GPU has fallen off the bus", "Restart the machine"),
        (94, "a contained memory error", "Start the program again"),
        (54, "power cable", "check the power cables"),
        (63, "a memory row was replaced", "Nothing has to be done at once"),
        (31, "memory that it does not have", "Look for a fault of the program first"),
    ],
)
def test_the_first_remedy_for_an_xid_is_that_of_the_catalogue(
    number: int, meaning: str, first_step: str
) -> None:
    root = said(f"NVRM: Xid (PCI:0000:61:00): {number}, pid=4711, name=python3").root_causes[0]
    assert meaning in root.message
    assert first_step in root.remedies[0].text


def test_a_driver_that_is_merely_older_than_ptxas_is_no_fault() -> None:
    line = (
        "W asm_compiler.cc:85] The NVIDIA driver's CUDA version is 11.4 which is older than the "
        "ptxas CUDA version 11.8.89. Because the driver is older than the ptxas version, XLA is "
        "disabling parallel compilation"
    )
    assert said(line, PROGRESS).verdict == "nothing-wrong"


def test_a_program_that_starts_nvidia_smi_and_does_not_find_it() -> None:
    error = "FileNotFoundError: [Errno 2] No such file or directory: 'nvidia-smi': 'nvidia-smi'"
    assert first(error) == "no-nvidia-driver"


def test_err_in_the_cell_of_the_load_is_no_fault_of_the_hardware() -> None:
    table = (
        "| NVIDIA-SMI 352.00    Driver Version: 471.00    |\n"
        "|  0%   44C    P8    10W / 160W |   1845MiB /  6144MiB |    ERR!      Default |"
    )
    assert first(INSUFFICIENT, table) == "driver-too-old-for-cuda"


def test_err_for_fan_and_power_is_one() -> None:
    table = "| ERR!  ERR! ERR!    ERR! / ERR! |     32MiB / 11019MiB |    ERR!      Default |"
    assert first(table) == "ecc-xid-hardware-error"


def test_a_gpu_that_the_driver_no_longer_knows() -> None:
    lost = "E tensorflow/core/grappler/clusters/utils.cc:82] Failed to get device properties, error"
    assert first(f"{lost} code: 30") == "nvidia-kernel-module-state"
    assert said(f"{lost} code: 30", PROGRESS, PROGRESS).root_causes == ()


def test_a_toolkit_that_meets_an_updated_driver_on_the_host() -> None:
    line = (
        "docker: Error response from daemon: nvidia-container-cli: initialization error: cuda "
        "error: forward compatibility was attempted on non supported hw: unknown."
    )
    assert [root.cause for root in said(line).root_causes] == ["driver-library-version-mismatch"]


def test_a_hardware_fault_accounts_for_the_end() -> None:
    fault = "CUDA error: uncorrectable ECC error encountered (code #214)"
    assert first(fault, "ERROR: LoadError: Some tests did not pass") == "ecc-xid-hardware-error"


def test_marks_on_the_line_before_are_no_evidence() -> None:
    (first, *_) = explained("`\nNo devices were found\n").root_causes
    assert [evidence.line for evidence in first.evidence] == [2]


REPORT = """PyTorch version: 2.1.0+cu121
Python platform: Linux-5.15.90.1-{kernel}-x86_64-with-glibc2.31
Is CUDA available: {available}
CUDA runtime version: 12.1
GPU models and configuration: Could not collect
Nvidia driver version: {driver}
"""


@each(
    ("kernel", "available", "driver", "found"),
    [
        ("microsoft-standard-WSL2", "False", "Could not collect", True),
        ("generic", "False", "Could not collect", False),
        ("microsoft-standard-WSL2", "True", "Could not collect", False),
        ("microsoft-standard-WSL2", "False", "531.14", False),
    ],
)
def test_a_report_of_pytorch_shows_that_wsl_does_not_reach_the_driver(
    kernel: str, available: str, driver: str, found: bool
) -> None:
    log = REPORT.format(kernel=kernel, available=available, driver=driver)
    assert ("wsl-no-gpu" in [root.cause for root in explained(log).root_causes]) is found


def test_nvidia_smi_without_a_cuda_version_is_no_broken_gpu() -> None:
    row = "| NVIDIA-SMI 535.54.03    Driver Version: 535.54.03    CUDA Version: ERR!     |"
    assert not said(row).root_causes
    assert first(row, "", IN_WSL) == "wsl-no-gpu"


@each(
    ("lines", "expected"),
    [
        # The tool works on the host, and not in the container.
        ((SMI_TABLE, IN_CONTAINER, SMI_FAILED), "docker-no-gpu-runtime"),
        ((IN_CONTAINER, SMI_FAILED), "docker-no-gpu-runtime"),
        (("$ docker run IMAGE bash", "# nvidia-smi", SMI_FAILED), "docker-no-gpu-runtime"),
        # It fails on the host already.
        ((SMI_FAILED, "$ docker run --gpus all IMAGE"), "nvidia-kernel-module-state"),
        (
            (
                SMI_FAILED,
                "$ docker run --gpus all IMAGE",
                "nvidia-container-cli: initialization error: driver not loaded: unknown",
            ),
            "nvidia-kernel-module-state",
        ),
    ],
)
def test_where_nvidia_smi_fails_decides(lines: tuple[str, ...], expected: str) -> None:
    assert said(*lines).root_causes[0].cause == expected


def test_an_image_without_nvidia_smi_was_started_without_gpus() -> None:
    line = (
        "docker: Error response from daemon: failed to create task for container: exec: "
        '"nvidia-smi": executable file not found in $PATH: unknown.'
    )
    assert said(line).root_causes[0].cause == "docker-no-gpu-runtime"


GPUTIL = """Traceback (most recent call last):
  File "monitor.py", line 9, in <module>
    {}
IndexError: list index out of range"""


@each(
    ("lines", "expected"),
    [
        ((GPUTIL.format("gpu = GPUtil.getGPUs()[0]"),), "no-nvidia-driver"),
        ((GPUTIL.format("print(GPU.getGPUs()[0].name)"),), "no-nvidia-driver"),
        ((IN_CONTAINER, GPUTIL.format("g = GPUtil.getGPUs()[0]")), "docker-no-gpu-runtime"),
    ],
)
def test_gputil_lists_what_nvidia_smi_lists(lines: tuple[str, ...], expected: str) -> None:
    root = said(*lines).root_causes[0]
    assert (root.cause, root.confidence, root.severity) == (expected, "likely", "error")


def test_another_empty_list_is_not_gputils() -> None:
    assert not said(GPUTIL.format("first = names()[0]")).root_causes


LISTED = "tf.config.list_physical_devices('GPU')"
TOO_FEW = """Traceback (most recent call last):
  File "train.py", line 4, in <module>
    {}
{}"""


@each(
    ("statement", "exception"),
    [
        (f"gpu, = {LISTED}", "ValueError: not enough values to unpack (expected 1, got 0)"),
        (f"one, two = {LISTED}", "ValueError: not enough values to unpack (expected 2, got 0)"),
        (f"gpu = next(iter({LISTED}))", "StopIteration"),
        (f"gpu = random.choice({LISTED})", "IndexError: Cannot choose from an empty sequence"),
        (f"gpu = {LISTED}.pop()", "IndexError: pop from empty list"),
    ],
)
def test_every_way_to_use_an_empty_list_of_gpus_is_recognised(
    statement: str, exception: str
) -> None:
    assert said(TOO_FEW.format(statement, exception)).root_causes[0].cause == "gpu-index-unchecked"


def test_too_few_values_of_another_statement_are_no_missing_gpu() -> None:
    log = TOO_FEW.format(
        "x, = row[3:]", "ValueError: not enough values to unpack (expected 1, got 0)"
    )
    assert said(log).verdict == "not-gpu"


def test_a_library_that_tensorflow_misses_is_not_pytorchs() -> None:
    loader = (
        "2024-05-01 12:00:00.000000: W tensorflow/stream_executor/platform/default/"
        "dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: "
        "libcudart.so.11.0: cannot open "
        "shared object file: No such file or directory"
    )
    memory = (
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 7.79 GiB total "
        "capacity; 5.61 GiB already allocated; 1.2 GiB free; 5.70 GiB reserved in total by PyTorch)"
    )
    explanation = said(loader, memory)
    assert explanation.root_causes[0].cause == "oom-model-too-big"
    beside = [each for each in explanation.symptoms if each.cause == "cuda-runtime-missing"]
    assert [each.subject for each in beside] == ["tensorflow"]


def test_a_gpu_without_mig_may_be_the_one_that_is_meant() -> None:
    mig = "|  No MIG devices found                                     |\n"
    fails = "RuntimeError: No CUDA GPUs are available\n"
    alone = explained(f"{mig}{fails}").root_causes[0]
    assert (alone.code, alone.confidence) == ("WG120", "certain")
    beside = explained(
        f"|                      |             Disabled |\n{mig}{fails}"
    ).root_causes[0]
    assert (beside.code, beside.confidence) == ("WG120", "likely")
    assert "of such a GPU" in beside.message


SEARCHES = (
    'level=INFO source=gpu.go:191 msg="Searching for GPU management library {library}"\n'
    'level=INFO source=gpu.go:237 msg="Discovered GPU libraries: {found}"\n'
    'level=INFO source=routes.go:1042 msg="no GPU detected"'
)
SEARCHES_LATER = (
    'level=DEBUG source=gpu.go:501 msg="Searching for GPU library" name={library}*\n'
    'level=DEBUG source=gpu.go:525 msg="gpu library search" globs="[/usr/lib/x* /opt/y*]"\n'
    'level=DEBUG source=gpu.go:558 msg="discovered GPU libraries" paths={found}\n'
    'level=INFO source=gpu.go:377 msg="no compatible GPUs were discovered"'
)


@each("text", [SEARCHES, SEARCHES_LATER])
def test_a_server_that_searched_and_found_no_library_of_the_driver(text: str) -> None:
    def cause_of(library: str, found: str) -> list[str]:
        return [root.cause for root in said(text.format(library=library, found=found)).root_causes]

    assert cause_of("libcuda.so", "[]") == ["no-nvidia-driver"]
    assert cause_of("libcuda.so", "[/usr/lib/libcuda.so.1]") == []
    assert cause_of("librocm_smi64.so", "[]") == []


@each(
    ("value", "expected"),
    [
        ("1", "visible-devices-hides-gpu"),
        ("3,0", "visible-devices-hides-gpu"),
        ("0", "cpu-only-build"),
        ("0,1", "cpu-only-build"),
    ],
)
def test_a_number_that_may_not_exist_hides_the_gpu(value: str, expected: str) -> None:
    log = f"export CUDA_VISIBLE_DEVICES={value}\n>>> torch.cuda.is_available()\nFalse\n"
    assert said(log).root_causes[0].cause == expected


READY = (
    "2018-05-05 05:05:05.000001: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1053] Created "
    "TensorFlow device (/device:GPU:0 with 4000 MB memory) -> physical GPU (device: 0, name: "
    "NVIDIA Tegra X2, pci bus id: 0000:00:00.0, compute capability: 6.2)"
)
SECOND = (
    "E tensorflow/core/common_runtime/direct_session.cc:154] Internal: CUDA runtime implicit "
    "initialization on GPU:0 failed. Status: unknown error"
)


def test_a_second_session_that_fails_says_nothing_of_the_kernel_module() -> None:
    assert said(SECOND).root_causes[0].cause == "nvidia-kernel-module-state"
    assert said(READY, SECOND).verdict == "unknown"


def test_jax_asks_for_versions_before_it_starts_cuda() -> None:
    text = (
        "CUDA backend failed to initialize: jaxlib/cuda/versions_helpers.cc:90: operation "
        "gpuDeviceGetAttribute(&major) failed: CUDA_ERROR_NOT_INITIALIZED"
    )
    assert "cuda-fork-multiprocessing" not in [root.cause for root in said(text).root_causes]


def test_what_tensorflow_misses_says_nothing_of_a_program_that_uses_pytorch() -> None:
    explanation = said(
        f"I cudart_stub.cc:31] {NO_CUDART}",
        "import torch; torch.manual_seed(0)",
        PROGRESS,
        PROGRESS,
    )
    assert explanation.verdict == "nothing-wrong"
    assert not explanation.on_cpu
