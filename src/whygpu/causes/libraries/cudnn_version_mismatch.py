"""The installed cuDNN has another major release than the framework needs, or is too old.

## Why it happens

A build asks for one major release of cuDNN by name (`libcudnn.so.9`), and needs at least the minor
release it was built with. This fails if the framework was upgraded but the system-wide cuDNN was
not, or if cuDNN is pinned for another framework.

## What it looks like

With another major release the library is not found at all. With an older minor release the GPU is
listed, but the first convolution fails: `Loaded runtime CuDNN library: 8.1.0 but source was
compiled with: 8.6.0. CuDNN library needs to have matching major version and equal or higher minor
version`, or `DNN library is not found`.

## Fix

Install the cuDNN that the framework's release needs, and remove the older copy from
LD_LIBRARY_PATH.

## Fires on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "not-found"
path = ""
chain = ["libcudnn.so.9"]
detail = "libcudnn.so.9: cannot open shared object file: No such file or directory"
[cuda.copies.cudnn]
soname = "libcudnn.so.8"
path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.8"
version = "8.9.7"
origin = "system"
owner = ""
```

The right major release, but the minor release is too old:

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
path = "/opt/cudnn/lib/libcudnn.so.9"
[cuda.copies.cudnn]
path = "/opt/cudnn/lib/libcudnn.so.9"
version = "9.1.0"
origin = "ld-library-path"
owner = ""
```

## Quiet on (machine)

A newer minor release works.

```toml
only = ["tensorflow"]
[cuda.copies.cudnn]
version = "9.27.0"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[cuda.copies.cudnn]
version = {unknown = "libcudnn.so.9: permission denied"}
```

## Fires on (log)

```
E tensorflow/stream_executor/cuda/cuda_dnn.cc:378] Loaded runtime CuDNN library: 7005 (compatibility version 7000) but source was compiled with 7102 (compatibility version 7100).  If using a binary install, upgrade your CuDNN library to match.
F tensorflow/core/kernels/conv_ops.cc:717] Check failed: stream->parent()->GetConvolveAlgorithms(&algorithms)
```

```
E0212 09:00:00.100000  4242 cuda_dnn.cc:465] Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.8.0.  CuDNN library needs to have matching major version and equal or higher minor version.
jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization failed. Look at the errors above for more details.
```

```
RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 3, 2) but found runtime version (8, 0, 5). PyTorch already comes bundled with cuDNN.
```

cuDNN does not start although nearly all of the memory is free:

```
E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:407] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR
E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:411] Memory usage: 23900000000 bytes free, 25300000000 bytes total.
```

```
RuntimeError: You have an old release of CuDNN (or a release candidate) that isn't supported.  Please update to at least v5 version.
```

## Quiet on (log)

```
2022-01-02 10:00:00.100000: I tensorflow/stream_executor/cuda/cuda_dnn.cc:368] Loaded cuDNN version 8302
```

```
E tensorflow/stream_executor/cuda/cuda_dnn.cc:407] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR
E tensorflow/stream_executor/cuda/cuda_dnn.cc:411] Memory usage: 3900000 bytes free, 8300000000 bytes total.
```

## Sources

- <https://www.tensorflow.org/install/source#gpu>
- <https://docs.nvidia.com/deeplearning/cudnn/backend/latest/developer/forward-compatibility.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.framework_builds import cuda_builds, titled
from whygpu.causes.evidence.library_faults import (
    NO_LIBRARY_CONSEQUENCES,
    consequence,
    copies_or_none,
    copy_at,
    effect_on,
    failures,
    is_cudnn,
    libraries_of,
    other_versions,
    to_install,
)
from whygpu.causes.evidence.library_installs import install_remedies, wheels_of
from whygpu.causes.evidence.library_search import (
    dlopen_warning,
    found_through,
    how_found,
    listed,
    requests_seen,
    search_first,
    search_without,
)
from whygpu.causes.evidence.log_cuda_wheels import install_cudnn
from whygpu.causes.evidence.log_cudnn_engines import (
    OTHER_RELEASE,
    WHICH_OF_THEM,
    WHY_REFUSED,
    WITHOUT_CUDNN,
    every_engine_failed,
    of_the_layout,
    without_engine,
)
from whygpu.causes.evidence.log_libraries import Missing, missing_libraries, names, other_cudnn
from whygpu.causes.evidence.log_subjects import (
    ended_after,
    excerpt,
    framework_title,
    is_tensorflow,
    subject_of,
)
from whygpu.causes.evidence.log_unmet_requirements import unmet_requirement
from whygpu.causes.evidence.run_advice import REPAIRED_RUN
from whygpu.model.cause import cause
from whygpu.model.derived import and_list
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.libraries import LibraryCopy, Resolution
from whygpu.model.log import Log, Match
from whygpu.model.observed import Known, Unknown
from whygpu.model.remedy import Install, UnsetVariable
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.model.units import size_text
from whygpu.tables.cudnn_floors import cudnn_floor
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG205",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        *NO_LIBRARY_CONSEQUENCES,
        "cudnn-copy-differs",
        # This finding shows that cuDNN does not lack memory.
        "cudnn-init-failed-oom",
    ),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    copies = copies_or_none(machine)
    for item in failures(machine, "cudnn-version-mismatch"):
        if isinstance(item, Gap):
            yield item
            continue
        framework, failing = item
        there = [copy for failure in failing for copy in other_versions(failure.library, copies)]
        found = and_list([f"{copy.soname} in {copy.path}" for copy in dict.fromkeys(there)])
        yield CAUSE.finding(
            subject=framework.name,
            effect=effect_on(framework),
            message=(
                f"{titled(framework)} needs {listed(failing)}; this machine has another major "
                f"release of cuDNN ({found}); {consequence(framework, failing)}"
            ),
            evidence=(*requests_seen(failing), *dlopen_warning(machine, framework)),
            remedies=install_remedies(machine, framework, to_install(machine, framework)),
        )
    for framework in cuda_builds(machine):
        for request in libraries_of(framework):
            if is_cudnn(request.library) and request.outcome == "loads" and request.path:
                yield from _older(machine, framework, request, copy_at(request.path, copies))


def _older(
    machine: Snapshot, framework: Framework, request: Resolution, copy: LibraryCopy | None
) -> Iterator[Finding | Gap]:
    """Judge the minor release of the copy that loads; silent if the needed one is not on record."""
    floor = _floor(framework)
    if floor is None or copy is None:
        return
    if not isinstance(copy.version, Known):
        reason = copy.version.reason if isinstance(copy.version, Unknown) else copy.version.source
        yield Gap(f"whether {copy.path} is new enough for {titled(framework)}: {reason}")
        return
    loaded, wanted = release_numbers(copy.version.value)[:2], release_numbers(floor)[:2]
    if loaded[:1] == wanted[:1] and loaded < wanted:
        folder = found_through(request)
        yield CAUSE.finding(
            subject=framework.name,
            effect=effect_on(framework),
            message=(
                f"{titled(framework)} needs cuDNN {floor} or newer of the same major release; the "
                f"loader finds {copy.version.value} in {copy.path}"
                + (f", found through {how_found(folder)}" if folder is not None else "")
                + f"; {_outcome(framework)}"
            ),
            evidence=(
                Evidence("machine", copy.path, f"cuDNN {copy.version.value}"),
                Evidence("machine", request.requester, f"needs {request.library}"),
            ),
            remedies=_newer_remedies(machine, framework, request, floor),
            confidence="likely",
        )


def _outcome(framework: Framework) -> str:
    if framework.name == "jax":
        return "JAX then refuses to use the GPU"
    return "operations that use cuDNN fail, convolutions first"


def _floor(framework: Framework) -> str | None:
    """The cuDNN version that a build needs, with its minor number if that is known."""
    cudnn = framework.build.cudnn
    if isinstance(cudnn, Known) and len(release_numbers(cudnn.value)) > 1:
        return cudnn.value
    return cudnn_floor(framework.version) if framework.name == "tensorflow" else None


def _newer_remedies(
    machine: Snapshot, framework: Framework, request: Resolution, floor: str
) -> tuple[Remedy, ...]:
    """A newer copy is on the machine and must be found, or it must be installed."""
    wheels = wheels_of(framework, [request.library])
    without = search_without(machine, (request.path or "").rpartition("/")[0])
    drop = Remedy("Remove the folder of the older copy from LD_LIBRARY_PATH.", without)
    newer = _newer_copy(machine, request.library, wheels, floor)
    if newer is not None:
        folder = newer.path.rpartition("/")[0]
        first = Remedy(f"Make the loader find the newer copy in {folder}.", search_first([folder]))
        return (REPAIRED_RUN, first if without is None else drop)
    install = Remedy(
        f"Install cuDNN {floor} or newer of the same major release.",
        Install((f"{wheels[0]}>={floor},<{release_numbers(floor)[0] + 1}",)) if wheels else None,
    )
    return (install,) if without is None else (install, drop)


def _newer_copy(
    machine: Snapshot, library: str, wheels: Sequence[str], floor: str
) -> LibraryCopy | None:
    """A copy that is new enough; a wheel's only if it is for the CUDA release of the build."""
    return next(
        (
            copy
            for copy in copies_or_none(machine) or ()
            if copy.soname == library
            and isinstance(copy.version, Known)
            and release_numbers(copy.version.value)[:2] >= release_numbers(floor)[:2]
            and (copy.origin != "wheel" or copy.owner.partition(" ")[0] in wheels)
        ),
        None,
    )


