"""XLA may not find the compiler files it needs: ptxas and libdevice.

## Why it happens

XLA compiles GPU code while the program runs. It needs two files that belong to the CUDA toolkit,
not to the CUDA libraries: the assembler `ptxas` and the bitcode file `libdevice.10.bc`. The wheel
`nvidia-cuda-nvcc` contains both, and so does a toolkit or a conda package. A machine that has only
the CUDA libraries has neither.

## What it looks like

Operations that do not use XLA work. `jit_compile=True`, which Keras selects by default on a GPU,
fails with `libdevice not found at ./libdevice.10.bc`, `Can't find libdevice directory
${CUDA_DIR}/nvvm/libdevice` or `No PTX compilation provider is available`.

## Fix

Install the wheel, or give XLA the path of a toolkit with
`XLA_FLAGS=--xla_gpu_cuda_data_dir=/path/to/cuda`.

## Fires on (machine)

```toml
only = ["tensorflow"]
[target.packages.nvidia-cuda-nvcc-cu12]
remove = true
```

## Quiet on (machine)

A toolkit contains the files as well.

```toml
only = ["tensorflow"]
[target.packages.nvidia-cuda-nvcc-cu12]
remove = true
[cuda.toolkits."/usr/local/cuda-12.5"]
version = "12.5"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target]
packages = {unknown = "site-packages: permission denied"}
```

## Fires on (log)

```
2023-02-01 10:00:00.100000: W tensorflow/compiler/xla/service/gpu/nvptx_compiler.cc:492] Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice. This may result in compilation or runtime failures, if the program we try to run uses routines from libdevice.
Searched for CUDA in the following directories:
  ./cuda_sdk_lib
  /usr/local/cuda
2023-02-01 10:00:00.300000: W tensorflow/core/framework/op_kernel.cc:1830] OP_REQUIRES failed at xla_ops.cc:446 : INTERNAL: libdevice not found at ./libdevice.10.bc
```

```
2023-02-01 10:00:00.100000: F external/xla/xla/service/gpu/nvptx_compiler.cc:590] ptxas returned an error during compilation of ptx to sass: 'INTERNAL: Failed to launch ptxas'  If the error message indicates that a file could not be written, please verify that sufficient filesystem space is provided.
Aborted (core dumped)
```

```
jaxlib.xla_extension.XlaRuntimeError: INTERNAL: ptxas exited with non-zero error code 65280, output: ptxas /tmp/tempfile-a, line 5; fatal   : Unsupported .version 8.5; current version is '8.0'
```

```
2024-03-01 10:00:00.1: W external/xla/xla/stream_executor/gpu/asm_compiler.cc:231] Falling back to the CUDA driver for PTX compilation; ptxas does not support CC 9.0
```

The lines that name the file were left out:

```
tensorflow.python.framework.errors_impl.UnknownError: {{function_node __wrapped__Rsqrt_device_/job:localhost/replica:0/task:0/device:GPU:0}} JIT compilation failed. [Op:Rsqrt]
```

## Quiet on (log)

The driver compiles instead, and this works:

```
2020-09-01 10:00:00.100000: W tensorflow/stream_executor/gpu/redzone_allocator.cc:314] Internal: Invoking GPU asm compilation is supported on Cuda non-Windows platforms only
Relying on driver to perform ptx compilation.
Epoch 1/5
```

## Sources

- <https://github.com/tensorflow/tensorflow/issues/60790>
- <https://github.com/jax-ml/jax/issues/6323>
- <https://github.com/tensorflow/tensorflow/pull/43888>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import cuda_builds, titled
from whygpu.causes.evidence.library_faults import cuda_major
from whygpu.causes.evidence.log_cuda_wheels import compiler_wheel, cuda_major_in, finds_wheels
from whygpu.causes.evidence.log_subjects import (
    ended_after,
    excerpt,
    framework_title,
    gpu_ends_after,
    subject_of,
)
from whygpu.causes.evidence.log_triton import outdated_compiler
from whygpu.model.cause import cause
from whygpu.model.derived import gpu_proven_by, nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.observed import Known, need
from whygpu.model.remedy import PYTHON, Install, SetVariable, Steps, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, active

CAUSE = cause("WG206", __name__, __doc__, severity="warning", effect="none")

_XLA_USERS = ("tensorflow", "jax")
_COMPILER_PACKAGES = ("nvidia-cuda-nvcc", "cuda-nvcc", "cuda-toolkit", "nvidia-cuda-toolkit")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    users = [item for item in cuda_builds(machine) if _compiles(item)]
    if not users or _toolkit_is_named(machine) or need(machine.cuda).toolkits:
        return
    packages = need(machine.target.packages)
    if any(package.name.startswith(_COMPILER_PACKAGES) for package in active(packages)):
        return
    for framework in users:
        if not _compiled(machine, framework):
            yield _finding(framework)


def _compiles(framework: Framework) -> bool:
    """Releases for older CUDA use XLA only on request."""
    return framework.name in _XLA_USERS and (cuda_major(framework) or 12) >= 11


def _toolkit_is_named(machine: Snapshot) -> bool:
    flags = machine.environment.get("XLA_FLAGS")
    return isinstance(flags, Known) and "--xla_gpu_cuda_data_dir" in flags.value


def _compiled(machine: Snapshot, framework: Framework) -> bool:
    """JAX compiles everything with XLA: if it computed on the GPU, it found both files."""
    probe = machine.probe("jax")
    return framework.name == "jax" and isinstance(probe, Known) and gpu_proven_by(probe.value)


def _finding(framework: Framework) -> Finding:
    major = cuda_major(framework)
    wheel = compiler_wheel(major) if major else "nvidia-cuda-nvcc-cu12 (or -cu11, by its CUDA)"
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} compiles with XLA, which needs ptxas and libdevice.10.bc; no "
            f"CUDA toolkit was found, and the package {wheel}, which contains both, is not "
            "installed. Models compiled with XLA (on a GPU, Keras does this by default) may fail"
        ),
        evidence=(
            Evidence("machine", "CUDA toolkits", "none found"),
            Evidence("machine", "the target's packages", f"no {wheel}"),
        ),
        remedies=(
            Remedy(
                "Install the wheel with the compiler.",
                Install((wheel,)) if major else None,
            ),
        ),
        confidence="possible",
    )


MISSING = late(
    r"Can't find libdevice directory|libdevice(?:\.\S{1,40}\.bc)? not found|libdevice is required by this HLO module"
    r"|Missing libdevice file|Failed to launch ptxas|ptxas returned an error during compilation"
    r"|Couldn't invoke ptxas(?! --version)|No PTX compilation provider is available"
    r"|[Cc]annot find [`'\"]?ptxas|ptxas(?:\.exe)?:? not found|Couldn't find a suitable version of ptxas"
    r"|No such file or directory: '[^'\n]{0,200}ptxas'|Failed to find ptxas|Unable to find ptxas"
)
OUTDATED = late(
    r"Unsupported \.version (?P<wanted>[\d.]+); current version is '(?P<there>[\d.]+)'"
    r"|You are using ptxas [\d.x]{1,8}, (?:which is(?: in range| older)|but TF requires)"
    r"|ptxas does not support CC [\d.]+|ptxas ptxas too old"
    r"|requires ptxas version [\d.]+\d or (?:higher|newer)"
)
NO_VERSION = late(r"Couldn't (?:get ptxas(?:/nvlink)? version|invoke ptxas(?:\.exe)? --version)")
"""TensorFlow then lets the driver compile, unless an error follows."""
_ONLY_WARNS = late(r"You are using ptxas [\d.x]{1,8}, which is (?:in range|older)")
"""TensorFlow still uses this ptxas, and warns that it may miscompile."""
_DRIVER_COMPILES = late(r"Relying on driver to perform ptx compilation")
_JIT_FAILED = late(r"JIT compilation failed|Failed to (?:compile|load) (?:PTX|in-memory CUBIN)")
_NO_REASON = late(r"JIT compilation failed\.")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    compiler = outdated_compiler(log)
    if compiler is not None and compiler.refuses == "code":
        # Triton ran it, not XLA.
        return
    missing = log.first(MISSING)
    # The driver's own compiler uses this name for its input: then the driver is too old.
    outdated = next((m for m in log.find(OUTDATED) if "application ptx input" not in m.text), None)
    unseen = log.first(NO_VERSION)
    statement = missing or outdated
    if statement is None and unseen is not None and not log.says(_DRIVER_COMPILES):
        statement = unseen
    if statement is None and not log.statuses:
        # TensorFlow gives the reason in lines that a report often leaves out.
        statement = unseen = log.first(_NO_REASON)
    if statement is None:
        return
    if statement is outdated and _ONLY_WARNS.search(statement.text):
        yield from _old_but_used(log, statement)
        return
    lines = [m.line for pattern in (MISSING, OUTDATED, NO_VERSION) for m in log.find(pattern)]
    failed = ended_after(log, statement.line)
    driver = log.says(_DRIVER_COMPILES)
    if outdated is not None and outdated.groups["there"]:
        what = (
            f"the ptxas that XLA found supports only PTX {outdated.groups['there']}, but the code "
            f"is PTX {outdated.groups['wanted']}: ptxas belongs to an older CUDA toolkit"
        )
    elif statement is outdated:
        what = f"the ptxas that XLA found is too old ({excerpt(statement.text, 120)})"
    else:
        what = "XLA does not find ptxas or libdevice.10.bc of a CUDA toolkit"
    yield CAUSE.finding(
        subject=subject_of(log),
        severity="error" if failed or (statement is not unseen and not driver) else None,
        effect="broken" if failed else None,
        message=f"{framework_title(log)}: {what}; XLA cannot compile for the GPU",
        evidence=log.evidence(*lines, *(m.line for m in log.find(_JIT_FAILED)), *failed),
        remedies=_log_remedies(log),
        confidence="certain" if statement is not unseen else "likely",
        ask="Which earlier line names libdevice or ptxas? If none does, find the file: "
        "`find / -name 'libdevice*.bc' 2>/dev/null`"
        if statement is unseen
        else None,
    )


def _old_but_used(log: Log, statement: Match) -> Iterator[Finding]:
    """If the program fails, the warning may be the reason."""
    failed = gpu_ends_after(log, statement.line)
    if not failed:
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        effect="broken",
        message=f"{framework_title(log)} compiles with an old ptxas that may produce wrong code: "
        f"{excerpt(statement.text, 120)}",
        evidence=log.evidence(statement.line, *failed),
        remedies=_log_remedies(log),
        confidence="possible",
        ask="Does the program work with XLA_FLAGS set to a newer CUDA toolkit?",
    )


_NAME_THE_WHEEL = shell_script(
    'export XLA_FLAGS="--xla_gpu_cuda_data_dir=$(',
    PYTHON,
    " -c 'import nvidia; print(list(nvidia.__path__)[0])')/cuda_nvcc\"",
)
_SEARCHED = late(
    r"Searched for CUDA in the following directories:(?P<folders>(?:\n[^\n]{0,300}){1,12})"
)
_FOLDER_OF_WHEEL = "nvidia/cuda_nvcc"
_CUDA_OF_OLD_RELEASES = 11
"""Only one of TensorFlow's releases for this CUDA searches the folders of wheels: 2.14."""


