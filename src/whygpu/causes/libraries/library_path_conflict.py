"""A CUDA library is installed, but the loader does not find it, or takes a copy that does not fit.

## Why it happens

The loader does not search a disk. For a library that a file asks for it goes through the RPATH of
that file, LD_LIBRARY_PATH, the file's RUNPATH, its own cache and the default folders, and stops at
the first file of the right name.

- A wheel's folder is on none of these lists. The packages `tensorflow[and-cuda]` 2.21.0 and 2.16.1
  were published like that: the RUNPATH of TensorFlow 2.21.0 names the folders of its CUDA wheels
  one by one, and `nvidia/cusolver/lib` is not among them. Freshly installed, it uses no GPU.
- LD_LIBRARY_PATH puts a toolkit's older copy before the wheel's: the libraries of two releases are
  mixed, and one misses a function in the other.
- The folder `stubs` of a CUDA toolkit comes before the driver's. Its `libcuda.so` serves linking
  only and does nothing.

## What it looks like

TensorFlow prints `Cannot dlopen some GPU libraries. Please make sure the missing libraries
mentioned above are installed properly`, with nothing mentioned above, and runs on the CPU. With
`TF_CPP_VMODULE=dso_loader=1` it names the library. A mixed set shows as `undefined symbol:
cublasSetEnvironmentMode, version libcublas.so.12`.

## Fix

Put the right folder at the head of LD_LIBRARY_PATH, link the library into a folder that is
searched, take the wrong folder off LD_LIBRARY_PATH, or install a release without the defect.

## Fires on (machine)

TensorFlow 2.21.0 as it comes from the package index:

```toml
only = ["tensorflow"]
probes_left_out = "example"
[target.frameworks.tensorflow]
version = "2.21.0"
[target.frameworks.tensorflow.libraries."libcusolver.so.11"]
outcome = "not-found"
chain = ["libcusolver.so.11"]
detail = "libcusolver.so.11: cannot open shared object file: No such file or directory"
searched = [
    {path = "~/venv/lib/python3.11/site-packages/nvidia/cublas/lib", kind = "runpath"},
    {path = "~/venv/lib/python3.11/site-packages/nvidia/cusparse/lib", kind = "runpath"},
    {path = "/etc/ld.so.cache", kind = "cache"},
]
[target.frameworks.tensorflow.libraries."libcusolver.so.11".other_copies]
"~/venv/lib/python3.11/site-packages/nvidia/cusolver/lib/libcusolver.so.11" = {}
```

A toolkit's stub in the driver's place:

```toml
[driver.cuda_library]
path = "/usr/local/cuda/lib64/stubs/libcuda.so.1"
kind = "toolkit-stub"
```

## Quiet on (machine)

The library is nowhere at all: that is another cause.

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcusolver.so.11"]
outcome = "not-found"
chain = ["libcusolver.so.11"]
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow]
libraries = {unknown = "libtensorflow_framework.so.2: permission denied"}
```

## Fires on (log)

An older copy of the system comes before the one of the wheels:

```
ImportError: /opt/venv/lib/python3.11/site-packages/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12
```

The toolkit's stub is taken for the driver:

```
CudaSupportError: Error at driver init:
Call to cuInit results in CUDA_ERROR_STUB_LIBRARY (34)
```

Parts of two cuDNN releases meet in one process:

```
Could not load library libcudnn_cnn_train.so.8. Error: /usr/local/cuda/lib64/libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn5infer22queryClusterPropertiesERPhS3_, version libcudnn_cnn_infer.so.8
```

```
/usr/bin/ld: cannot find -lcuda: No such file or directory
collect2: error: ld returned 1 exit status
subprocess.CalledProcessError: Command '['/usr/bin/gcc', 'main.c', '-shared', '-lcuda']' returned non-zero exit status 1.
```

## Quiet on (log)

A name that an extension of one's own misses is no matter of folders.

```
ImportError: /home/me/project/build/my_ops.so: undefined symbol: _ZN7my_team6kernelEv
```

## Sources

- <https://man7.org/linux/man-pages/man8/ld.so.8.html>
- <https://github.com/tensorflow/tensorflow/pull/112973>
- <https://github.com/tensorflow/tensorflow/issues/63362>
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.framework_installs import gpu_build_of
from whygpu.causes.evidence.library_faults import (
    Failure,
    base_name,
    consequence,
    copies_or_none,
    effect_on,
    failures,
    libraries_of,
    usable_copies,
)
from whygpu.causes.evidence.library_installs import install_remedies
from whygpu.causes.evidence.library_search import (
    dlopen_warning,
    found_through,
    how_found,
    listed,
    requests_seen,
    search_first,
    search_without,
)
from whygpu.causes.evidence.log_library_conflicts import conflict_in
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import and_list, nvidia_gpu
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy
from whygpu.model.libraries import Resolution
from whygpu.model.log import Log
from whygpu.model.observed import Known, need
from whygpu.model.remedy import LinkFile, UnsetVariable, command_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.release_defects import SearchListDefect, search_list_defect

CAUSE = cause(
    "WG203",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        "cuda-init-failed",
        "device-placement-nonexistent",
        "gpu-unused",
        "gpu-index-unchecked",
        "keras-backend-without-gpu",
        "framework-import-fails",
    ),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    yield from _stub_driver(machine)
    for item in failures(machine, "library-path-conflict"):
        if isinstance(item, Gap):
            yield item
            continue
        framework, failing = item
        unfound = [f for f in failing if f.first.outcome in ("not-found", "dependency-missing")]
        mixed = [f for f in failing if f not in unfound]
        if unfound:
            yield _not_searched(machine, framework, unfound)
        if mixed:
            yield _mixed_set(machine, framework, mixed)


def _not_searched(machine: Snapshot, framework: Framework, failing: Sequence[Failure]) -> Finding:
    """The library is there, in a folder that is on no search list of the file that asks."""
    paths = _copies(machine, framework, failing)
    folders = list(dict.fromkeys(posixpath.dirname(path) for path in paths))
    defect = _defect(framework, failing)
    it, is_there = ("it", "it is") if len(failing) == 1 else ("them", "they are")
    message = (
        f"{titled(framework)} needs {listed(failing)}; {is_there} installed, in "
        f"{and_list(folders)}, but the loader does not look there when {_asking(failing)} asks "
        f"for {it}"
    )
    if defect is not None:
        message += f" (a defect of {framework.version} as published: its RUNPATH lacks that folder)"
    return CAUSE.finding(
        subject=framework.name,
        effect=effect_on(framework),
        message=f"{message}; {consequence(framework, failing)}",
        evidence=(
            *requests_seen(failing),
            *(Evidence("machine", path, _why_not_used(failing, path)) for path in paths),
            *dlopen_warning(machine, framework),
        ),
        remedies=_search_remedies(framework, failing, paths, defect),
    )


def _copies(machine: Snapshot, framework: Framework, failing: Sequence[Failure]) -> tuple[str, ...]:
    """The first usable copy of each library."""
    copies = copies_or_none(machine)
    return tuple(usable_copies(failure.first, framework, copies)[0] for failure in failing)


def _asking(failing: Sequence[Failure]) -> str:
    """The files on whose behalf the loader searched: the requester, or what it loads."""
    names = (
        posixpath.basename(
            failure.first.chain[-2] if len(failure.first.chain) > 1 else failure.first.requester
        )
        for failure in failing
    )
    return and_list(list(dict.fromkeys(names)))


def _why_not_used(failing: Sequence[Failure], path: str) -> str:
    for failure in failing:
        for other in failure.first.other_copies:
            if other.path == path:
                return f"a copy that is not used: {other.reason}"
    return "a copy that is not used: its folder was not searched"


def _defect(framework: Framework, failing: Sequence[Failure]) -> SearchListDefect | None:
    """The known defect of this release, if it is what fails here."""
    row = search_list_defect(framework.name, framework.version)
    if row is None or not all(base_name(failure.library) in row.libraries for failure in failing):
        return None
    return row


def _search_remedies(
    framework: Framework,
    failing: Sequence[Failure],
    paths: Sequence[str],
    defect: SearchListDefect | None,
) -> tuple[Remedy, ...]:
    unlinked = [
        (failure.library, path)
        for failure, path in zip(failing, paths, strict=True)
        if posixpath.basename(path) != failure.library
    ]
    remedies = [
        Remedy(
            f"Give the file the name that is asked for, {library}.",
            LinkFile((posixpath.basename(path),), posixpath.dirname(path), library),
        )
        for library, path in unlinked
    ]
    folders = [posixpath.dirname(path) for path in paths]
    what = "folder" if len(set(folders)) == 1 else "folders"
    remedies.append(
        Remedy(
            f"Add the {what} to the loader's search list before starting Python.",
            search_first(folders),
        )
    )
    target = _searched_neighbour(framework, failing[0].first, paths[0])
    if target is not None and not unlinked:
        remedies.append(
            Remedy(
                "Or mend this environment for good: link it into a folder that is searched.",
                LinkFile(tuple(paths), target),
            )
        )
    if defect is not None:
        remedies.append(
            Remedy(
                "Or install a release that does not have this defect.",
                gpu_build_of(framework),
            )
        )
    return tuple(remedies)


def _searched_neighbour(framework: Framework, request: Resolution, copy: str) -> str | None:
    """A folder of the same wheels that was searched and from which another library loads.

    It lies as deep as the copy's own folder, so that what a linked library looks for beside itself
    is still there.
    """
    searched = {folder.path for folder in request.searched}
    depth = copy.count("/")
    root = copy.partition("/nvidia/")[0]
    for other in libraries_of(framework):
        folder = posixpath.dirname(other.path or "")
        if (
            other.outcome == "loads"
            and folder in searched
            and (other.path or "").count("/") == depth
            and "/nvidia/" in folder
            and folder.partition("/nvidia/")[0] == root
        ):
            return folder
    return None


def _mixed_set(machine: Snapshot, framework: Framework, failing: Sequence[Failure]) -> Finding:
    """Each library is found, but one misses in another what its own release would have."""
    words = "; ".join(dict.fromkeys(failure.first.detail for failure in failing))
    origins = [(failure.library, found_through(failure.first)) for failure in failing]
    taken = "".join(
        f"; {library} is the copy found through {how_found(folder)}"
        for library, folder in dict(origins).items()
        if folder is not None
    )
    return CAUSE.finding(
        subject=framework.name,
        effect=effect_on(framework),
        message=(
            f"{titled(framework)} is given CUDA libraries that do not belong together: "
            f"{words}{taken}; {consequence(framework, failing)}"
        ),
        evidence=(*requests_seen(failing), *dlopen_warning(machine, framework)),
        remedies=_unmix_remedies(machine, framework, failing),
    )


def _unmix_remedies(
    machine: Snapshot, framework: Framework, failing: Sequence[Failure]
) -> tuple[Remedy, ...]:
    for failure in failing:
        folder = found_through(failure.first)
        if folder is not None and folder.kind == "ld-library-path":
            action = search_without(machine, folder.path) or UnsetVariable(("LD_LIBRARY_PATH",))
            text = (
                f"Take {folder.path} off LD_LIBRARY_PATH, so that {failure.library} comes from "
                "where the others do."
            )
            return (Remedy(text, action),)
    return install_remedies(machine, framework, [failure.library for failure in failing]) or (
        Remedy("Install all CUDA libraries of this framework from one release."),
    )


def _stub_driver(machine: Snapshot) -> Iterator[Finding]:
    library = machine.driver.cuda_library
    if not isinstance(library, Known) or library.value.kind != "toolkit-stub":
        return
    folder = posixpath.dirname(library.value.path)
    action = search_without(machine, folder)
    yield CAUSE.finding(
        subject=MACHINE,
        message=(
            f"The loader takes {library.value.path} for the driver's libcuda.so.1; that is the "
            "CUDA toolkit's stub, which serves linking only and reaches no GPU"
        ),
        evidence=(Evidence("machine", library.source, f"libcuda.so.1 is {library.value.path}"),),
        remedies=(
            Remedy("Take the stubs folder off LD_LIBRARY_PATH.", action)
            if action is not None
            else Remedy(
                f"Take {folder} off the loader's lists (/etc/ld.so.conf.d), then renew its cache.",
                command_line("sudo ldconfig"),
            ),
        ),
    )


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    conflict = conflict_in(log)
    if conflict is not None:
        yield CAUSE.finding(
            subject=subject_of(log),
            message=conflict.message,
            evidence=log.evidence(*conflict.lines),
            remedies=conflict.remedies,
            confidence=conflict.confidence,
            severity=conflict.severity,
            effect=conflict.effect,
            ask=conflict.ask,
        )