_LOADED = late(
    r"(?:Loaded runtime|cu?DNN Runtime|Loaded) (?i:cudnn )?library: (?P<loaded>[\d.]*\d)[^\n]{0,80}?"
    r"source was compiled with:? (?P<built>[\d.]*\d)"
    r"|[cC]uDNN version (?:mismatch|incompatibility): PyTorch was compiled +against \(?"
    r"(?P<torch_built>[\d., ]{1,16})\)? but (?:linked against|found runtime version) \(?"
    r"(?P<torch_loaded>[\d., ]{1,16})"
    r"|Found cuDNN version (?P<jax_loaded>\d{4,6}), but JAX was built against version "
    r"(?P<jax_built>\d{4,6})"
    r"|undefined symbol: cudnn[A-Z]\w{3,80}$"
    r"|Mixed dnn version\. The header is|Outdated cuDNN installation found|CUDNN_STATUS_(?:SUBLIBRARY_)?VERSION_MISMATCH"
    r"|cuDNN compiled \((?P<caffe_built>\d+)\) and runtime \((?P<caffe_loaded>\d+)\) versions mismatch"
    r"|cuDNN (?:is )?mismatched|cudnn version mismatch|[Cc]u?DNN [Vv]ersion is too old\. Update to"
    r"|error: too (?:few|many) arguments (?:to|in) function [^\n]{0,40}\bcudnn\w"
    r"|identifier \"(?:cudnn|CUDNN_)\w{3,60}\" is undefined"
    r"|error: \W(?:cudnn|CUDNN_)\w{3,60}\W{1,2} (?:was not declared|undeclared)"
    r"|libcudnn v\d with header v\d unmatched|You have an old release of CuDNN|CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING"
    r"|cuDNN library version is too old|requires? cuDNN (?:version )?(?:>=?|at least) ?[\d.]+[^\n]{0,40}found",
    re.MULTILINE,
)
_JAX_VERSIONS = late(
    r"Version JAX was built against: (?P<built>\d+)\s{1,20}Minimum supported: (?P<minimum>\d+)"
    r"\s{1,20}Installed version: (?P<loaded>\d+)"
)
_REFUSED = late(
    r"DNN library (?:is not found|initialization failed)|GetConvolveAlgorithms|No algorithm worked"
)
_NO_HANDLE = late(
    r"[Cc]ould not create cudnn handle: CUDNN_STATUS_(?:INTERNAL_ERROR|NOT_INITIALIZED)"
)
_FREE = late(r"Memory usage: (?P<free>\d{1,15}) bytes free, (?P<total>\d{1,15}) bytes total")
_ENOUGH = 0.75
"""A handle needs some hundred MiB. With this share of the memory free, memory is not the cause."""


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statement = log.first(_LOADED)
    if statement is not None:
        yield _mismatch(log, statement)
        return
    unmet = unmet_requirement(log)
    if unmet is not None and unmet.of == "cudnn":
        yield CAUSE.finding(
            subject=subject_of(log),
            message=f"another cuDNN release is needed than the loaded one: {excerpt(unmet.text)}",
            evidence=log.evidence(unmet.line, *ended_after(log, unmet.line)),
            remedies=_log_remedies(log, None),
            confidence="likely",
            ask=_WHICH_COPY,
        )
        return
    missing = missing_libraries(log)
    other = other_cudnn(log, missing) if missing is not None and missing.cudnn else None
    if missing is not None and other is not None:
        yield _other_major(log, missing, other)
        return
    refused = log.first(_NO_HANDLE)
    free = log.first(_FREE)
    if refused is not None and free is not None and _plenty(free):
        yield CAUSE.finding(
            subject=subject_of(log),
            message=(
                f"cuDNN does not start although {size_text(int(free.groups['free'] or 0))} of "
                f"{size_text(int(free.groups['total'] or 0))} of the GPU's memory are free, so "
                "memory is not the cause; most likely the loaded copy does not match the CUDA "
                "libraries or the driver"
            ),
            evidence=log.evidence(refused.line, free.line, *ended_after(log, refused.line)),
            remedies=_log_remedies(log, None),
            confidence="likely",
            ask=_WHICH_COPY,
        )
    elif log.failures:
        refused = without_engine(log)
        if refused is None:
            yield from _perhaps(log)
        elif not every_engine_failed(log):
            # Otherwise it is more often a lack of memory: cudnn-init-failed-oom.
            yield from _no_engine(log, refused)


