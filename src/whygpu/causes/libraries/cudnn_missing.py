"""cuDNN, which the framework needs, is not on this machine.

## Why it happens

cuDNN is not part of the CUDA toolkit. It is a separate download or package, and easy to forget
after a manual installation of CUDA. Two packages that share a folder (`nvidia-cudnn-cu11` and
`nvidia-cudnn-cu12`) delete each other's files when one of them is removed.

## What it looks like

TensorFlow prints `Cannot dlopen some GPU libraries` and runs on the CPU, even if the model has no
convolutions: without cuDNN it does not use the GPU at all. PyTorch cannot be imported.

## Fix

Install the cuDNN that the framework's release needs.

## Fires on (machine)

```toml
only = ["tensorflow"]
[cuda.copies.cudnn]
remove = true
[target.packages.nvidia-cudnn-cu12]
remove = true
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "not-found"
path = ""
chain = ["libcudnn.so.9"]
detail = "libcudnn.so.9: cannot open shared object file: No such file or directory"
```

## Quiet on (machine)

If cuDNN is installed in a folder that the loader does not search, another cause reports it.

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "not-found"
chain = ["libcudnn.so.9"]
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow]
libraries = {unknown = "libtensorflow_framework.so.2: permission denied"}
```

## Fires on (log)

```
2023-05-02 12:00:00.100000: W tensorflow/compiler/xla/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file: No such file or directory; LD_LIBRARY_PATH: /usr/local/cuda-11.8/lib64
2023-05-02 12:00:00.200000: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1956] Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed properly if you would like to use GPU.
Skipping registering GPU devices...
```

```
ImportError: Could not find 'cudnn64_6.dll'. TensorFlow requires that this DLL be installed in a directory that is named in your %PATH% environment variable. Note that installing cuDNN is a separate step from installing CUDA
```

```
Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open shared object file: No such file or directory
Please make sure libcudnn_ops_infer.so.8 is in your library path!
Aborted (core dumped)
```

## Quiet on (log)

More than cuDNN is missing:

```
ImportError: libcudart.so.10.0: cannot open shared object file: No such file or directory
```

cuDNN was found in the second place that was searched:

```
I tensorflow/stream_executor/dso_loader.cc:126] Couldn't open CUDA library libcudnn.so.5. LD_LIBRARY_PATH:
I tensorflow/stream_executor/dso_loader.cc:135] successfully opened CUDA library libcudnn.so.5 locally
```

## Sources

- <https://docs.nvidia.com/deeplearning/cudnn/installation/latest/linux.html>
- <https://www.tensorflow.org/install/pip>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_installs import gpu_build_in_log
from whygpu.causes.evidence.library_faults import (
    NO_LIBRARY_CONSEQUENCES,
)
from whygpu.causes.evidence.log_cuda_wheels import install_cudnn
from whygpu.causes.evidence.log_libraries import (
    NO_DLOPEN,
    Missing,
    cudnn_unusable,
    is_cudnn,
    loss,
    missing_libraries,
    names,
    other_cudnn,
)
from whygpu.causes.evidence.log_subjects import ended_after, excerpt, framework_title, subject_of
from whygpu.causes.evidence.missing_library_findings import missing_library_findings
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.remedy import UnsetVariable, command_line, shell_script
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG202",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(*NO_LIBRARY_CONSEQUENCES, "device-placement-no-gpu-kernel"),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    yield from missing_library_findings(CAUSE, machine, "cudnn-missing")


_STATEMENTS = late(
    r"Unable to load cuDNN\. (?:Is it installed|\(Set TF_CPP)|cuDNN (?:library )?not found\.|Unable to load cuDNN DSO"
    r"|could not find cudnn\w{3,40} in cudnn DSO|Invalid handle\. Cannot load symbol cudnn"
    r"|Could not find cuDNN|cudnn\.h: No such file or directory|Cannot load cudnn shared library"
    r"|library \((?:lib)?cudnn\S{1,60} that Paddle depends on is not|libcudnn \(R\d\) not found"
    r"|cuDNN not available: |cannot compile with cuDNN|Can not compile with cuDNN"
    r"|determine the cudnn version as it is not available|cuDNN V[\d.]+ OR GREATER NOT FOUND"
    r"|Could NOT find (?:CUDNN|CuDNN|cuDNN)\b"
)
_NO_OTHER_COPY = Remedy(
    "If they are installed, check that no other copy is found first: LD_LIBRARY_PATH is searched "
    "before the wheels.",
    UnsetVariable(("LD_LIBRARY_PATH",)),
)
_NUMBER = late(r"\d+")
_WHERE = (
    "What does `find / -name 'libcudnn*' 2>/dev/null` print? Nothing: cuDNN is missing. Another "
    "number: another release. Exactly this name: the loader does not search that folder."
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    missing = missing_libraries(log)
    if missing is not None and missing.cudnn:
        if not other_cudnn(log, missing):
            yield _not_found(log, missing)
        return
    unusable = cudnn_unusable(log)
    if missing is None and unusable is not None and not _damaged(log):
        yield _not_loaded(log, unusable)
        return
    statement = log.first(_STATEMENTS)
    if statement is not None and missing is None and not log.version_of("cudnn"):
        yield CAUSE.finding(
            subject=subject_of(log),
            message=f"{framework_title(log)} cannot find cuDNN: {excerpt(statement.text)}",
            evidence=log.evidence(
                *(match.line for match in log.find(_STATEMENTS)), *ended_after(log, statement.line)
            ),
            remedies=_remedies(log, ""),
            confidence="likely",
        )


def _damaged(log: Log) -> bool:
    return any(is_cudnn(event) for event in log.library_events("broken"))


def _not_loaded(log: Log, statement: Match) -> Finding:
    name = framework_title(log)
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"{name} cannot load cuDNN and continues without the GPU: the library is not in "
        "a folder that the loader searches, or the file is damaged",
        evidence=log.evidence(statement.line, *(match.line for match in log.find(NO_DLOPEN))),
        remedies=(
            *_remedies(log, ""),
            Remedy(
                "Check which file is found, and whether it is intact.", command_line("whygpu check")
            ),
        ),
        confidence="likely",
        ask="What does `whygpu check` report for libcudnn in that environment: missing or damaged?",
    )


def _not_found(log: Log, missing: Missing) -> Finding:
    number = _NUMBER.match(missing.cudnn[0].version)
    aborts = not missing.stops and any(
        failure.line > missing.cudnn[0].line and failure.kind != "exception"
        for failure in log.failures
    )
    return CAUSE.finding(
        subject=subject_of(log),
        effect="broken" if aborts else missing.effect,
        severity="error" if aborts else missing.severity,
        message=(
            f"{missing.needed_by} needs {names(missing.cudnn)}, which the loader does not "
            f"find; {'it aborts' if aborts else loss(missing)}. cuDNN is not part of the "
            "CUDA toolkit"
        ),
        evidence=log.evidence(
            *missing.lines, *(ended_after(log, missing.cudnn[0].line) if aborts else ())
        ),
        remedies=_remedies(log, number.group() if number else ""),
        # The file may exist in a folder that the loader does not search.
        confidence="likely",
        ask=_WHERE if log.platform != "windows" else None,
    )


def _remedies(log: Log, major: str) -> tuple[Remedy, ...]:
    if log.framework == "jax" and not major and log.platform != "windows":
        return (
            Remedy(
                "Install JAX together with the CUDA and cuDNN libraries of its release.",
                gpu_build_in_log(log),
            ),
            _NO_OTHER_COPY,
        )
    of = f"cuDNN {major}" if major else "the cuDNN that this build needs"
    if log.platform == "windows":
        return (
            Remedy(
                f"Install {of} for the CUDA release in use, and add the folder of its DLLs to PATH."
            ),
        )
    return (
        install_cudnn(log, f"Install {of}.", major, f"=={major}.*"),
        Remedy(
            "If it is installed, check whether the loader finds it.",
            shell_script("ldconfig -p | grep cudnn"),
        ),
    )