def _searches_wheels(log: Log) -> bool:
    """Whether XLA finds the compiler in its wheel, by the release or by the folders in the log."""
    searched = log.first(_SEARCHED)
    if searched is not None:
        return _FOLDER_OF_WHEEL in (searched.groups["folders"] or "")
    if log.version_of("tensorflow") is None and cuda_major_in(log) == _CUDA_OF_OLD_RELEASES:
        return log.framework == "jax"
    return finds_wheels(log)


def _log_remedies(log: Log) -> tuple[Remedy, ...]:
    major = cuda_major_in(log)
    folder = Remedy(
        "Or set the path of a CUDA toolkit of that release: the folder that contains bin/ptxas and "
        "nvvm/libdevice.",
        SetVariable("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/usr/local/cuda"),
    )
    if log.platform == "windows":
        # The compiler's wheel has no place there that XLA searches.
        return (
            Remedy(
                "Add the option --xla_gpu_cuda_data_dir= with the folder of a CUDA toolkit to "
                "XLA_FLAGS: the one in CUDA_PATH, without spaces in its name."
            ),
        )
    if major is None or major < 11:
        alone = (
            "Install the compiler of the CUDA release that the framework was built for: the package "
            "nvidia-cuda-nvcc-cu11 for CUDA 11, nvidia-cuda-nvcc-cu12 for 12, nvidia-cuda-nvcc for "
            "13."
        )
        return (Remedy(f"Install the toolkit of CUDA {major}." if major else alone), folder)
    wheel = Install((compiler_wheel(major),), options=("upgrade",))
    if not _searches_wheels(log):
        return (
            Remedy(
                f"Install the wheel with the compiler of CUDA {major}, and tell XLA where it is, in "
                "every shell: this release does not search the folders of wheels.",
                Steps((wheel, _NAME_THE_WHEEL)),
            ),
            folder,
        )
    return (Remedy(f"Install the wheel with the compiler of CUDA {major}.", wheel), folder)
