"""A wrong copy of a library in a log: mixed releases, a stub, a folder that is not searched."""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.causes.evidence.cuda_start_suspects import suspected
from whygpu.causes.evidence.log_libraries import (
    NO_DLOPEN,
    known_defect,
    missing_libraries,
    names,
    partly_there,
    which_question,
)
from whygpu.causes.evidence.log_subjects import ended_after, framework_title
from whygpu.causes.evidence.run_advice import REPAIRED_RUN
from whygpu.model.derived import and_list
from whygpu.model.finding import Confidence, Effect, Remedy, Severity
from whygpu.model.lazy_regex import late
from whygpu.model.log import LibraryEvent, Log, Match, Status
from whygpu.model.remedy import PYTHON, UnsetVariable, command_line, shell_script
from whygpu.tables.cuda_libraries import is_cuda_library

_TWO_FRAMEWORKS = late(
    r"Inconsistency detected by ld\.so|cannot allocate memory in static TLS block"
    r"|cannot load any more object with static TLS"
)
_SYMBOL_OF_CUDA = late(
    r"undefined symbol: (?:iJIT_Notify|nccl|cuda|cublas|cusparse|cusolver|(?:__)?nvJitLink)"
    r"[A-Z_]\w"
)
_NO_LINK_NAME = late(r"ld: cannot find -lcuda(?::|$)|libcuda\.so cannot found!", re.MULTILINE)
"""Triton links against libcuda.so, but a driver alone installs only libcuda.so.1."""
_OF_TORCH = late(r"lib(?:torch|c10)(?:_(?!cuda_c)\w{1,20})?\.so: cannot open shared object file")
_STUBS = ("CUDA_ERROR_STUB_LIBRARY", "cudaErrorStubLibrary")
_WHEELS_FIRST = shell_script(
    "export LD_LIBRARY_PATH=$(",
    PYTHON,
    ' -c \'import nvidia, glob; print(":".join(glob.glob(nvidia.__path__[0] + "/*/lib")))\')',
)


class Conflict(NamedTuple):
    message: str
    lines: tuple[int, ...]
    """All lines that it explains, including the end of the program."""
    remedies: tuple[Remedy, ...]
    confidence: Confidence
    severity: Severity = "error"
    effect: Effect | None = None
    ask: str | None = None


def conflict_in(log: Log) -> Conflict | None:
    mixed = [
        event
        for event in log.library_events("wrong-symbols")
        if is_cuda_library(event.library) or _SYMBOL_OF_CUDA.search(event.detail)
    ]
    if mixed:
        return _mixed(log, mixed)
    stubs = log.status_named(*_STUBS)
    if stubs:
        return _stub(log, stubs)
    clash = log.first(_TWO_FRAMEWORKS)
    if clash is not None:
        return _clash(log, clash.line)
    builtins = log.first(_OTHER_BUILTINS)
    if builtins is not None:
        return _other_builtins(log, builtins)
    unlinked = log.first(_NO_LINK_NAME)
    if unlinked is not None:
        return _no_link_name(log, unlinked.line)
    apart = log.first(_OF_TORCH)
    if apart is not None:
        return _without_torch(log, apart.line)
    return _unsearched(log)


def _mixed(log: Log, mixed: list[LibraryEvent]) -> Conflict:
    lines = [event.line for event in mixed]
    return Conflict(
        message=f"{framework_title(log)} loads CUDA libraries of different releases: "
        f"{mixed[0].detail}",
        lines=(*lines, *(m.line for m in log.find(NO_DLOPEN)), *ended_after(log, min(lines))),
        remedies=(
            Remedy(
                "Use the copies that belong to the framework: remove the system's CUDA folders "
                "from the search path.",
                UnsetVariable(("LD_LIBRARY_PATH",)),
            ),
            Remedy("Or put the framework's own folders first.", _WHEELS_FIRST),
        ),
        confidence="likely",
        effect="broken" if log.failures else None,
    )


_OTHER_BUILTINS = late(r"nvrtc: error: failed to (?:load|open) builtins[^\n]{0,40}")


def _other_builtins(log: Log, statement: Match) -> Conflict:
    return Conflict(
        message=f"{framework_title(log)} loads libnvrtc, which does not find the library "
        "libnvrtc-builtins of the same CUDA release: two releases are mixed, or its folder is not "
        "searched",
        lines=(statement.line, *ended_after(log, statement.line)),
        remedies=(
            Remedy(
                "Find out which copies there are; both must be of one release and in one folder.",
                shell_script("ldconfig -p | grep nvrtc"),
            ),
            Remedy(
                "Use the copies that belong to the framework: remove the system's CUDA folders "
                "from the search path.",
                UnsetVariable(("LD_LIBRARY_PATH",)),
            ),
        ),
        confidence="likely",
        effect="broken",
    )


