"""The file that the loader finds first for a library is damaged or for another processor.

## Why it happens

An interrupted download or a full disk leaves an empty or truncated file, a copy over a network
share turns links into text files, or an image for another processor was unpacked. The loader stops
at the first file with the right name. A damaged copy is therefore worse than no copy: intact copies
in later folders are not tried.

## What it looks like

`libcudnn.so.9: file too short` or `invalid ELF header`, if the framework prints the loader's
message. TensorFlow prints only `Cannot dlopen some GPU libraries`.

## Fix

Install the package that owns the file again. If no package owns it, delete the file.

## Fires on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "broken-file"
chain = ["libcudnn.so.9"]
detail = "~/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9: file too short"
```

## Quiet on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcusolver.so.11"]
outcome = "not-found"
chain = ["libcusolver.so.11"]
```

## Cannot tell on (machine)

```toml
only = ["torch"]
[target.frameworks.torch]
libraries = {unknown = "libtorch_cuda.so: permission denied"}
```

## Fires on (log)

```
ImportError: /usr/local/cuda/lib64/libcudnn.so.7: file too short
```

```
2021-03-02 10:11:12.100200: W tensorflow/stream_executor/platform/default/dso_loader.cc:60] Could not load dynamic library 'libcublas.so.11'; dlerror: /usr/lib/libcublas.so.11: invalid ELF header
2021-03-02 10:11:13.100200: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1757] Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed properly if you would like to use GPU.
```

## Quiet on (log)

```
ImportError: /home/me/project/native/libgeometry.so: invalid ELF header
```

## Sources

- <https://man7.org/linux/man-pages/man8/ld.so.8.html>
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.framework_installs import again
from whygpu.causes.evidence.library_faults import (
    Failure,
    consequence,
    copies_or_none,
    copy_at,
    effect_on,
    failures,
    import_fails,
    usable_copies,
)
from whygpu.causes.evidence.library_installs import install_remedies, reinstall
from whygpu.causes.evidence.library_search import (
    dlopen_warning,
    listed,
    requests_seen,
    search_without,
)
from whygpu.causes.evidence.log_libraries import NO_DLOPEN, cudnn_unusable
from whygpu.causes.evidence.log_subjects import ended_after, framework_title, subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import display_name
from whygpu.model.finding import Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.libraries import Resolution
from whygpu.model.log import LibraryEvent, Log, Match
from whygpu.model.remedy import (
    Action,
    InstallFramework,
    PlannedFramework,
    a_name,
    a_path,
    command_line,
    shell_script,
)
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.cuda_libraries import is_cuda_library

CAUSE = cause(
    "WG207",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    # The loader crashes on a file that is shorter than its own tables say.
    explains=(
        "gpu-unused",
        "gpu-index-unchecked",
        "keras-backend-without-gpu",
        "framework-import-fails",
        "framework-crashes",
    ),
)

_DISK = command_line("df", "-h", ".")
_UNFIT = "not a library for this processor"


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for item in failures(machine, "library-file-broken"):
        if isinstance(item, Gap):
            yield item
            continue
        framework, failing = item
        imported = not import_fails(machine, framework)
        files = "; ".join(_fault(failure) for failure in failing)
        yield CAUSE.finding(
            subject=framework.name,
            effect=effect_on(framework) if imported else "broken",
            message=(
                f"{titled(framework)} cannot load {listed(failing)}: {files}; "
                f"{_result(framework, failing, imported)}"
            ),
            evidence=requests_seen(failing) + dlopen_warning(machine, framework),
            remedies=tuple(
                remedy for failure in failing for remedy in _remedies(machine, framework, failure)
            ),
        )


def _fault(failure: Failure) -> str:
    path = _broken_path(failure)
    # If the loader skips a file, its message says only that it found none.
    for copy in failure.first.other_copies:
        if copy.path == path and not copy.usable:
            return f"{path}: {copy.reason}"
    detail = failure.first.detail
    if path in detail:
        return detail
    return f"{path}: {detail.rpartition(f'/{failure.library}: ')[2] or _UNFIT}"


def _result(framework: Framework, failing: Sequence[Failure], imported: bool) -> str:
    """The consequence: the loader stops its search at a damaged file, or crashes on it."""
    if not imported:
        return f"{display_name(framework.name)} cannot be imported"
    if any("SIGBUS" in failure.first.detail for failure in failing):
        return f"{display_name(framework.name)} crashes when it looks for a GPU"
    stops = any(failure.first.outcome == "broken-file" for failure in failing)
    search = "the loader does not try another copy, and " if stops else ""
    return search + consequence(framework, failing)


def _broken_path(failure: Failure) -> str:
    request: Resolution = failure.first
    for folder in request.searched:
        if folder.result in ("broken", "other-architecture"):
            return posixpath.join(folder.path, failure.library)
    return request.path or failure.library


def _remedies(machine: Snapshot, framework: Framework, failure: Failure) -> tuple[Remedy, ...]:
    path = posixpath.normpath(_broken_path(failure))
    if path.startswith(f"{framework.location}/"):
        return _of_the_framework(framework)
    copy = copy_at(path, copies_or_none(machine))
    if copy is not None and copy.origin == "wheel" and " " in copy.owner:
        name, _, version = copy.owner.partition(" ")
        text = f"Install {name} again: it owns the damaged file."
        return (Remedy(text, reinstall([f"{name}=={version}"])),)
    if "/nvidia/" in path:
        return install_remedies(machine, framework, [failure.library])
    rename = Remedy(
        "Rename the damaged file; the loader then tries the next copy.",
        command_line("mv", a_path(path), a_path(f"{path}.broken")),
    )
    folder = posixpath.dirname(path)
    drop = search_without(machine, folder)
    copies = usable_copies(failure.first, framework, copies_or_none(machine))
    intact = [found for found in copies if posixpath.dirname(found) != folder]
    if drop is None or not intact:
        return (rename,)
    text = f"Remove {folder} from LD_LIBRARY_PATH: {intact[0]} is intact and would be found."
    return (Remedy(text, drop), rename)


def _of_the_framework(framework: Framework) -> tuple[Remedy, ...]:
    """Another copy of a framework's own file does not exist."""
    same = again(framework)._replace(options=("force-reinstall", "no-deps"))
    return (
        Remedy("Check that the disk is not full, which cuts files off.", _DISK),
        Remedy(f"Install {titled(framework)} again: the file is its own.", same),
    )


