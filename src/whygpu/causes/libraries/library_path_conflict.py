"""A CUDA library is installed, but the loader does not find it, or finds one that does not match.

## Why it happens

The loader does not search the whole disk. For a library that a file needs, it searches the RPATH of
that file, LD_LIBRARY_PATH, the RUNPATH of the file, the loader's cache and the default folders. It
stops at the first file with the right name.

- The folder of a wheel is in none of these places. The packages `tensorflow[and-cuda]` 2.21.0 and
  2.16.1 were published with this defect: the RUNPATH of TensorFlow 2.21.0 lists the folders of its
  CUDA wheels, but not `nvidia/cusolver/lib`. A fresh installation does not use the GPU.
- LD_LIBRARY_PATH puts an older copy from a toolkit before the copy from the wheel. Libraries of two
  releases are then mixed, and one lacks a function that another needs.
- The `stubs` folder of a CUDA toolkit comes before the driver's folder. Its `libcuda.so` is only
  for linking and does nothing.

## What it looks like

TensorFlow prints `Cannot dlopen some GPU libraries. Please make sure the missing libraries
mentioned above are installed properly`, mentions no library above, and runs on the CPU. With
`TF_CPP_VMODULE=dso_loader=1` it names the library. Mixed releases fail with `undefined symbol:
cublasSetEnvironmentMode, version libcublas.so.12`.

## Fix

Put the right folder first in LD_LIBRARY_PATH, link the library into a folder that is searched,
remove the wrong folder from LD_LIBRARY_PATH, or install a release without the defect.

## Fires on (machine)

TensorFlow 2.21.0 from the package index:

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

A toolkit's stub is found instead of the driver's library:

```toml
[driver.cuda_library]
path = "/usr/local/cuda/lib64/stubs/libcuda.so.1"
kind = "toolkit-stub"
```

## Quiet on (machine)

If the library is not installed at all, another cause reports it.

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

An older copy of the system is found before the copy of the wheels:

```
ImportError: /opt/venv/lib/python3.11/site-packages/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12
```

The toolkit's stub is loaded instead of the driver's library:

```
CudaSupportError: Error at driver init:
Call to cuInit results in CUDA_ERROR_STUB_LIBRARY (34)
```

Parts of two cuDNN releases are loaded into one process:

```
Could not load library libcudnn_cnn_train.so.8. Error: /usr/local/cuda/lib64/libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn5infer22queryClusterPropertiesERPhS3_, version libcudnn_cnn_infer.so.8
```

```
/usr/bin/ld: cannot find -lcuda: No such file or directory
collect2: error: ld returned 1 exit status
subprocess.CalledProcessError: Command '['/usr/bin/gcc', 'main.c', '-shared', '-lcuda']' returned non-zero exit status 1.
```

## Quiet on (log)

A symbol that is missing in a user's own extension is not a question of folders.

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
    NO_LIBRARY_CONSEQUENCES,
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
from whygpu.causes.evidence.run_advice import REPAIRED_RUN
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
    explains=(*NO_LIBRARY_CONSEQUENCES, "cuda-init-failed"),
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
    """The library is installed, but in a folder that the loader does not search for this file."""
    paths = _copies(machine, framework, failing)
    folders = list(dict.fromkeys(posixpath.dirname(path) for path in paths))
    defect = _defect(framework, failing)
    it, is_there = ("it", "it is") if len(failing) == 1 else ("them", "they are")
    message = (
        f"{titled(framework)} needs {listed(failing)}; {is_there} installed in "
        f"{and_list(folders)}, but the loader does not search there when {_asking(failing)} needs "
        f"{it}"
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
    """The files that need the library: the requester, or a library that it loads."""
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
    """The known defect of this release, if it explains every failure here."""
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
            f"Link the file under the name that is needed, {library}.",
            LinkFile((posixpath.basename(path),), posixpath.dirname(path), library),
        )
        for library, path in unlinked
    ]
    if not unlinked:
        remedies.append(REPAIRED_RUN)
    folders = [posixpath.dirname(path) for path in paths]
    what = "folder" if len(set(folders)) == 1 else "folders"
    remedies.append(
        Remedy(
            f"Add the {what} to the loader's search path before starting Python.",
            search_first(folders),
        )
    )
    target = _searched_neighbour(framework, failing[0].first, paths[0])
    if target is not None and not unlinked:
        remedies.append(
            Remedy(
                "Or repair this environment permanently: link it into a folder that is searched.",
                LinkFile(tuple(paths), target),
            )
        )
    if defect is not None:
        remedies.append(
            Remedy(
                "Or install a release without this defect.",
                gpu_build_of(framework),
            )
        )
    return tuple(remedies)


def _searched_neighbour(framework: Framework, request: Resolution, copy: str) -> str | None:
    """A searched folder of the same wheels, from which another library loads.

    It is as deep as the copy's own folder, so that the linked library still finds the files that
    it looks up relative to itself.
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
    """Every library is found, but one lacks a symbol that another release would have."""
    words = "; ".join(dict.fromkeys(failure.first.detail for failure in failing))
    origins = [(failure.library, found_through(failure.first)) for failure in failing]
    taken = "".join(
        f"; {library} was found through {how_found(folder)}"
        for library, folder in dict(origins).items()
        if folder is not None
    )
    return CAUSE.finding(
        subject=framework.name,
        effect=effect_on(framework),
        message=(
            f"{titled(framework)} loads CUDA libraries of different releases: "
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
                f"Remove {folder.path} from LD_LIBRARY_PATH, so that {failure.library} is loaded "
                "from the same place as the others."
            )
            return (REPAIRED_RUN, Remedy(text, action))
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
            f"The loader finds {library.value.path} instead of the driver's libcuda.so.1; this is "
            "the CUDA toolkit's stub, which is only for linking and cannot use a GPU"
        ),
        evidence=(Evidence("machine", library.source, f"libcuda.so.1 is {library.value.path}"),),
        remedies=(
            Remedy("Remove the stubs folder from LD_LIBRARY_PATH.", action)
            if action is not None
            else Remedy(
                f"Remove {folder} from /etc/ld.so.conf.d, then update the loader's cache.",
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
