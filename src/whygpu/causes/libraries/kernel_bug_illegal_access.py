"""GPU code accessed memory illegally or could not be launched: a bug in a kernel.

## Why it happens

A kernel in the framework, in an extension, in cuDNN or in cuBLAS reads or writes an address that it
must not use, or is launched with arguments that the GPU refuses. Usual cases are extensions that
run on GPU 0 while the tensors are on another GPU, indices that no assertion checks, sizes beyond
2^31 elements, and bugs in a single release. CUDA reports the error late, in one of the next calls.

## What it looks like

- `CUDA error: an illegal memory access was encountered` (cuda runtime error (77) or (700),
  CUDA_ERROR_ILLEGAL_ADDRESS), `misaligned address`, `unspecified launch failure`.
- `cuDNN error: CUDNN_STATUS_BAD_PARAM`, `CUDNN_STATUS_EXECUTION_FAILED`,
  `CUDNN_STATUS_MAPPING_ERROR`.
- `invalid configuration argument`, `too many resources requested for launch`.
- TensorFlow checks the addresses of a copy: `dst pointer is not actually on GPU`.

## Fix

Find the kernel: with CUDA_LAUNCH_BLOCKING=1 the traceback ends at it, and compute-sanitizer prints
the access. Then update or downgrade the package that contains it, rebuild extensions for the
installed framework, select the GPU with CUDA_VISIBLE_DEVICES instead of an index, or disable the
algorithm (`torch.backends.cudnn.benchmark = False`, MXNET_CUDNN_AUTOTUNE_DEFAULT=0).

## Fires on (log)

```
RuntimeError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
```

PyTorch 2 mentions device-side assertions below most errors. None has failed here.

```
RuntimeError: CUDA error: an illegal memory access was encountered
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
```

```
2021-05-01 12:00:00.000000: E tensorflow/stream_executor/cuda/cuda_event.cc:29] Error polling for event status: failed to query event: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered
2021-05-01 12:00:00.000100: F tensorflow/core/common_runtime/gpu/gpu_event_mgr.cc:273] Unexpected Event status: 1
```

```
  File "/opt/conda/lib/python3.8/site-packages/torch/nn/modules/conv.py", line 439, in _conv_forward
RuntimeError: cuDNN error: CUDNN_STATUS_BAD_PARAM
```

## Quiet on (log)

The assertion names the reason: the data.

```
../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:144: operator(): block: [0,0,0], thread: [3,0,0] Assertion `idx_dim >= 0 && idx_dim < index_size && "index out of bounds"` failed.
RuntimeError: CUDA error: an illegal memory access was encountered
```

## Sources

- <https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution>
- <https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_cudnn_engines import every_engine_failed, without_engine
from whygpu.causes.evidence.log_status_families import decided_by_code
from whygpu.causes.evidence.log_subjects import (
    ended_by,
    framework_title,
    gpu_ends_after,
    is_tensorflow,
    subject_of,
)
from whygpu.causes.evidence.memory_remedies import maker_of
from whygpu.model.cause import cause
from whygpu.model.finding import Confidence, Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match, Status
from whygpu.model.remedy import command_line, shell_script

CAUSE = cause(
    "WG211",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-crashes",),
)

_ACCESS = (
    "cudaErrorIllegalAddress",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "cudaErrorMisalignedAddress",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "cudaErrorIllegalInstruction",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "cudaErrorInvalidPc",
    "CUDA_ERROR_INVALID_PC",
    "cudaErrorHardwareStackError",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "cudaErrorInvalidAddressSpace",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE",
)
_LAUNCH = (
    "cudaErrorLaunchFailure",
    "CUDA_ERROR_LAUNCH_FAILED",
    "cudaErrorLaunchOutOfResources",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    "cudaErrorInvalidConfiguration",
    "cudaErrorLaunchTimeout",
    "CUDA_ERROR_LAUNCH_TIMEOUT",
)
_LIBRARY = (
    "CUDNN_STATUS_BAD_PARAM",
    "CUDNN_STATUS_EXECUTION_FAILED",
    "CUDNN_STATUS_EXECUTION_FAILED_CUDART",
    "CUDNN_STATUS_MAPPING_ERROR",
    "CUDNN_STATUS_NOT_SUPPORTED",
    "CUBLAS_STATUS_EXECUTION_FAILED",
    "CUBLAS_STATUS_INTERNAL_ERROR",
    "CUBLAS_STATUS_INVALID_VALUE",
    "CUBLAS_STATUS_NOT_SUPPORTED",
    "CUFFT_INTERNAL_ERROR",
    "CUFFT_EXEC_FAILED",
    "CUSOLVER_STATUS_EXECUTION_FAILED",
    "CUSOLVER_STATUS_INTERNAL_ERROR",
    "CUSPARSE_STATUS_EXECUTION_FAILED",
    "CUSPARSE_STATUS_INTERNAL_ERROR",
)
_REFUSALS = ("CUDNN_STATUS_NOT_SUPPORTED", "CUDNN_STATUS_BAD_PARAM")
_NEVER_ABOUT_MEMORY = (
    "CUDNN_STATUS_BAD_PARAM",
    "CUDNN_STATUS_NOT_SUPPORTED",
    "CUSOLVER_STATUS_EXECUTION_FAILED",
    "CUSOLVER_STATUS_INTERNAL_ERROR",
    "CUSPARSE_STATUS_EXECUTION_FAILED",
    "CUSPARSE_STATUS_INTERNAL_ERROR",
)
_PHRASES = late(
    r"invalid configuration argument|[Ii]llegal memory access|misaligned address|unspecified launch (?:failure|error)"
    r"|\[(?:700|716|719)\] Call to cu\w{3,40} results in"
    r"|Unexpected Event status: 1\b|Memory access fault by GPU node|HSA_STATUS_ERROR_MEMORY"
    r"|(?:src|dst|[Ss]ource|[Dd]estination) pointer is not actually on (?:GPU|CPU)"
    r"|(?:CUDA|HIP|ROCm) kernel (?:launch )?failed"
    r"|cuBLAS Error: the requested functionality is not supported"
    r"|CUDA error \([^\s()]{1,200}\.(?:h|cuh?|hpp|cpp):\d{1,6}\): invalid argument"
)
_OUT_OF_RESOURCES = late(r"out of resources?: (?:shared memory|registers|threads), Required: \d")
"""A kernel that Triton compiled needs more of a multiprocessor than this GPU has. Its tuner tries
several variants and goes on."""
_PROGRAMS_XID = late(r"NVRM: Xid \([^)\n]{1,80}\): (?:13|31),")
"""The driver reports an error in a program's kernel. Alone it is weak evidence."""
_ASSERTED = ("cudaErrorAssert", "CUDA_ERROR_ASSERT")
_ASSERTION = late(r"thread: ?\[[\d, ]{1,30}\][^\n]{0,20}Assertion")
_HARDWARE = late(
    r"NVRM: Xid[^\n]{0,60}: (?!(?:13|31|43|45)\b)\d{2,3}\b|uncorrectable ECC|fallen off the bus"
)
"""With Xid 13, 31, 43 and 45 the driver reports a fault of a program."""
_MEMORY_LACKING = late(
    r"create cu(?:dnn|blas|solver)\w* ?(?:handle|instance)|ALLOC_FAILED|NOT_INITIALIZED"
    r"|[Oo]ut of memory"
    r"|OUT_OF_MEMORY|cuDNN failed to initialize|DNN library"
)
_VERSIONS = late(
    r"Loaded runtime CuDNN|VERSION_MISMATCH|no kernel image"
    r"|is not compatible with the current PyTorch"
    r"|ARCH_MISMATCH|compiled with an unsupported"
)
_NEW_ON_OLD = late(r"(?:libcu(?:dart|blas)\.so\.|cu(?:dart|blas)64_)(?:8|9|10)")
_AMPERE = late(r"compute capability:? (?:8\.|9\.|1[0-9]\.)|RTX 30[5-9]0|RTX A\d000|A100")
_ON_NEW_GPUS = (
    "CUDNN_STATUS_EXECUTION_FAILED",
    "CUDNN_STATUS_MAPPING_ERROR",
    "CUBLAS_STATUS_EXECUTION_FAILED",
)
_OLD_PYTHONS = ("2", "3.5", "3.6", "3.7", "35", "36", "37")
_RUNNING_GRAPH = late(r"\[cudnn_frontend\] Error: CUDNN_STATUS_EXECUTION_FAILED")
"""cuDNN has started, and a computation failed."""
_SEARCH = late(r"best convolution algorithm|AUTOTUNE|cudnnFind|cudnn\.benchmark")
_EXTENSION = late(r"(?P<file>[\w./\\-]{1,200}\.cuh?)\b")
_OWN_FILES = late(
    r"pytorch[/\\]|aten[/\\]|ATen|THC|torch[/\\]csrc|c10[/\\]|tensorflow[/\\]|/paddle/|xla/"
)
_MOST_LINES = 6


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    if log.says(_ASSERTION) or log.status_named(*_ASSERTED) or log.says(_VERSIONS):
        return
    hard = log.status_named(*_ACCESS, *_LAUNCH)
    soft = () if log.says(_MEMORY_LACKING) else _library_faults(log)
    phrase = None if hard or soft else log.first(_PHRASES) or ended_by(log, _OUT_OF_RESOURCES)
    if phrase is None and log.failures:
        phrase = log.first(_PROGRAMS_XID)
    misused = () if hard or soft or phrase else decided_by_code(log, CAUSE.slug)
    known = (*hard, *soft, *misused)
    if not known and phrase is None:
        return
    if not known and phrase is not None and _OUT_OF_RESOURCES.search(phrase.text):
        yield _too_large(log, phrase)
        return
    lines = [status.line for status in known] or [phrase.line if phrase else 0]
    words = known[0].name if known else "a kernel failed"
    if words in _TIMED_OUT:
        yield _too_long(log, lines)
        return
    ends = gpu_ends_after(log, min(lines))
    file = _extension(log, lines)
    where = f" in {file}" if file else ""
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"code that {framework_title(log)} ran on the GPU failed{where} ({words}): a bug "
        "in a kernel or in a library's algorithm, or data that a kernel does not check",
        evidence=log.evidence(*lines[:_MOST_LINES], *ends[:_MOST_LINES]),
        remedies=_remedies(log, file, cudnn=bool(soft)),
        confidence="possible" if misused else _confidence(log, words),
        ask="Where does the traceback end with CUDA_LAUNCH_BLOCKING=1, and does the same batch "
        "work on the CPU?",
    )