_OF_THE_DRIVER = ("cuda", "nvidia-ml", "nvidia-ptxjitcompiler")
"""If one of these is empty, the driver's library was not mounted into the container."""
_OF_A_PACKAGE = late(r"[/\\\\](?:site|dist)-packages[/\\\\](?P<package>\w{1,40})[/\\\\]")
_INSTALLED_AS: dict[str, PlannedFramework] = {"torch": "torch", "tensorflow": "tensorflow"}
_AGAIN = Remedy(
    "Install the package that owns it again: the file is truncated, or a link was copied as text."
)
_OF_FRAMEWORKS = ("tensorflow", "torch", "jaxlib", "onnxruntime", "cupy")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    broken = [
        event
        for event in log.library_events("broken")
        if (is_cuda_library(event.library) and event.component not in _OF_THE_DRIVER)
        or any(f"/{name}/" in log.line(event.line).text for name in _OF_FRAMEWORKS)
    ]
    unusable = cudnn_unusable(log)
    if not broken and unusable is not None and not log.library_events("not-found"):
        yield _perhaps_cudnn(log, unusable)
    if not broken:
        return
    stops = any(event.stops for event in broken)
    yield CAUSE.finding(
        subject=subject_of(log),
        effect="broken" if stops else None,
        message=(
            f"the file {broken[0].library} exists, but the loader cannot use it "
            f"({broken[0].detail}); {framework_title(log)} continues without it or does not start"
        ),
        evidence=log.evidence(
            *(event.line for event in broken),
            *(match.line for match in log.find(NO_DLOPEN)),
            *(ended_after(log, broken[0].line) if stops else ()),
        ),
        remedies=_remedies_of_log(log, broken[0]),
    )


def _remedies_of_log(log: Log, broken: LibraryEvent) -> tuple[Remedy, ...]:
    found = _OF_A_PACKAGE.search(log.line(broken.line).text)
    if found is None:
        return (
            Remedy(
                "Check what kind of file it is.",
                shell_script(
                    "file -L $(ldconfig -p | grep -m1 -o '/.*", a_name(broken.library), "')"
                ),
            ),
            _AGAIN,
        )
    framework = _INSTALLED_AS.get(found["package"])
    version = log.version_of(found["package"])
    again = f"Install {framework} again, in the same release." if framework else _AGAIN.text
    return (
        Remedy("Check that the disk is not full, which cuts files off.", _DISK)
        if log.platform != "windows"
        else Remedy("Check that the disk is not full, which cuts files off."),
        Remedy(again, _same_release(framework, version)),
    )


def _same_release(framework: PlannedFramework | None, version: str | None) -> Action | None:
    """Without the installed release, a command would install another one."""
    if framework is None or version is None:
        return None
    return InstallFramework(framework, version, options=("force-reinstall", "no-deps"))


def _perhaps_cudnn(log: Log, statement: Match) -> Finding:
    """A log does not show whether a library is missing or its file is damaged."""
    return CAUSE.finding(
        subject=subject_of(log),
        message="a cuDNN file could not be loaded; it may exist but be damaged",
        evidence=log.evidence(statement.line, *(match.line for match in log.find(NO_DLOPEN))),
        remedies=(
            Remedy(
                "Check which file is found, and whether it is intact.", command_line("whygpu check")
            ),
            Remedy("Install the package that owns it again."),
        ),
        confidence="possible",
        ask="What does `whygpu check` report for libcudnn in that environment: missing or damaged?",
    )
