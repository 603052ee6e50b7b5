"""Logs about CUDA libraries: missing, of another release, mixed, and what else the log shows."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import command_of, explained

DSO = (
    "2021-03-02 10:11:12.100200: {} tensorflow/stream_executor/platform/default/dso_loader.cc:60] "
)
MISSES = (
    DSO.format("W")
    + "Could not load dynamic library '{0}'; dlerror: {0}: cannot open shared object file: "
    "No such file or directory"
)
OPENS = DSO.format("I") + "Successfully opened dynamic library {}"
SKIPS = (
    "2021-03-02 10:11:13.500200: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1757] Cannot "
    "dlopen some GPU libraries. Please make sure the missing libraries mentioned above are "
    "installed properly if you would like to use GPU.\nSkipping registering GPU devices..."
)


def misses(*libraries: str, path: str = "") -> str:
    suffix = f"; LD_LIBRARY_PATH: {path}" if path else ""
    return "\n".join(MISSES.format(library) + suffix for library in libraries)


def opens(*libraries: str) -> str:
    return "\n".join(OPENS.format(library) for library in libraries)


def causes(log: str) -> list[str]:
    return [finding.cause for finding in explained(log).root_causes]


def test_nothing_of_cuda_opens_so_it_is_missing_and_the_other_reading_is_named() -> None:
    log = "\n".join([opens("libcuda.so.1"), misses("libcudart.so.11.0", "libcublas.so.11"), SKIPS])
    first, second = explained(log).root_causes[:2]
    assert first.cause == "cuda-runtime-missing"
    assert first.severity == "error"
    assert first.effect == "cpu"
    assert "find /" in (first.ask or "")
    assert (second.cause, second.confidence) == ("cuda-version-mismatch", "possible")


def test_some_open_and_some_do_not_so_it_is_another_release() -> None:
    log = "\n".join(
        [misses("libcudart.so.10.1"), opens("libcublas.so.10", "libcufft.so.10"), SKIPS]
    )
    assert causes(log) == ["cuda-version-mismatch"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/local/cuda-10.2/lib64", "cuda-version-mismatch"),
        ("/usr/local/cuda-10.1/lib64", "cuda-runtime-missing"),
        ("/usr/local/nvidia/lib64", "cuda-runtime-missing"),
    ],
)
def test_the_search_path_tells_which_release_is_there(path: str, expected: str) -> None:
    assert causes(misses("libcudart.so.10.1", path=path) + "\n" + SKIPS)[0] == expected


def test_a_library_that_no_release_of_that_number_has_is_another_release() -> None:
    log = "No library found under: /usr/local/cuda-9.0/targets/x86_64-linux/lib/libcublasLt.so.9.0"
    assert causes(log)[0] == "cuda-version-mismatch"


def test_only_cudnn_is_missing() -> None:
    log = "\n".join([opens("libcudart.so.11.0", "libcublas.so.11"), misses("libcudnn.so.8"), SKIPS])
    assert causes(log) == ["cudnn-missing"]


def test_cuda_and_cudnn_missing_is_one_cause_with_cudnn_below_it() -> None:
    log = "\n".join([misses("libcudart.so.11.0", "libcublas.so.11", "libcudnn.so.8"), SKIPS])
    explanation = explained(log)
    assert explanation.root_causes[0].cause == "cuda-runtime-missing"
    assert "cudnn-missing" in [finding.cause for finding in explanation.symptoms]


def test_cudnn_of_another_major_release_is_there() -> None:
    log = (
        "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot "
        "open shared object file: No such file or directory\n"
        "$ ldconfig -p | grep cudnn\n\tlibcudnn_ops.so.9 => /lib/libcudnn_ops.so.9"
    )
    assert causes(log)[0] == "cudnn-version-mismatch"


def test_a_missing_runtime_on_a_machine_that_works_without_gpu_is_nothing() -> None:
    ignore = (
        "2021-03-02 10:11:12.2: I tensorflow/stream_executor/cuda/cudart_stub.cc:29] Ignore above "
        "cudart dlerror if you do not have a GPU set up on your machine."
    )
    log = "\n".join([misses("libcudart.so.11.0"), ignore, "Epoch 1/3", "loss: 0.31", "Epoch 2/3"])
    explanation = explained(log)
    assert explanation.verdict == "nothing-wrong"
    assert not explanation.root_causes


def test_a_missing_runtime_does_not_explain_a_failure_of_the_program_itself() -> None:
    log = "\n".join(
        [
            misses("cudart64_110.dll"),
            'Traceback (most recent call last):\n  File "train.py", line 3, in <module>',
            "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
        ]
    )
    assert explained(log).verdict == "not-gpu"


def test_a_missing_runtime_does_not_explain_a_crash_of_what_goes_on_without_it() -> None:
    explanation = explained("\n".join([misses("libcudart.so.11.0"), "Segmentation fault"]))
    assert (explanation.verdict, explanation.root_causes) == ("unknown", ())


def test_it_explains_why_the_device_does_not_exist() -> None:
    log = "\n".join(
        [
            misses("libcudart.so.11.0", "libcublas.so.11"),
            SKIPS,
            "tensorflow.python.framework.errors_impl.InvalidArgumentError: Cannot assign a device "
            "for operation a: node a was explicitly assigned to /device:GPU:0 but available "
            "devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ].",
        ]
    )
    assert causes(log)[0] == "cuda-runtime-missing"


def test_a_library_that_opens_at_the_second_attempt_is_not_missing() -> None:
    log = "\n".join([misses("libcudart.so.11.0"), opens("libcudart.so.11.0"), "Epoch 1/3"])
    assert causes(log) == []


def test_a_dll_that_pytorch_brings_itself_is_not_a_missing_cuda() -> None:
    log = (
        "OSError: [WinError 126] The specified module could not be found. Error loading "
        '"C:\\env\\lib\\site-packages\\torch\\lib\\cudnn64_9.dll" or one of its dependencies.'
    )
    assert causes(log)[0] == "windows-dll-load-failed"


@pytest.mark.parametrize(
    ("number", "written"), [("7102", "7.1.2"), ("90100", "9.1.0"), ("8.9.6", "8.9.6")]
)
def test_cudnn_numbers_are_said_as_people_say_them(number: str, written: str) -> None:
    log = f"Loaded runtime CuDNN library: 5005 but source was compiled with: {number}."
    (finding, *_) = explained(log).root_causes
    assert finding.cause == "cudnn-version-mismatch"
    assert written in finding.message
    assert "5.0.5" in finding.message


@pytest.mark.parametrize(
    ("free", "expected"),
    [(24_000_000_000, "cudnn-version-mismatch"), (4_000_000, None)],
)
def test_free_memory_decides_whether_cudnn_lacks_memory(free: int, expected: str | None) -> None:
    log = (
        "Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n"
        f"Memory usage: {free} bytes free, 25000000000 bytes total."
    )
    mine = [cause for cause in causes(log) if cause == "cudnn-version-mismatch"]
    assert mine == ([expected] if expected else [])


def test_the_drivers_compiler_is_too_old_which_is_not_a_wrong_ptxas() -> None:
    log = (
        "LinkerError: [222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION "
        "ptxas application ptx input, line 9; fatal : Unsupported .version 8.5; current version "
        "is '8.4'"
    )
    assert "ptxas-libdevice-missing" not in causes(log)


def test_jax_names_the_library_that_is_older_than_its_build() -> None:
    cublas = (
        "CUDA backend failed to initialize: Found cuBLAS version 120205, but JAX was built against "
        "version 120304, which is newer."
    )
    assert causes(cublas)[0] == "cuda-version-mismatch"
    assert causes(cublas.replace("cuBLAS", "cuDNN").replace("1202", "89"))[0] == (
        "cudnn-version-mismatch"
    )


def test_one_library_of_the_release_that_opens_is_a_matter_of_folders() -> None:
    log = "\n".join(
        [
            opens("libcudart.so.12", "libcublas.so.12", "libcufft.so.11", "libcusparse.so.12"),
            misses("libcusolver.so.11"),
            SKIPS,
        ]
    )
    first, *others = explained(log).root_causes
    assert (first.cause, first.confidence) == ("library-path-conflict", "likely")
    assert first.ask
    assert {finding.confidence for finding in others} == {"possible"}


def test_the_names_tell_the_release_that_the_build_wants() -> None:
    log = "\n".join([opens("cudart64_110.dll", "cusparse64_11.dll"), misses("cusolver64_10.dll")])
    (finding, *_) = explained(log + "\n" + SKIPS).root_causes
    assert finding.cause == "cuda-version-mismatch"
    assert "CUDA 11.0" in finding.message


def test_a_library_that_is_there_and_unfit_is_not_also_missing() -> None:
    log = (
        DSO.format("W") + "Could not load dynamic library 'libcudnn.so.9'; dlerror: "
        "/opt/lib/libcudnn.so.9: file too short\n" + SKIPS
    )
    assert causes(log) == ["library-file-broken"]


def test_a_newer_cudnn_than_an_old_build_takes_is_said_so() -> None:
    log = (
        "Loaded runtime CuDNN library: 7402 (compatibility version 7400) but source was compiled "
        "with 7003 (compatibility version 7000)."
    )
    (finding, *_) = explained(log).root_causes
    assert "accepts only 7.0.3 and its patches" in finding.message


def test_a_missing_libcudart_is_not_taken_for_the_drivers_libcuda() -> None:
    log = (
        "2019-06-30 08:36:11.1: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1640] Found "
        "device 0 with properties: \n"
        "name: GeForce GTX 1060 major: 6 minor: 1 memoryClockRate(GHz): 1.733\n"
        "2019-06-30 08:36:11.2: I tensorflow/stream_executor/platform/default/dso_loader.cc:53] "
        "Could not dlopen library 'libcudart.so.10.0'; dlerror: libcudart.so.10.0: cannot open "
        "shared object file: No such file or directory; LD_LIBRARY_PATH: "
        "/usr/local/cuda-8.0/lib64\n"
    )
    assert explained(log).root_causes[0].cause == "cuda-version-mismatch"


def test_an_extension_of_pytorch_needs_the_pytorch_it_was_made_for() -> None:
    symbol = "_ZN3c105ErrorC1ENS_14SourceLocationE"
    built = f"ImportError: /opt/env/torchvision/_C.so: undefined symbol: {symbol}"
    other = "ImportError: /opt/env/cv2/cv2.so: undefined symbol: _ZN2cv3MatC1Ev"
    early = "ImportError: libc10.so: cannot open shared object file: No such file or directory"
    assert explained(built).root_causes[0].code == "WG322"
    assert explained(early).root_causes[0].cause == "library-path-conflict"
    assert explained(other).verdict == "not-gpu"


def test_windows_self_check_of_2017_ends_the_import() -> None:
    log = (
        "ERROR: Failed to import the TensorFlow module.\n\n- Python version is 3.5.\n\n"
        "- Could not load 'cudart64_80.dll'. The GPU version of TensorFlow\n"
        "  requires that this DLL be installed in a directory that is named in your %PATH%.\n"
    )
    assert explained(log).root_causes[0].cause == "cuda-runtime-missing"


@each(
    ("package", "symbol", "expected"),
    [
        (
            "torchtext/lib/libtorchtext.so",
            "_ZN3c106Device8validateEv",
            ["extension-build-mismatch"],
        ),
        (
            "torchaudio/lib/libtorchaudio.so",
            "_ZNK2at6Tensor4sizeEv",
            ["extension-build-mismatch"],
        ),
        (
            "torchaudio/lib/libtorchaudio.so",
            "_ZN3c104cuda14device_countEv",
            ["cuda-version-mismatch"],
        ),
        ("my_ops/_C.so", "_ZN3c106Device8validateEv", ["cuda-version-mismatch"]),
    ],
)
def test_a_companion_of_pytorch_without_gpu_code_is_no_matter_of_cuda(
    package: str, symbol: str, expected: list[str]
) -> None:
    explanation = explained(
        f"OSError: /opt/env/lib/python3.10/site-packages/{package}: undefined symbol: {symbol}"
    )
    assert [finding.cause for finding in explanation.root_causes] == expected
    assert (explanation.verdict == "not-gpu") is (not expected)


@each(
    ("tensorflow", "cuda", "expected"),
    [
        ("2.1.0", "10.2/7.6", ["cuda-version-mismatch"]),
        ("2.1.0", "10.1/7.6", []),
        ("1.14", "9.0", ["cuda-version-mismatch"]),
        ("2.8", "11.6", []),
        ("2.8", "10.1", ["cuda-version-mismatch"]),
        ("2.17", "11.8", []),
    ],
)
def test_versions_that_a_reporter_filled_in_and_an_empty_list_of_gpus(
    tensorflow: str, cuda: str, expected: list[str]
) -> None:
    log = (
        f"- TensorFlow version (use command below): {tensorflow}\n- CUDA/cuDNN version: {cuda}\n"
        "[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]\n"
    )
    assert causes(log) == expected


@pytest.mark.parametrize(
    ("build", "expected"),
    [("1.8.1+cu111", "cuda-version-mismatch"), ("1.8.1+cu102", "cuda-runtime-missing")],
)
def test_an_extension_shares_the_cuda_of_its_pytorch(build: str, expected: str) -> None:
    log = (
        f"torch {build}\nTraceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n    import torch_cluster\n'
        "OSError: libcudart.so.10.2: cannot open shared object file: No such file or directory\n"
    )
    assert causes(log)[0] == expected


NO_ANSWER = (
    "2024-01-01 10:00:00.000000: W external/local_xla/xla/stream_executor/cuda/"
    "cuda_executor.cc:1755] Failed to determine cuDNN version (Note that this is expected if the "
    "application doesn't link the cuDNN plugin): INTERNAL: cuDNN error: "
    "CUDNN_STATUS_INTERNAL_ERROR\n"
    "2024-01-01 10:00:00.000001: W tensorflow/core/common_runtime/gpu/gpu_device.cc:2251] Cannot "
    "dlopen some GPU libraries.\n"
)


def test_a_cudnn_that_cannot_be_loaded_lacks_no_memory() -> None:
    roots = explained(NO_ANSWER).root_causes
    assert [(root.cause, root.confidence) for root in roots] == [
        ("cudnn-missing", "likely"),
        ("library-file-broken", "possible"),
    ]


def test_where_memory_is_free_it_is_not_named_as_the_reason_too() -> None:
    log = (
        "E0000 00:00:1700000000.000000 1234 cuda_dnn.cc:522] Could not create cudnn handle: "
        "CUDNN_STATUS_INTERNAL_ERROR\n"
        "E0000 00:00:1700000000.000000 1234 cuda_dnn.cc:526] Memory usage: 15000000000 bytes free, "
        "16000000000 bytes total.\n"
        "jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization "
        "failed.\n"
    )
    (root,) = explained(log).root_causes
    assert (root.cause, root.subject) == ("cudnn-version-mismatch", "jax")


@each(
    ("library", "package"),
    [
        ("libnvinfer.so.8", "tensorrt"),
        ("libnvonnxparser.so.8", "tensorrt"),
        ("libcustatevec.so.1", "cuquantum-python"),
        ("libcutensornet.so.2", "cuquantum-python"),
    ],
)
def test_a_library_of_another_package_is_installed_with_it(library: str, package: str) -> None:
    missing = f"ImportError: {library}: cannot open shared object file: No such file or directory"
    root = explained(missing).root_causes[0]
    assert root.cause == "cuda-runtime-missing"
    assert package in str(command_of(root.remedies[0]))


def test_a_program_that_only_misses_tensorrt_lacks_nothing() -> None:
    explanation = explained(f"{misses('libnvinfer.so.7')}\nEpoch 1/2 loss: 0.3\n")
    assert explanation.verdict == "nothing-wrong"


NO_CUPY = (
    "ImportError: CuPy is not correctly installed.\n\nIf you are using wheel distribution "
    "(cupy-cudaXX), make sure that the version fits.\n  $ pip freeze\n\n{}\n"
)


@each(
    ("quoted", "cause", "confidence"),
    [
        (
            "original error: libcuda.so.1: cannot open shared object file: No such file or "
            "directory",
            "no-nvidia-driver",
            "likely",
        ),
        (
            "original error: libcublas.so.10: cannot open shared object file: No such file or "
            "directory",
            "cuda-runtime-missing",
            "likely",
        ),
        ("original error: numpy.core.multiarray failed to import", "numpy-abi", "certain"),
        (
            "original error: DLL load failed while importing cublas: The specified module could "
            "not be found.",
            "cuda-runtime-missing",
            "likely",
        ),
        ("", "cuda-runtime-missing", "possible"),
    ],
)
def test_cupy_quotes_the_error_that_is_the_reason(quoted: str, cause: str, confidence: str) -> None:
    root = explained(NO_CUPY.format(quoted)).root_causes[0]
    assert (root.cause, root.confidence) == (cause, confidence)
    assert "continues without" not in root.message


def test_a_reason_of_cupy_that_nobody_knows_is_not_made_up() -> None:
    assert not explained(NO_CUPY.format("original error: the disk fell out")).root_causes


@each(
    ("name", "expected"),
    [
        ("CUDA", "cuda-runtime-missing"),
        ("cuSOLVER", "cuda-runtime-missing"),
        ("cuDNN", "cudnn-missing"),
    ],
)
def test_what_jax_could_not_load(name: str, expected: str) -> None:
    head = "WARNING:jax._src.xla_bridge:CUDA backend failed to initialize: Unable to load"
    for end in ("Is it installed?", "(Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)"):
        (root,) = explained(f"{head} {name}. {end}").root_causes
        assert root.cause == expected


@each(
    ("message", "command"),
    [
        (
            "ImportError: /a/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so: file too "
            "short\ntorch 2.1.0",
            "python -m pip install --force-reinstall --no-deps torch==2.1.0 "
            "--index-url https://download.pytorch.org/whl/cu121",
        ),
        # Without the installed release, a command would install another one.
        (
            "ImportError: /a/lib/python3.9/site-packages/tensorflow/python/"
            "_pywrap_tensorflow_internal.so: invalid ELF header",
            None,
        ),
        (
            "ImportError: /a/lib/python3.9/site-packages/torch/_C.cpython-39-x86_64-linux-gnu.so: "
            "file too short",
            None,
        ),
        (
            "ImportError: dlopen(/a/lib/python3.11/site-packages/torch/_C.cpython-311-darwin.so, "
            "0x0002): tried: '/a/lib/python3.11/site-packages/torch/_C.cpython-311-darwin.so' "
            "(slice is not valid mach-o file)",
            None,
        ),
    ],
)
def test_a_damaged_file_of_a_framework_is_installed_again(
    message: str, command: str | None
) -> None:
    (root,) = explained(message).root_causes
    assert root.cause == "library-file-broken"
    assert "again" in root.remedies[-1].text
    assert command_of(root.remedies[-1]) == command


AT_USE = (
    "RuntimeError: Library cublas64_12.dll is not found or cannot be loaded",
    "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open "
    "shared object file: No such file or directory",
    "Could not locate cublasLt64_12.dll. Please make sure it is in your library path!",
)


@each("message", AT_USE)
def test_a_library_that_is_loaded_when_it_is_needed_ends_the_program(message: str) -> None:
    root = explained(message).root_causes[0]
    assert root.effect == "broken"
    assert "fails where it needs it" in root.message


def test_what_fails_for_want_of_a_library_that_the_program_reported() -> None:
    printed = "Error in the file: Library cublas64_12.dll is not found or cannot be loaded"
    later = (
        "Traceback (most recent call last):\n"
        '  File "/opt/ui/blocks.py", line 1371, in validate_outputs\n'
        "ValueError: A handler returned too few values"
    )
    assert [r.cause for r in explained(f"{printed}\n{later}").root_causes][:1] == [
        "cuda-runtime-missing"
    ]
    worked = f"{printed}\nEpoch 1/5 loss: 0.4711\nEpoch 2/5 loss: 0.4011\n{later}"
    assert explained(worked).verdict == "not-gpu", "it worked in between"
    warned = MISSES.format("libcudart.so.11.0")
    assert explained(f"{warned}\n{later}").verdict == "not-gpu", "TensorFlow goes on without"