_NEEDS = late(
    r"out of resources?: (?P<what>shared memory|registers|threads), Required: (?P<needed>\d{1,12})"
    r",[ ,]{0,4}Hardware limit: (?P<limit>\d{1,12})"
)


def _too_large(log: Log, phrase: Match) -> Finding:
    """Triton says how much a kernel needs: no fault of its input, and of no use to a debugger."""
    told = _NEEDS.search(phrase.text)
    amounts = f": {told['needed']} of at most {told['limit']}" if told else ""
    what = told["what"] if told else "resources"
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"a kernel of Triton needs more {what} than a multiprocessor of this GPU has"
        f"{amounts}; it was written for GPUs with more",
        evidence=log.evidence(phrase.line, *gpu_ends_after(log, phrase.line)[:_MOST_LINES]),
        remedies=(
            Remedy(
                "In a kernel of your own, make its blocks (BLOCK_SIZE, BLOCK_M) or num_stages smaller."
            ),
            Remedy(
                "In a kernel of a library, choose another implementation there (another backend "
                "for attention or for the quantized layers), or a newer release, which may have "
                "smaller blocks for this GPU."
            ),
        ),
        confidence="likely",
        ask="Which GPU is it, and which function has the kernel, by the last frames above?",
    )


_TIMED_OUT = ("cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT")