def _stub(log: Log, stubs: tuple[Status, ...]) -> Conflict:
    lines = [status.line for status in stubs]
    return Conflict(
        message="the loaded libcuda.so.1 is the CUDA toolkit's stub, which is only for linking "
        "and cannot use a GPU",
        lines=(*lines, *ended_after(log, min(lines))),
        remedies=(
            Remedy(
                "Remove the toolkit's stubs folder from LD_LIBRARY_PATH.",
                shell_script(
                    "export LD_LIBRARY_PATH=$(echo \"$LD_LIBRARY_PATH\" | tr ':' '\\n' | "
                    "grep -v stubs | paste -sd:)"
                ),
            ),
            Remedy(
                "Check which one the loader finds.", shell_script("ldconfig -p | grep libcuda.so")
            ),
        ),
        # In an image that is started without a GPU, only the stub is found.
        confidence="possible" if suspected(log, "docker-no-gpu-runtime") else "certain",
        effect="broken" if log.failures else None,
    )


def _no_link_name(log: Log, line: int) -> Conflict:
    return Conflict(
        message="the linker does not find libcuda.so: the driver's library exists under another "
        "name (libcuda.so.1), or in a folder that is not searched",
        lines=(*(m.line for m in log.find(_NO_LINK_NAME)), *ended_after(log, line)),
        remedies=(
            Remedy("Find the driver's library.", shell_script("ldconfig -p | grep libcuda.so")),
            Remedy(
                "Link it under the name that the linker needs.",
                shell_script(
                    "sudo ln -s libcuda.so.1 "
                    """"$(dirname "$(ldconfig -p | grep -m1 -o '/.*libcuda.so.1$')")/libcuda.so\""""
                ),
            ),
        ),
        confidence="likely",
        effect="broken",
    )


def _without_torch(log: Log, line: int) -> Conflict:
    return Conflict(
        message="a native extension of PyTorch does not find PyTorch's own libraries: the loader "
        "finds them only after `import torch`, and only those of the imported PyTorch",
        lines=(line, *ended_after(log, line)),
        remedies=(
            Remedy("Import torch before the extension."),
            Remedy(
                "Or add their folder to the loader's search path.",
                shell_script(
                    "export LD_LIBRARY_PATH=$(",
                    PYTHON,
                    " -c 'import torch; print(torch.__path__[0])')/lib",
                ),
            ),
            Remedy("If that does not help, build the extension for the installed PyTorch."),
        ),
        confidence="likely",
        effect="broken",
    )


def _clash(log: Log, line: int) -> Conflict:
    return Conflict(
        message="the loader fails while it loads native libraries into a process that already has "
        "many: libraries built for different frameworks or systems conflict",
        lines=(line, *ended_after(log, line)),
        remedies=(
            Remedy("Import the framework first, before other packages with native code."),
            Remedy("Or use an image or environment that was made only for this framework."),
        ),
        confidence="likely",
        effect="broken",
    )


def _unsearched(log: Log) -> Conflict | None:
    """Some CUDA libraries open but others of the same release do not, or none is named."""
    missing = missing_libraries(log)
    defect = known_defect(log, missing) if missing is not None else None
    if missing is None or (missing.toolkit and not partly_there(missing) and defect is None):
        return None
    if missing.cudnn and not missing.toolkit:
        return None
    named = names(missing.toolkit)
    if defect is not None:
        lost = and_list([f"lib{library}.so" for library in defect.libraries])
        message = (
            f"{framework_title(log)} cannot load some CUDA libraries; this release, as published, "
            f"does not search the folder of its own package with {lost}"
        )
    elif named:
        message = (
            f"{framework_title(log)} opens {names(missing.opened[:3])} but does not find {named}, "
            "although all belong to one CUDA release: a folder is not searched, or a part of the "
            "installation is missing"
        )
    else:
        message = (
            f"{framework_title(log)} cannot load some CUDA libraries and does not name them; the "
            "folders of packages from pip or conda are often not searched"
        )
    return Conflict(
        message=message,
        lines=(*missing.lines, *(event.line for event in missing.opened)),
        remedies=(
            REPAIRED_RUN,
            Remedy("Add the packages' folders to the loader's search path.", _WHEELS_FIRST),
            Remedy(
                "Check which libraries are missing, and where copies of them are.",
                command_line("whygpu check"),
            ),
        ),
        confidence="likely" if named or defect else "possible",
        severity=missing.severity,
        effect=missing.effect,
        ask=which_question(log, missing),
    )