_WITHOUT_ATTENTION = Remedy(
    "If it is attention (scaled_dot_product_attention), use another of PyTorch's implementations: "
    "torch.backends.cuda.enable_cudnn_sdp(False)."
)
_MAY_BE_ATTENTION = late(r"cudnn_frontend|execution plans")


def _no_engine(log: Log, statement: Match) -> Iterator[Finding]:
    """cuDNN has no kernel for an operation: for its type and shape on this GPU, in this release."""
    if is_tensorflow(log) or log.framework == "jax":
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message="cuDNN has no way to compute an operation of the program on this GPU: for its data "
        "type and shape, for this GPU in this release of cuDNN, or with the memory that is left",
        evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
        remedies=(
            *of_the_layout(log),
            WHY_REFUSED,
            *((_WITHOUT_ATTENTION,) if log.says(_MAY_BE_ATTENTION) else ()),
            WITHOUT_CUDNN,
            OTHER_RELEASE,
        ),
        confidence="possible",
        ask=f"{WHICH_OF_THEM} {_WHICH_COPY}",
    )


_WHICH_COPY = "Which copy is loaded? `LD_DEBUG=libs python ... 2>&1 | grep 'calling init.*cudnn'`"
_NOT_STARTED = ("CUDNN_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_INTERNAL_ERROR")
_SAYS_WHY = late(
    r"[Oo]ut of memory|OUT_OF_MEMORY|ALLOC_FAILED|device-side assert|illegal memory access"
    r"|no kernel image|CUBLAS_STATUS|ran out of memory"
)
"""Another message names the reason, or shows that cuDNN is not the only one that fails."""