def _too_long(log: Log, lines: list[int]) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        message="a kernel ran longer than the driver allows on a GPU that also drives a display, "
        "and the driver ended it",
        evidence=log.evidence(*lines[:_MOST_LINES], *gpu_ends_after(log, min(lines))[:_MOST_LINES]),
        remedies=(
            Remedy("Give each kernel less work: a smaller batch, or smaller parts of the data."),
            Remedy(
                "Or compute on a GPU without a display. On Windows, the limit is TdrDelay in the "
                "registry; on Linux, it applies only while a desktop runs on that GPU."
            ),
        ),
        confidence="likely",
        ask="Does a display run on that GPU?",
    )


def _library_faults(log: Log) -> tuple[Status, ...]:
    """Errors of cuDNN and cuBLAS that are about neither memory nor versions.

    TensorFlow reserves the memory before cuDNN starts. With TensorFlow even "execution failed"
    mostly means that no memory was left, and cudnn-init-failed-oom reports that.
    """
    if log.says(_RUNNING_GRAPH):
        return log.status_named(*_LIBRARY)
    if is_tensorflow(log) or log.framework == "jax":
        return log.status_named(*_NEVER_ABOUT_MEMORY)
    faults = log.status_named(*_LIBRARY)
    if without_engine(log) is not None or every_engine_failed(log):
        # The status is the reason why an engine was refused.
        faults = tuple(status for status in faults if status.name not in _REFUSALS)
    if _from_before_ampere(log):
        return tuple(status for status in faults if status.name not in _ON_NEW_GPUS)
    return faults


