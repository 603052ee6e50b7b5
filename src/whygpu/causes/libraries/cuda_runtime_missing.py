"""A CUDA library that the framework needs is not on this machine.

## Why it happens

The framework's package does not contain the CUDA libraries (`pip install tensorflow` without
`[and-cuda]`), one of the `nvidia-*` packages was removed, or an old release expects a CUDA toolkit
that was never installed. The NVIDIA driver does not contain these libraries.

## What it looks like

TensorFlow 1.14 or newer and JAX continue without the GPU. Newer TensorFlow prints `Could not find
cuda drivers on your machine` (this means `libcudart`, not the driver) or `Cannot dlopen some GPU
libraries`. TensorFlow up to 1.13 and PyTorch cannot be imported: `ImportError: libcublas.so.9.0:
cannot open shared object file: No such file or directory`.

## Fix

Install the CUDA libraries that the framework's release was built for. If the framework has an extra
for them, use it: it selects the matching versions.

## Fires on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcusparse.so.12"]
outcome = "dependency-missing"
chain = ["libcusparse.so.12", "libnvJitLink.so.12"]
detail = "libnvJitLink.so.12: cannot open shared object file: No such file or directory"
```

## Quiet on (machine)

A library that only one feature needs does not stop the framework from using the GPU.

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libnccl.so.2"]
required = false
outcome = "not-found"
chain = ["libnccl.so.2"]
```

If the library is installed in another major version, another cause reports it.

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudart.so.12"]
outcome = "not-found"
chain = ["libcudart.so.12"]
[cuda.copies.cudart]
soname = "libcudart.so.11.0"
path = "/usr/local/cuda-11.8/lib64/libcudart.so.11.0"
```

## Cannot tell on (machine)

```toml
only = ["jax"]
[target.frameworks.jax]
libraries = {unknown = "xla_cuda_plugin.so: permission denied"}
```

## Fires on (log)

TensorFlow up to 1.13 is linked to CUDA and cannot be imported:

```
  File "/opt/conda/lib/python3.6/imp.py", line 343, in load_dynamic
    return _load(spec)
ImportError: libcublas.so.9.0: cannot open shared object file: No such file or directory
```

Later releases load the library when they look for a GPU:

```
2021-03-02 10:11:12.100200: W tensorflow/stream_executor/platform/default/dso_loader.cc:60] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory
2021-03-02 10:11:13.100200: I tensorflow/stream_executor/platform/default/dso_loader.cc:49] Successfully opened dynamic library libcuda.so.1
2021-03-02 10:11:13.300200: W tensorflow/stream_executor/platform/default/dso_loader.cc:60] Could not load dynamic library 'libcublas.so.11'; dlerror: libcublas.so.11: cannot open shared object file: No such file or directory
2021-03-02 10:11:13.500200: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1757] Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed properly if you would like to use GPU.
Skipping registering GPU devices...
```

Since 2.12, TensorFlow calls `libcudart` "cuda drivers". If the log shows that the driver works,
the library is missing:

```
2024-05-03 11:22:33.123456: I external/local_tsl/tsl/cuda/cudart_stub.cc:32] Could not find cuda drivers on your machine, GPU will not be used.
[]
| NVIDIA-SMI 535.171.04             Driver Version: 535.171.04   CUDA Version: 12.2     |
```

JAX loads `libcudart` for the first kernel that needs it:

```
jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CustomCall failed: jaxlib/gpu/prng_kernels.cc:41: operation gpuGetLastError() failed: cudaGetErrorString symbol not found.
```

```
RuntimeError: CuPy failed to load nvrtc64_112_0.dll: FileNotFoundError: Could not find module 'nvrtc64_112_0.dll' (or one of its dependencies).
```

The message does not name the library:

```
2024-02-11 09:00:00.1234 [W:onnxruntime:Default, onnxruntime_pybind_state.cc:861 CreateExecutionProviderInstance] Failed to create CUDAExecutionProvider. Please reference the requirements page to ensure all dependencies are met.
```

```
error: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'
```

## Quiet on (log)

The driver itself is missing, so the CUDA libraries do not matter.

```
2021-03-02 10:11:12.100200: W tensorflow/stream_executor/platform/default/dso_loader.cc:60] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory
2021-03-02 10:11:13.100200: W tensorflow/stream_executor/platform/default/dso_loader.cc:60] Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file: No such file or directory
2021-03-02 10:11:13.100300: W tensorflow/stream_executor/cuda/cuda_driver.cc:326] failed call to cuInit: UNKNOWN ERROR (303)
```

TensorRT is optional. TensorFlow uses the GPU without it.

```
2022-10-02 10:11:12.100200: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open shared object file: No such file or directory
2022-10-02 10:11:14.100200: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1616] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9600 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 3060, pci bus id: 0000:01:00.0, compute capability: 8.6
```

## Sources

- <https://www.tensorflow.org/install/pip>
- <https://docs.jax.dev/en/latest/installation.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.framework_installs import gpu_build_in_log
from whygpu.causes.evidence.library_faults import (
    NO_LIBRARY_CONSEQUENCES,
)
from whygpu.causes.evidence.log_driver_works import driver_works
from whygpu.causes.evidence.log_extensions import lines_about_extensions
from whygpu.causes.evidence.log_libraries import (
    NO_CUDART,
    Missing,
    cuda_remedies,
    foreign_releases,
    known_defect,
    loss,
    missing_libraries,
    names,
    only_for_profiling,
    other_release_opened,
    partly_there,
    which_question,
)
from whygpu.causes.evidence.log_subjects import (
    ended_after,
    ended_by,
    excerpt,
    framework_title,
    subject_of,
)
from whygpu.causes.evidence.missing_library_findings import missing_library_findings
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import LOGS_OF_TENSORFLOW, Log, Match
from whygpu.model.remedy import (
    PYTHON,
    Install,
    SetVariable,
    command_line,
    shell_script,
)
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG201",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    # A package that contains the CUDA libraries of a release contains its cuDNN as well.
    explains=(*NO_LIBRARY_CONSEQUENCES, "device-placement-no-gpu-kernel", "cudnn-missing"),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    yield from missing_library_findings(CAUSE, machine, "cuda-runtime-missing")


_STATEMENTS = late(
    r"Unable to load (?:cu(?:BLAS|SOLVER|FFT|SPARSE|PTI)|CUDA)\. (?:Is it|\(Set TF_CPP)"
    r"|library nvvm not found|libNVVM cannot be found|CUDA_HOME (?:environment variable is not set|does not exist)"
    r"|CUDA_?[_ ]?SETUP: WARNING! libcudart\.so not found|cannot find -l(?:cudart|cublas|curand|cufft)\b"
    r"|NVRTC cannot be loaded|nvcc compiler not found on|Could NOT find CUDA \(missing"
    r"|library \((?:lib)?cu(?:blas|rand|solver|sparse|fft|dart)\S{1,60} that Paddle depends on is not"
    r"|Could not find (?:CUDA|nvcc)\b[^\n]{0,40}(?:in path|CUDA_PATH|installation)"
    r"|nvcc was not found|No such file or directory: '[^'\n]{0,300}[/\\]nvcc(?:\.exe)?'|nvcc: (?:command )?not found"
    r"|cuda_runtime(?:_api)?\.h: No such file|cublas_v2\.h: No such file|Failed to find CUDA\b"
    r"|cannot open input file '(?:cuda|cudart|cublas)\.lib'|CUDA_TOOLKIT_ROOT_DIR not found"
    r"|No CMAKE_CUDA_COMPILER could be found|CUDA environment is not correctly set up"
    r"|NVRTC_ERROR_BUILTIN_OPERATION_FAILURE|failed to open (?:lib)?nvrtc-builtins\S{1,30}|lib(?:cublas|cudart|nvrtc|cusparse)\.so\.\*\[0-9\] not found"
    r"|LoadLibrary failed with error 126 (?:\"[^\"\n]{0,80}\" )?when trying to load "
    r"\S{1,300}_providers_(?:cuda|tensorrt)\.dll"
    r"|onnxruntime_providers_cuda\.dll['\"]? ?(?:with error|which is missing)"
    r"|cudaGetErrorString symbol not found|could not find an appropriate CUDA runtime to use"
)
_TOOLKIT = (
    r"(?:\bnvcc(?:\.exe)?\b(?! {1,4}(?:fatal|error|warning))|CUDA[_ -]?(?:[Tt]oolkit|[Tt]oolset|TOOLKIT)|\bCUDA_(?:HOME|PATH|ROOT)\b"
    r"|CUDA compiler|-l(?:cudart|cublas|cublasLt|cusolver|cusparse|curand|cufft|nvrtc)\b"
    r"|\b(?:cuda|cuda_runtime|cuda_fp16|cublas|cusolver|cusparse|curand|cufft|nvrtc|driver_types)"
    r"\w{0,24}\.(?:hp?p?|lib)\b)"
)
_ABSENT = (
    r"(?:[Nn]ot found|not installed|not in (?:the |your )?PATH|not recognized|(?:is|isn't|not) set\b"
    r"|is missing|doesn't exist|does not exist|[Nn]o such file|identification is unknown"
    r"|(?:[Cc]annot|[Cc]ould (?:not|NOT)|[Uu]nable to|[Ff]ailed to) (?:be )?"
    r"(?:open|find|found|locate|detect|execute|start)|failed to start"
    r"|^\s{0,4}No\b)"
)
_PART_ABSENT = late(
    rf"{_TOOLKIT}[^\n]{{0,80}}?{_ABSENT}|{_ABSENT}[^\n]{{0,60}}?{_TOOLKIT}", re.MULTILINE
)
"""A part of the toolkit and a word for its absence, in one sentence. It counts if the sentence ended
the program: many programs look for the toolkit and go on without it."""
_CONFIGURED = late(r"Build files have been written to")
NO_PROVIDER = late(r"Failed to create CUDAExecutionProvider")
"""ONNX Runtime prints this if CUDA or cuDNN, or a part of them, is missing or does not match."""


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    missing = missing_libraries(log)
    elsewhere = lines_about_extensions(log)
    statement = next((m for m in log.find(_STATEMENTS) if m.line not in elsewhere), None)
    statement = statement or ended_by(log, _PART_ABSENT)
    if statement is not None and log.says(_CONFIGURED) and not log.failures:
        # CMake looked for CUDA, and went on without it.
        return
    ends = statement is not None and bool(ended_after(log, statement.line))
    if not ends and missing is not None and (missing.toolkit or not missing.cudnn):
        if not other_release_opened(missing) and not foreign_releases(missing):
            yield _not_found(log, missing)
        return
    if statement is not None:
        yield CAUSE.finding(
            subject=subject_of(log),
            message=f"{_who_looks(log, statement)} cannot find the CUDA toolkit: "
            f"{excerpt(statement.text)}",
            evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
            remedies=_for_toolkit(log, statement),
            confidence="likely",
            effect="broken",
        )
        return
    cupy = log.first(_NO_CUPY)
    if cupy is not None and missing is None:
        yield from _no_cupy(log, cupy)
        return
    provider = log.first(NO_PROVIDER)
    if provider is not None and missing is None:
        yield _no_provider(log, provider)
        return
    unseen = log.first(NO_CUDART)
    if missing is None and unseen is not None and not log.statuses and not log.reports_gpu():
        yield from _no_cudart(log, unseen.line)


_OF_NUMBA = late(r"NVVM|nvvm|\bnumba\b")


def _who_looks(log: Log, statement: Match) -> str:
    """Only Numba looks for NVVM, whichever other framework the log names."""
    return "Numba" if _OF_NUMBA.search(statement.text) else framework_title(log)


def _for_toolkit(log: Log, statement: Match) -> tuple[Remedy, ...]:
    if _OF_NUMBA.search(statement.text):
        return (
            Remedy(
                "In an environment of conda: for a driver with CUDA 12 or later, install the "
                "compiler from conda-forge; for an older one, the package cudatoolkit.",
                command_line(
                    "conda install -c conda-forge cuda-nvcc cuda-nvrtc 'cuda-version>=12.0'"
                ),
            ),
            Remedy(
                "With pip, NVIDIA's own package of this part of Numba brings the compiler "
                "(cu13 instead of cu12 for a driver of CUDA 13).",
                Install(("numba-cuda[cu12]",), options=("upgrade",)),
            ),
            *(
                ()
                if log.platform == "windows"
                else (
                    Remedy(
                        "Or, if a toolkit is installed, name its folder, which contains the folder "
                        "nvvm.",
                        SetVariable("CUDA_HOME", "/usr/local/cuda"),
                    ),
                )
            ),
        )
    if log.framework == "jax":
        return (Remedy(_WITH_JAX, gpu_build_in_log(log)),)
    return (_toolkit(log),)


def _toolkit(log: Log) -> Remedy:
    text = "Install the CUDA toolkit that the framework was built for"
    if log.platform == "windows":
        return Remedy(f"{text}; its installer sets CUDA_PATH. Then open a new terminal.")
    return Remedy(
        f"{text}, and set CUDA_HOME to its folder.", SetVariable("CUDA_HOME", "/usr/local/cuda")
    )


_WITH_JAX = "Install JAX together with the CUDA libraries that its plugin needs."


def _not_found(log: Log, missing: Missing) -> Finding:
    which = names(missing.toolkit) or "its CUDA libraries"
    profiling = only_for_profiling(missing)
    return CAUSE.finding(
        subject="tensorflow" if missing.needed_by == "TensorFlow" else subject_of(log),
        effect="none" if profiling else missing.effect,
        severity="info" if profiling else missing.severity,
        message=f"{missing.needed_by} needs {which}, which the loader does not find; "
        + ("only profiling needs it" if profiling else loss(missing)),
        evidence=log.evidence(*missing.lines),
        remedies=cuda_remedies(log, missing),
        confidence="possible" if partly_there(missing) or known_defect(log, missing) else "likely",
        ask=which_question(log, missing),
    )


def _no_provider(log: Log, statement: Match) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        message="ONNX Runtime has GPU support but cannot load it: its CUDA or cuDNN libraries are "
        "missing or have the wrong version",
        evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
        remedies=(
            Remedy(
                "Install ONNX Runtime together with its CUDA libraries.",
                Install(("onnxruntime-gpu[cuda,cudnn]",), options=("upgrade",)),
            ),
            Remedy(
                "Or list the libraries that are not found.",
                shell_script(
                    "ldd $(",
                    PYTHON,
                    " -c 'import onnxruntime as o; print(o.__path__[0])')/capi/libonnxruntime_providers_cuda.so | grep 'not found'",
                ),
            ),
        ),
        confidence="likely",
        ask="Which CUDA and cuDNN versions are installed? If the major release differs from the "
        "one that this ONNX Runtime was built for, that is the mismatch.",
    )


_NO_CUPY = late(r"CuPy is not correctly installed|^Failed to import CuPy", re.MULTILINE)
"""The reason is the error that the message quotes at its end."""
_CUPY_MODULE = late(
    r"DLL load failed(?: while importing (?:cublas|cusolver|cusparse|cufft|curand|nvrtc|runtime))?:"
)
_OTHER_REASON = late(r"[Oo]riginal error(?: was)?:\s{0,12}\S")


def _no_cupy(log: Log, statement: Match) -> Iterator[Finding]:
    """CuPy found no CUDA, unless the error that it quotes gives another reason."""
    module = log.first(_CUPY_MODULE)
    if module is None and log.says(_OTHER_REASON):
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message="CuPy could not load its native modules"
        + (
            ", which need the DLLs of the CUDA toolkit that this CuPy was built for"
            if module
            else "; most often the CUDA libraries that it was built for are missing"
        ),
        evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
        remedies=(_toolkit(log),),
        confidence="likely" if module else "possible",
        effect="broken",
        ask="What does the message say after 'original error'?",
    )


def _no_cudart(log: Log, line: int) -> Iterator[Finding]:
    """TensorFlow prints this on a machine without a GPU, and on one without libcudart."""
    is_tensorflow = log.framework in LOGS_OF_TENSORFLOW
    if is_tensorflow and driver_works(log) and not log.reports_gpu_at_work():
        yield CAUSE.finding(
            subject=subject_of(log),
            message=f"{framework_title(log)} does not find libcudart, a CUDA library, although the "
            "log shows a working driver; it computes on the CPU",
            evidence=log.evidence(line, *(device.line for device in log.devices)),
            remedies=(Remedy(_WITH_LIBRARIES, gpu_build_in_log(log)),),
            confidence="likely",
            ask="Do both come from one machine, and not one of them from inside a container?",
        )
    elif not log.devices:
        yield CAUSE.finding(
            subject=subject_of(log),
            severity="info",
            message=f"{framework_title(log)} does not find libcudart; this matters only if the "
            "machine has a GPU",
            evidence=log.evidence(line),
            remedies=(
                Remedy(
                    f"If this machine has an NVIDIA GPU: {_WITH_LIBRARIES}", gpu_build_in_log(log)
                ),
            ),
            confidence="possible",
            ask="Does `nvidia-smi` list a GPU? If not, nothing is wrong.",
        )


_WITH_LIBRARIES = "Install TensorFlow with its CUDA libraries."