def _perhaps(log: Log) -> Iterator[Finding]:
    """cuDNN says only that it did not start: for want of memory, or as the wrong copy.

    TensorFlow and JAX reserve the memory before cuDNN starts, and then it is nearly always memory.
    """
    if is_tensorflow(log) or log.framework == "jax":
        return
    statuses = log.status_named(*_NOT_STARTED)
    if not statuses or log.says(_SAYS_WHY) or missing_libraries(log) is not None:
        return
    lines = [status.line for status in statuses]
    yield CAUSE.finding(
        subject=subject_of(log),
        message="cuDNN may not start because the loaded copy does not fit this build, its CUDA "
        "libraries or the driver",
        evidence=log.evidence(*lines, *ended_after(log, lines[0])),
        remedies=_log_remedies(log, None),
        confidence="possible",
        ask="Is most of the GPU's memory free when it fails (`nvidia-smi`)? If so, memory is not "
        f"the reason. {_WHICH_COPY}",
    )


def _other_major(log: Log, missing: Missing, other: Match) -> Finding:
    major = missing.cudnn[0].version.partition(".")[0]
    return CAUSE.finding(
        subject=subject_of(log),
        effect=missing.effect,
        severity=missing.severity if log.failures else "error",
        message=f"{missing.needed_by} needs {names(missing.cudnn)}; the installed cuDNN has "
        f"another major release ({other.groups['library']})",
        evidence=log.evidence(*missing.lines, other.line, *ended_after(log, missing.cudnn[0].line)),
        remedies=_log_remedies(log, f"{major}.0" if major else None),
        confidence="likely",
    )