def _from_before_ampere(log: Log) -> bool:
    """Builds from before Ampere print the same errors on every newer GPU."""
    if log.framework not in ("torch", "") or log.says(_SEARCH):
        return False
    python = log.version_of("python")
    return python is not None and python.startswith(_OLD_PYTHONS)


def _confidence(log: Log, words: str) -> Confidence:
    if log.says(_HARDWARE) or (log.says(_NEW_ON_OLD) and log.says(_AMPERE)):
        return "possible"
    unknown_age = log.framework in ("torch", "") and log.version_of("python") is None
    if words in _ON_NEW_GPUS and unknown_age and not log.says(_SEARCH):
        # The same as from a build that is older than the GPU.
        return "possible"
    return "likely"


def _extension(log: Log, lines: list[int]) -> str | None:
    """The source file of a kernel outside the framework, if the error names it."""
    for number in lines[:_MOST_LINES]:
        match = _EXTENSION.search(log.line(number).text)
        if match and not _OWN_FILES.search(match["file"]):
            return match["file"].replace("\\", "/").rpartition("/")[2]
    return None


def _remedies(log: Log, file: str | None, *, cudnn: bool) -> tuple[Remedy, ...]:
    find = Remedy(
        "Make the traceback end at the failing call; then reduce the program to that call.",
        shell_script("CUDA_LAUNCH_BLOCKING=1 python ..."),
    )
    name = Remedy("Print the illegal access.", command_line("compute-sanitizer python ..."))
    if maker_of(log) == "amd":
        serial = shell_script("AMD_SERIALIZE_KERNEL=3 python ...")
        return (
            find._replace(action=serial),
            Remedy("Check the indices and labels of the batch, and try another release."),
        )
    if file:
        return (
            Remedy(
                f"{file} belongs to an extension: let the process see only the GPU that the "
                "tensors are on, and rebuild the extension for the installed framework.",
                shell_script("CUDA_VISIBLE_DEVICES=0 python ..."),
            ),
            find,
            name,
        )
    if cudnn:
        return (
            Remedy(
                "Try without the search for algorithms (torch.backends.cudnn.benchmark = False), "
                "then without cuDNN (torch.backends.cudnn.enabled = False). If that helps, update."
            ),
            find,
        )
    return (
        find,
        name,
        Remedy("Check the indices and labels of the batch, and try the next or previous release."),
    )
