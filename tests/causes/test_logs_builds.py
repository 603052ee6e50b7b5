"""Logs about builds that do not fit: the GPU's age, the processor, packages, pip."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import command_of, explained

NO_IMAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device"


def causes(log: str) -> list[str]:
    return [finding.cause for finding in explained(log).root_causes]


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        ("GPU 0: NVIDIA GeForce RTX 5080", "compute-capability-too-new"),
        ("running on a GeForce RTX 3090", "compute-capability-too-new"),
        ("running on a Tesla K80", "compute-capability-too-old"),
        ("NVIDIA GeForce GT 730", "compute-capability-too-old"),
    ],
)
def test_the_generation_of_the_gpu_tells_which_side_has_no_code(gpu: str, expected: str) -> None:
    assert causes(f"{gpu}\n{NO_IMAGE}")[0] == expected


def test_without_a_name_both_sides_are_said_with_the_question() -> None:
    found = explained(NO_IMAGE).root_causes
    assert {finding.cause for finding in found} >= {
        "compute-capability-too-new",
        "compute-capability-too-old",
    }
    assert all("nvidia-smi" in (finding.ask or "") for finding in found)


NO_FUNCTION = "RuntimeError: CUDA error: invalid device function"
OLD, NEW = "compute-capability-too-old", "compute-capability-too-new"


@each(
    ("build", "likely"),
    [
        ("", []),
        ('  File "/opt/lib/python3.12/site-packages/torch/x.py", line 1, in f', []),
        # No build for these has code for the newest GPUs.
        ('  File "/opt/lib/python3.8/site-packages/torch/x.py", line 1, in f', [NEW]),
        ("torch==2.4.1+cu121", [NEW]),
        ("pytorch version: 2.4.1+cu124", [NEW]),
        # This one has it, and dropped the oldest.
        ("pytorch version: 2.8.0+cu128", [OLD]),
        ("THCudaCheck FAIL file=/pytorch/aten/THCReduceAll.cuh line=317", [OLD]),
    ],
)
def test_only_the_build_says_whether_an_unnamed_gpu_is_too_new(
    build: str, likely: list[str]
) -> None:
    for error in (NO_IMAGE, NO_FUNCTION):
        found = explained(f"{build}\nimport torch\n{error}\n").root_causes
        assert {finding.cause for finding in found} == {OLD, NEW}
        assert [finding.cause for finding in found if finding.confidence == "likely"] == likely
        assert all(finding.ask for finding in found)


def device(name: str, capability: str, event: str = "Created TensorFlow device") -> str:
    return (
        "2020-11-01 10:00:00.2: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1402] "
        f"{event} (/job:localhost/replica:0/task:0/device:GPU:0 with 8000 MB memory) -> physical "
        f"GPU (device: 0, name: {name}, pci bus id: 0000:01:00.0, compute capability: {capability})"
    )


def opened(library: str) -> str:
    return (
        "2020-11-01 10:00:00.1: I tensorflow/stream_executor/platform/default/dso_loader.cc:48] "
        f"Successfully opened dynamic library {library}"
    )


FAILED_GEMM = (
    "2020-11-01 10:09:00.1: E tensorflow/stream_executor/cuda/cuda_blas.cc:428] failed to run "
    "cuBLAS routine: CUBLAS_STATUS_EXECUTION_FAILED"
)


@pytest.mark.parametrize(
    ("library", "name", "capability", "too_new"),
    [
        ("libcudart.so.10.1", "GeForce RTX 3080", "8.6", True),
        ("libcudart.so.9.0", "GeForce RTX 2080", "7.5", True),
        ("libcudart.so.10.0", "GeForce RTX 2080", "7.5", False),
        ("libcudart.so.11.0", "GeForce RTX 3080", "8.6", False),
    ],
)
def test_the_cuda_of_the_build_decides_whether_the_gpu_is_too_new(
    library: str, name: str, capability: str, too_new: bool
) -> None:
    found = causes("\n".join([opened(library), device(name, capability), FAILED_GEMM]))
    assert ("compute-capability-too-new" in found[:1]) is too_new


def test_a_kernel_that_ran_and_died_had_code() -> None:
    log = "\n".join(
        [
            device("GeForce RTX 3080", "8.6"),
            FAILED_GEMM,
            "failed to synchronize the stop event: CUDA_ERROR_LAUNCH_FAILED",
        ]
    )
    assert "compute-capability-too-new" not in causes(log)


def test_pytorchs_own_list_decides() -> None:
    said = (
        "{} with CUDA capability sm_{} is not compatible with the current PyTorch installation.\n"
        "The current PyTorch install supports CUDA capabilities sm_70 sm_75 sm_80 sm_86 sm_90.\n"
    )
    assert causes(said.format("NVIDIA B200", "100"))[0] == "compute-capability-too-new"
    assert causes(said.format("Tesla P40", "61"))[0] == "compute-capability-too-old"


@pytest.mark.parametrize(
    ("message", "inside", "expected"),
    [
        ("module 'numpy' has no attribute 'bool'.", "/site-packages/tensorflow/dtypes.py", True),
        ("module 'numpy' has no attribute 'bool'.", "/home/me/train.py", False),
    ],
)
def test_a_dropped_name_is_numpys_fault_only_inside_a_framework(
    message: str, inside: str, expected: bool
) -> None:
    log = (
        "Traceback (most recent call last):\n"
        f'  File "/opt/lib/python3.9{inside}", line 5, in <module>\n    np.bool\n'
        f"AttributeError: {message}"
    )
    assert ("numpy-abi" in causes(log)) is expected


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("ImportError: /lib/libm.so.6: version `GLIBC_2.38' not found (required by /x/y.so)",
         "glibc-too-old"),
        ("RuntimeError: Numpy is not available", "numpy-abi"),
    ],
)  # fmt: skip
def test_a_warning_about_numpy_does_not_explain_another_failure(end: str, expected: str) -> None:
    warning = "x.py:7: UserWarning: Failed to initialize NumPy: _ARRAY_API not found"
    assert causes(f"{warning}\n{end}")[0] == expected


def test_jax_says_of_a_plugin_that_cannot_start_that_it_is_not_installed() -> None:
    word = (
        "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. "
        "Falling back to cpu."
    )
    hidden = (
        "RuntimeError: jaxlib/cuda/versions_helpers.cc:135: operation cuInit(0) failed: "
        "CUDA_ERROR_NO_DEVICE\n"
    )
    assert causes(word) == ["cpu-only-build"]
    assert "cpu-only-build" not in causes(hidden + word)


def test_an_extra_that_does_not_exist_is_why_the_build_has_no_gpu() -> None:
    (finding, *_) = explained(
        "WARNING: jax 0.6.2 does not provide the extra 'cuda12-pip'\n"
        "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed."
    ).root_causes
    assert finding.cause == "cpu-only-build"
    assert "cuda12-pip" in finding.message


def test_other_backends_of_jax_are_not_a_mismatch() -> None:
    log = (
        "INFO:absl:Unable to initialize backend 'tpu_driver': NOT_FOUND\n"
        "Unable to initialize backend 'tpu': module 'jaxlib.xla_extension' has no attribute "
        "'get_tpu_client'\nstep 10 loss 0.5\n"
    )
    assert "jax-plugin-mismatch" not in causes(log)


@each(
    "line",
    [
        "Could not find a version that satisfies the requirement tensorflow (from versions: none)",
        "ERROR: tensorflow-2.0-cp37-none-win_amd64.whl is not a supported wheel on this platform.",
        "ERROR: Package 'jax' requires a different Python: 3.8.10 not in '>=3.9'",
        "Because torch==2.1.0 has no wheels with a matching Python version tag (e.g., `cp313`)",
        "PackagesNotFoundError: The following packages are not available from current channels:\n"
        "  - cudatoolkit=9.0\n",
        'The "tensorflow-gpu" package has been removed!',
    ],
)
def test_pip_conda_and_uv_find_no_build(line: str) -> None:
    assert causes(line) == ["wheel-not-available"]


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: No matching distribution found for pywin32==300",
        "ERROR: mylib-1.0-cp37-cp37m-win_amd64.whl is not a supported wheel on this platform.",
        "PackagesNotFoundError: The following packages are not available from current channels:\n"
        "  - pygame\n",
    ],
)
def test_other_packages_are_not_ours(line: str) -> None:
    assert "wheel-not-available" not in causes(line)


@each(
    "why",
    [
        "Не найден указанный модуль.",
        "找不到指定的模块。",
        "Das angegebene Modul wurde nicht gefunden.",
        "No se puede encontrar el módulo especificado.",
    ],
)
def test_windows_speaks_the_language_of_the_system(why: str) -> None:
    log = (
        'Traceback (most recent call last):\n  File "C:\\env\\lib\\site-packages\\tensorflow'
        '\\python\\pywrap_tensorflow.py", line 58, in <module>\n'
        f"ImportError: DLL load failed: {why}\n"
    )
    assert causes(log)[0] == "windows-dll-load-failed"


def test_initialisation_that_fails_puts_the_processor_first() -> None:
    (finding, *_) = explained(
        "ImportError: DLL load failed while importing _pywrap_tensorflow_internal: A dynamic link "
        "library (DLL) initialization routine failed."
    ).root_causes
    assert finding.cause == "windows-dll-load-failed"
    assert "AVX" in finding.remedies[0].text


def test_a_signal_after_hours_of_work_says_less_than_one_at_the_start() -> None:
    at_start = explained("Illegal instruction (core dumped)").root_causes[0]
    assert (at_start.cause, at_start.confidence) == ("avx-missing-sigill", "likely")
    later = explained("Epoch 1/9\nloss: 0.5\nEpoch 2/9\nIllegal instruction (core dumped)")
    assert [f.confidence for f in later.root_causes if f.cause == "avx-missing-sigill"] == [
        "possible"
    ]


def test_windows_and_a_version_are_enough_where_no_gpu_is_listed() -> None:
    report = "OS: Windows 11\nTensorFlow version\n{}\nNum GPUs Available: 0\n"
    assert causes(report.format("2.17.0")) == ["windows-native-unsupported"]
    assert "windows-native-unsupported" not in causes(report.format("2.10.0"))


def test_kernels_from_ptx_are_slow_when_it_works_and_a_fault_when_it_fails() -> None:
    word = (
        "TensorFlow was not built with CUDA kernel binaries compatible with compute capability "
        "12.0. CUDA kernels will be jit-compiled from PTX, which could take 30 minutes or longer.\n"
    )
    assert causes(word + "Epoch 1/2\nloss: 0.4\n") == ["kernels-compiled-from-ptx"]
    failed = "InternalError: cuLaunchKernel failed with 'CUDA_ERROR_INVALID_HANDLE'\n"
    assert causes(word + failed)[0] == "compute-capability-too-new"


def test_what_generated_code_raises_is_between_it_and_protobuf() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/opt/site-packages/tensorflow/core/framework/tensor_pb2.py", line 5, '
        "in <module>\n    syntax='proto3')\n"
        "TypeError: __init__() got an unexpected keyword argument 'syntax'"
    )
    assert causes(log) == ["protobuf-conflict"]
    own = log.replace("tensor_pb2.py", "tensor.py").replace("tensorflow/core/framework", "mine")
    assert "protobuf-conflict" not in causes(own)


@each(
    "log",
    [
        "AssertionError: CUDA unavailable, invalid device 0 requested",
        "CUDA used to build PyTorch: Could not collect\nIs CUDA available: False",
        "ValueError: This ORT build has ['AzureExecutionProvider', 'CPUExecutionProvider'] enabled",
        "MXNetError: src/storage/storage.cc:43: Please compile with CUDA enabled",
    ],
)
def test_programs_say_in_their_own_words_that_the_build_has_no_cuda(log: str) -> None:
    assert causes(log)[0] == "cpu-only-build"


def test_bitsandbytes_without_gpu_code_looked_for_cuda_in_vain() -> None:
    log = (
        "UserWarning: The installed version of bitsandbytes was compiled without GPU support.\n"
        "CUDA_SETUP: WARNING! libcudart.so not found in any environmental path.\n"
        "RuntimeError: CUDA Setup failed despite GPU being available.\n"
    )
    assert causes(log)[0] == "cuda-runtime-missing"
    assert "cpu-only-build" not in causes(log)


@each(
    ("text", "expected"),
    [
        (
            "LibMambaUnsatisfiableError: Encountered problems while solving:\n"
            "  - package pytorch-2.1.0-py3.11_cuda12.1_0 requires python >=3.11,<3.12, but none "
            "of the providers can be installed",
            ["wheel-not-available"],
        ),
        (
            "LibMambaUnsatisfiableError: Encountered problems while solving:\n"
            "  - package r-ggplot2-3.3.0-r36 requires r-base >=3.6, but none of the providers can "
            "be installed",
            [],
        ),
        (
            "Because there is no version of torch==2.1.0+cu121 and you require torch==2.1.0+cu121, "
            "we can conclude that your requirements are unsatisfiable.",
            ["wheel-not-available"],
        ),
        (
            "ERROR: HTTP error 404 while getting https://example.org/gpu/"
            "tensorflow_gpu-1.4.0-cp37-cp37m-linux_x86_64.whl",
            ["wheel-not-available"],
        ),
    ],
)
def test_every_installer_has_its_own_words_for_no_build(text: str, expected: list[str]) -> None:
    assert causes(text) == expected


def test_llama_cpp_that_failed_to_start_cuda_is_no_build_without_it() -> None:
    refused = "warning: no usable GPU found, --gpu-layers option will be ignored"
    failed = "ggml_cuda_init: failed to initialize CUDA: system not yet initialized"
    assert causes(refused)[0] == "cpu-only-build"
    assert "cpu-only-build" not in causes(f"{failed}\n{refused}")


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [("Pascal", "compute-capability-too-old"), ("Hopper", "compute-capability-too-new")],
)
def test_paddle_names_the_generation(architecture: str, expected: str) -> None:
    told = (
        f"W0824 17:41:21.1 13550 gpu_resources.cc:96] The GPU architecture in your current machine "
        f"is {architecture}, which is not compatible with Paddle installation with arch: 70 75 80"
    )
    assert causes(told)[0] == expected


def test_an_illegal_instruction_on_the_gpu_is_not_the_processors() -> None:
    assert "avx-missing-sigill" not in causes(
        "RuntimeError: CUDA error: an illegal instruction was encountered"
    )
    assert causes("zsh: illegal hardware instruction  python train.py") == ["avx-missing-sigill"]


@each(
    "line",
    [
        "ptxas fatal   : Unsupported .target 'sm_120'",
        "ptxas a.ptx, line 7; error: Feature '.scale_vec::2X'\nnot supported on .target 'sm_120'",
        "THCudaCheck FAIL file=aten/src/THC/THCGeneral.cpp line=405 error=11 : invalid argument",
        "RuntimeError: radix_sort: failed on 1st step: cudaErrorInvalidDevice: invalid device",
    ],
)
def test_how_compilers_and_libraries_speak_of_a_gpu_that_they_do_not_know(line: str) -> None:
    assert causes(line)[0] == "compute-capability-too-new"


def test_the_compiler_of_the_driver_is_as_old_as_the_driver() -> None:
    line = (
        "ptxas application ptx input, line 9; fatal   : Unsupported .version 7.8; current version "
        "is '7.4'"
    )
    assert causes(line)[0] == "driver-too-old-for-cuda"


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: CUDA is not available",
        ">>> torch.cuda.is_available()\nFalse",
        "RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'",
    ],
)
def test_pytorch_without_a_gpu_and_without_a_reason(line: str) -> None:
    (root,) = explained(line).root_causes
    assert (root.cause, root.confidence) == ("cpu-only-build", "possible")
    assert root.ask


def test_that_cuda_is_not_available_is_no_answer_where_the_program_fails_of_something_else() -> (
    None
):
    log = "UserWarning: CUDA is not available, using the CPU\nKeyError: 'train_dir'"
    assert explained(log).verdict == "not-gpu"


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [("compute_21", "compute-capability-too-old"), ("compute_75", "compute-capability-too-new")],
)
def test_what_nvrtc_refuses_is_told_by_its_options(architecture: str, expected: str) -> None:
    log = (
        "NVRTC compilation error: nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
        f"\n-----\nName: \nOptions: -I/opt/cupy/include -ftz=true -arch={architecture}\n"
        "NVRTCError: NVRTC_ERROR_INVALID_OPTION (5)\n"
    )
    assert causes(log)[0] == expected


@pytest.mark.parametrize(
    "words", ["illegal instruction core dumped", "illegal instruction (core dumped)"]
)
def test_a_shells_message_that_somebody_retyped(words: str) -> None:
    explanation = explained(f"tensorflow 1.5 works here, with 1.12 I get\n{words}\n")
    assert [finding.cause for finding in explanation.root_causes] == ["avx-missing-sigill"]


NOT_READY = (
    "/opt/torch/cuda/__init__.py:80: UserWarning: CUDA initialization: Unexpected error from "
    "cudaGetDeviceCount(). Error 802: system not yet initialized (Triggered internally at "
    "../c10/cuda/CUDAFunctions.cpp:112.)\n"
)


@each(
    "end",
    [
        "AssertionError: Torch not compiled with CUDA enabled",
        "RuntimeError: Attempting to deserialize object on a CUDA device but "
        "torch.cuda.is_available() is False.",
        "RuntimeError: CUDA is not available",
    ],
)
def test_a_pytorch_that_cuda_refused_is_no_cpu_build(end: str) -> None:
    assert [root.cause for root in explained(NOT_READY + end).root_causes] == [
        "nvidia-kernel-module-state"
    ]


@each(
    ("backend", "cause"),
    [("rocm", "platform-variable-excludes-gpu"), ("cuda", "cpu-only-build")],
)
def test_jax_was_told_to_use_what_it_does_not_have(backend: str, cause: str) -> None:
    (finding,) = explained(
        f"RuntimeError: Unable to initialize backend '{backend}': Backend '{backend}' is not in "
        "the list of known backends: ['cpu', 'tpu']. (set JAX_PLATFORMS='' to automatically choose "
        "an available backend)"
    ).root_causes
    assert (finding.cause, finding.subject) == (cause, "jax")


def test_jax_probes_back_ends_that_are_not_there() -> None:
    log = (
        "INFO:2024-01-01 10:00:00,123:jax._src.xla_bridge:889: Unable to initialize backend "
        "'rocm': Backend 'rocm' is not in the list of known backends: ['cpu', 'cuda', 'tpu'].\n"
    )
    assert explained(log).verdict == "nothing-wrong"


def test_a_plugin_of_jax_that_finds_no_cuda_is_there() -> None:
    roots = explained(
        "WARNING:jax._src.xla_bridge:794: An NVIDIA GPU may be present on this machine, but a "
        "CUDA-enabled jaxlib is not installed. Falling back to cpu.\n"
        "RuntimeError: Unable to load CUDA. Is it installed?\n"
    ).root_causes
    assert [root.cause for root in roots] == ["cuda-runtime-missing"]
    assert "'jax[cuda1" in str(command_of(roots[0].remedies[0]))


WANTED = "ERROR: Could not find a version that satisfies the requirement torch==1.4.0+cu92 "


@each(
    ("log", "own_index"),
    [
        (f"{WANTED}(from versions: 1.7.0, 1.7.1)", True),
        (f"{WANTED}(from versions: 1.7.0, 1.7.0+cu101, 1.7.1)", False),
        (
            "Looking in links: https://download.pytorch.org/whl/torch_stable.html\n"
            f"{WANTED}(from versions: 1.7.0)",
            False,
        ),
    ],
)
def test_an_index_with_cuda_builds_is_not_told_to_lack_them(log: str, own_index: bool) -> None:
    (finding,) = explained(log).root_causes
    assert finding.cause == "wheel-not-available"
    assert ("on a separate index" in finding.message) == own_index


NO_CUPY = "Cannot use GPU, CuPy is not installed"
NOT_ACCESSIBLE = "GPU is not accessible. Was the library installed correctly?"


@each(
    ("log", "confidence", "effect"),
    [
        (f"ValueError: {NO_CUPY}", "certain", "broken"),
        (f"{NO_CUPY}\nEpoch 1 loss: 0.3\n", "certain", "cpu"),
        (f"ValueError: {NOT_ACCESSIBLE}", "likely", "broken"),
        (f"ValueError: {NOT_ACCESSIBLE}\nValueError: {NO_CUPY}", "certain", "broken"),
    ],
)
def test_spacy_without_cupy(log: str, confidence: str, effect: str) -> None:
    (root,) = explained(log).root_causes
    assert (root.code, root.cause) == ("WG323", "cpu-only-build")
    assert (root.confidence, root.effect) == (confidence, effect)
    assert ("or sees no GPU" in root.message) is (confidence == "likely")
    assert "cupy-cuda12x[ctk]" in root.remedies[0].text
    assert command_of(root.remedies[0]) == "whygpu plan cupy"


@each("error", [NO_CUPY, NOT_ACCESSIBLE])
def test_a_cupy_that_reports_an_error_of_cuda_is_installed(error: str) -> None:
    status = "cudaErrorNoDevice: no CUDA-capable device is detected"
    assert "WG323" not in [
        root.code for root in explained(f"ValueError: {error}\n{status}").root_causes
    ]


@each(
    ("text", "confidence"),
    [
        (
            "$ python -c 'print(torch.cuda.is_available(), torch.version.cuda)'\nFalse None",
            "certain",
        ),
        (">>> torch.version.cuda, torch.cuda.is_available()\n(None, False)", "certain"),
        (">>> tf.test.is_built_with_cuda()\nFalse", "certain"),
        ("2.3.1 None False 0", "likely"),
        ("False None", "possible"),
    ],
)
def test_the_values_that_people_are_asked_for_show_a_build_without_cuda(
    text: str, confidence: str
) -> None:
    first = explained(text).root_causes[0]
    assert (first.cause, first.confidence) == ("cpu-only-build", confidence)


@each(
    "text",
    [
        # PyTorch for AMD has no CUDA, and a GPU.
        "print(torch.version.cuda, torch.version.hip, torch.cuda.is_available())\nNone 6.1 False",
        "print(torch.version.cuda, torch.cuda.is_available())\nNone True",
        ">>> torch.version.cuda, torch.version.hip\n(None, '6.1.40091-a8dbc0c19')",
        # A Mac has no CUDA; its GPU is there.
        "print(torch.version.cuda, torch.backends.mps.is_available())\nNone True",
        "MacBook-Pro:~ me$ python3 -c 'import torch; print(torch.version.cuda)'\nNone",
        ">>> torch.__version__, torch.version.cuda\n('2.5.0+xpu', None)",
        ">>> print(torch.version.hip)\n6.1.40091\n>>> torch.cuda.is_available()\nFalse",
        # The build has CUDA; something else is wrong.
        "print(torch.cuda.is_available(), torch.version.cuda)\nFalse 12.1",
        ">>> torch.version.cuda\n'12.1'\n>>> torch.cuda.is_available()\nFalse",
    ],
)
def test_other_values_are_no_build_without_cuda(text: str) -> None:
    assert "cpu-only-build" not in causes(text)


def test_a_build_with_cuda_is_no_candidate_for_one_without() -> None:
    guidance = explained("2.2.0+cu118 11.8 False 0").guidance
    assert guidance is not None
    assert "a build without GPU support" not in guidance.candidates


def test_a_tensorflow_for_amd_that_lists_its_gpu_is_no_build_for_the_cpu() -> None:
    asked = ">>> tf.test.is_built_with_cuda()\nFalse\n>>> tf.config.list_physical_devices('GPU')\n"
    gpu = "[PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]"
    assert explained(f"{asked}{gpu}").verdict == "nothing-wrong"
    assert explained(f"{asked}[]").root_causes[0].cause == "cpu-only-build"


def test_a_build_is_that_of_the_framework_that_the_line_is_about() -> None:
    torch = ">>> torch.__version__\n'2.1.0+cpu'\n>>> torch.cuda.is_available()\nFalse\n"
    others = ">>> import tensorflow as tf\nW tensorflow/core/a.cc:1] tensorflow speaks\n"
    first = explained(torch + others).root_causes[0]
    assert (first.cause, first.subject) == ("cpu-only-build", "torch")
    assert first.message.startswith("PyTorch 2.1.0 is a build")


def test_a_listed_build_answers_why_the_gpu_is_not_used() -> None:
    rows = "torch            2.4.1+cpu\ntorchvision      0.19.1+cpu\n"
    assert causes(rows + "why is my GPU not used?") == ["cpu-only-build"]
    assert causes(rows.replace("cpu", "cu121") + "why is my GPU not used?") == []


@each(
    "words",
    [
        "tensorflow not detecting gpu windows 10, tf version 2.16.1, python 3.11",
        "tensorflow 2.15 on Windows 11, but list_physical_devices('GPU') gives []. Why?",
        "PS C:\\> python\n>>> tf.__version__\n'2.13.0'\n"
        ">>> tf.config.list_physical_devices('GPU')\n[]",
        "tensorflow-intel     2.13.0\n>>> tf.config.list_physical_devices('GPU')\n[]",
    ],
)
def test_people_describe_tensorflow_on_windows_in_their_own_words(words: str) -> None:
    assert causes(words) == ["windows-native-unsupported"]


@each(
    "words",
    [
        "tensorflow 2.10 on Windows 11, list_physical_devices('GPU') gives []. Why?",
        "tensorflow 2.15 in docker on windows 11 does not detect my GPU",
        "tensorflow 2.15 on Windows 11, does it support my GPU?",
    ],
)
def test_other_questions_about_windows_are_not_answered_so(words: str) -> None:
    assert "windows-native-unsupported" not in causes(words)


def test_jax_has_no_gpu_build_for_windows() -> None:
    message = "An NVIDIA GPU may be present, but a CUDA-enabled jaxlib is not installed."
    on_windows, on_linux = (
        explained(f"{folder}\n{message}").root_causes[0].remedies[0]
        for folder in ("C:\\Users\\bob> python a.py", "/home/bob/a.py")
    )
    assert command_of(on_windows) == "wsl --install"
    assert "jax[cuda" in (command_of(on_linux) or "")


def test_a_ptxas_that_does_not_know_the_gpu_was_found() -> None:
    log = "jaxlib.xla_extension.XlaRuntimeError: UNIMPLEMENTED: ptxas does not support CC 12.0"
    message = explained(log).root_causes[0].message
    assert "too old" in message
    assert "does not find" not in message


def test_cublas_that_does_not_start_on_a_newer_gpu_is_about_the_gpu() -> None:
    log = (
        "I tensorflow/a/dso_loader.cc:48] Successfully opened dynamic library libcudart.so.10.1\n"
        "pciBusID: 0000:01:00.0 name: GeForce RTX 3080 computeCapability: {}\n"
        "E tensorflow/a/cuda_blas.cc:225] failed to create cublas handle: "
        "CUBLAS_STATUS_NOT_INITIALIZED\n"
    )
    assert causes(log.format("8.6"))[0] == "compute-capability-too-new"
    older = log.replace("RTX 3080", "GTX 1080").format("6.1")
    assert "compute-capability-too-new" not in causes(older)


def test_what_would_happen_on_a_gpu_is_no_report_of_one() -> None:
    log = "Layer lstm will not use cuDNN kernels. It uses a generic kernel when running on GPU."
    assert explained(log).headline.startswith("nothing in this log shows a fault;")


_NONE = "\n>>> tf.config.list_physical_devices('GPU')\n[]"


@each(
    "row",
    [
        "tensorflow                2.12.0          mkl_py310hb5f3f7e_0",
        "tensorflow-base           2.10.0          eigen_py39h9c43d8e_0",
        "tensorflow-cpu               2.15.0",
    ],
)
def test_a_listed_package_of_tensorflow_for_the_cpu_is_why_there_is_no_gpu(row: str) -> None:
    first = explained(row + _NONE).root_causes[0]
    assert (first.cause, first.subject) == ("cpu-only-build", "tensorflow")
    removed = "uninstall -y tensorflow-cpu" in (command_of(first.remedies[0]) or "")
    assert removed == row.startswith("tensorflow-cpu")
    # It may have been chosen on purpose.
    assert explained(f"{row}\nEpoch 1 loss: 0.3").root_causes == ()


@each(
    "rows",
    [
        "tensorflow                2.12.0          gpu_py310hb5f3f7e_0",
        "tensorflow                   2.15.0\ntensorflow-cpu               2.15.0",
    ],
)
def test_a_listed_package_with_gpu_code_is_no_reason(rows: str) -> None:
    assert "cpu-only-build" not in causes(rows + _NONE)


INVALID_IMAGE = (
    "InternalError: CUDA runtime implicit initialization on GPU:0 failed. Status: device kernel "
    "image is invalid"
)


@each(
    ("gpu", "expected"),
    [
        ("name: GeForce GTX 950M, pci bus id: 0000:01:00.0, compute capability: 5.0", [OLD]),
        ("name: GeForce RTX 3080, pci bus id: 0000:01:00.0, compute capability: 8.6", [NEW]),
        ("", [NEW, OLD]),
    ],
)
def test_an_invalid_image_is_judged_by_the_gpu(gpu: str, expected: list[str]) -> None:
    created = (
        f"I gpu_device.cc:1402] Created TensorFlow device (/device:GPU:0) -> (device: 0, {gpu})"
    )
    assert causes(f"{created if gpu else ''}\n{INVALID_IMAGE}") == expected


@each(
    ("text", "root"),
    [
        (
            "为什么 torch.cuda.is_available() 返回 False？ "
            "我的版本是 torch 2.0.1+cpu，显卡是 RTX 3060。",
            "cpu-only-build",
        ),
        ("torch.version.cuda is None and torch.__version__ is 2.6.0.", "cpu-only-build"),
        (
            "still torch.cuda.is_available() is False\npytorch   2.3.0   cpu_py311h9b3e8e8_0",
            "cpu-only-build",
        ),
        (
            "still torch.cuda.is_available() is False\npytorch   2.3.0   cpu_mkl_py311h9b3e8e8_0",
            "cpu-only-build",
        ),
        (
            "| NVIDIA-SMI 450.80.02    Driver Version: 450.80.02    CUDA Version: 11.0     |\n"
            "but torch 2.3.1+cu121 says False for cuda",
            "driver-too-old-for-cuda",
        ),
        (
            "torch.__version__ is 2.3.1+cu121, my driver is 450.80.02 and is_available() is False",
            "driver-too-old-for-cuda",
        ),
        (
            "tf.config.list_physical_devices('GPU') が [] を返します。"
            "tensorflow 2.16.1, Windows 11です。",
            "windows-native-unsupported",
        ),
    ],
)
def test_values_in_sentences_decide_as_printed_ones_do(text: str, root: str) -> None:
    assert [found.cause for found in explained(text).root_causes] == [root]


def test_the_name_of_a_gpu_is_no_part_of_the_sentence_before_it() -> None:
    message = (
        "Just got a 5090. NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible "
        "with the current PyTorch installation."
    )
    assert "no code for NVIDIA GeForce RTX 5090" in explained(message).headline


def test_an_extension_that_was_compiled_for_newer_gpus() -> None:
    log = "OSError: Could not find compatible tinycudann extension for compute capability 61."
    (root,) = explained(log).root_causes
    assert root.cause == OLD
    assert "TCNN_CUDA_ARCHITECTURES" in (command_of(root.remedies[0]) or "")


def test_a_build_that_pip_starts_needs_pytorch_with_cuda() -> None:
    pip = "error: subprocess-exited-with-error\n  exit code: 1\n"
    reason = (
        "      OSError: Unknown compute capability. Specify the target compute capabilities in the "
        "TCNN_CUDA_ARCHITECTURES environment variable or install PyTorch with the CUDA backend to "
        "detect it automatically."
    )
    assert causes(pip + reason) == ["cpu-only-build"]
    assert explained(pip).verdict == "unknown"
    other = "      ModuleNotFoundError: No module named 'setuptools'"
    assert explained(pip + other).verdict == "not-gpu"


OPERATOR = (
    "`{name}` is not supported because:\n"
    "    xFormers wasn't build with CUDA support\n"
    "    requires device with capability > (8, 0) but your GPU has capability (7, 5) (too old)\n"
)


def test_an_extension_without_gpu_code_comes_before_what_one_of_its_operators_needs() -> None:
    head = "NotImplementedError: No operator found for `memory_efficient_attention_forward`:\n"
    assert causes(head + OPERATOR.format(name="flshattF"))[0] == "cpu-only-build"
    with_cuda = OPERATOR.replace("    xFormers wasn't build with CUDA support\n", "")
    assert causes(head + with_cuda.format(name="flshattF"))[0] == OLD


def test_versions_below_a_message_are_no_requirement() -> None:
    log = (
        "TypeError: __init__() got an unexpected keyword argument 'gpus'\n"
        "PyTorch version: 2.0.1+cu118\n"
        "CUDA used to build PyTorch: 11.8"
    )
    assert explained(log).verdict == "not-gpu"
    stated = "RuntimeError: this CUDA extension expected CUDA 12.1 and found 11.8"
    assert causes(stated) == ["cuda-version-mismatch"]


def test_condas_selection_of_the_build_for_the_cpu() -> None:
    log = (
        "pytorch_lightning.utilities.exceptions.MisconfigurationException:\n"
        "You requested GPUs: [0]\n"
        "But your machine only has: []\n"
        "_pytorch_select           0.1                       cpu_0  \n"
    )
    assert causes(log)[0] == "cpu-only-build"


def test_a_lone_line_about_an_operator_is_not_certain() -> None:
    line = "requires device with capability > (8, 0) but your GPU has capability (7, 5) (too old)"
    (root,) = explained(line).root_causes
    assert (root.cause, root.confidence) == (OLD, "likely")
    head = "NotImplementedError: No operator found for `memory_efficient_attention_forward`"
    assert explained(head).verdict == "unknown"


def test_the_version_of_other_software_is_no_requirement_either() -> None:
    log = "RuntimeError: CUDA > 11 is supported by a@0.0.0\npython 3.9 of conda"
    assert "cuda-version-mismatch" not in causes(log)


@each("told", ["GPU is A100, cuda=10.0", "显卡是A100，cuda=10.0", "GPUはRTX 3090です"])
def test_a_gpu_is_recognised_without_a_blank_before_its_name(told: str) -> None:
    text = f"Blas GEMM launch failed : m=2, n=100\ntensorflow-gpu=1.13.1, {told}\n"
    assert causes(text)[0] == "compute-capability-too-new"


@each("needed", ["sm75 or higher", "sm_80", "compute capability at least 8.0"])
def test_a_library_that_needs_a_newer_gpu(needed: str) -> None:
    assert causes(f"RuntimeError: FastKernels requires GPUs with {needed}\n") == [
        "compute-capability-too-old"
    ]


@each(("release", "asks"), [("2.15.0", False), ("2.11.0", False), ("2.10.1", True), ("", True)])
def test_a_release_without_cuda_on_windows_needs_no_cuda(release: str, asks: bool) -> None:
    (root,) = explained(
        "ImportError: DLL load failed while importing _pywrap_tensorflow_internal: The specified "
        f"module could not be found.\nC:\\env\\tensorflow {release and f'tensorflow=={release}'}\n"
    ).root_causes
    assert root.cause == "windows-dll-load-failed"
    assert any("CUDA" in remedy.text for remedy in root.remedies) is asks