def _plenty(free: Match) -> bool:
    total = int(free.groups["total"] or 0)
    return total > 0 and int(free.groups["free"] or 0) / total >= _ENOUGH


def _mismatch(log: Log, statement: Match) -> Finding:
    groups = statement.groups
    jax = log.first(_JAX_VERSIONS)
    makers = ("", "torch_", "caffe_", "jax_")
    loaded = next((groups[f"{by}loaded"] for by in makers if groups[f"{by}loaded"]), None)
    built = next((groups[f"{by}built"] for by in makers if groups[f"{by}built"]), None)
    if jax is not None:
        loaded, built = jax.groups["loaded"], jax.groups["minimum"]
    versions = (
        _compared(_dotted(loaded), _dotted(built))
        if loaded and built
        else "the loaded cuDNN does not match the build"
    )
    return CAUSE.finding(
        subject=subject_of(log),
        effect="broken" if log.failures else None,
        message=f"{framework_title(log)}: {versions}",
        evidence=log.evidence(
            statement.line,
            *(match.line for match in log.find(_LOADED)),
            *(match.line for match in log.find(_REFUSED)),
            *ended_after(log, statement.line),
        ),
        remedies=_log_remedies(log, _dotted(built) if built else None),
    )


def _compared(loaded: str, built: str) -> str:
    there, wanted = release_numbers(loaded), release_numbers(built)
    if there[:1] == wanted[:1] and there >= wanted:
        # Builds of 2017 and earlier accept only their own minor release.
        return f"cuDNN {loaded} is loaded, but the build accepts only {built} and its patches"
    return (
        f"cuDNN {loaded} is loaded, but the build needs {built} or newer of the same major release"
    )


def _dotted(version: str) -> str:
    """7102 is 7.1.2, 90100 is 9.1.0, (8, 3, 2) is 8.3.2."""
    text = version.strip(" .,")
    if "," in text:
        return ".".join(part.strip() for part in text.split(","))
    if text.isdecimal() and len(text) == 4:
        return f"{text[0]}.{int(text[1])}.{int(text[2:])}"
    if text.isdecimal() and len(text) == 5:
        return f"{text[0]}.{int(text[1:3])}.{int(text[3:])}"
    return text


def _log_remedies(log: Log, built: str | None) -> tuple[Remedy, ...]:
    major, _, rest = (built or "").partition(".")
    minor = rest.partition(".")[0]
    if major in ("8", "9") and log.platform != "windows":
        versions = f">={major}.{minor},<{int(major) + 1}"
        install = install_cudnn(log, f"Install cuDNN {major}.{minor} or newer.", major, versions)
    else:
        install = Remedy(
            f"Install cuDNN {built} (the major number must be the same)."
            if built
            else "Install the cuDNN that the framework's release was built for."
        )
    path = Remedy(
        "Check that no other copy is found first: LD_LIBRARY_PATH is searched before the wheels.",
        UnsetVariable(("LD_LIBRARY_PATH",)),
    )
    return (install, path) if log.platform != "windows" else (install,)
