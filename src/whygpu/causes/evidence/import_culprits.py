"""Which installed package an import failed in, if that is not the framework's own."""

from __future__ import annotations

from whygpu.causes.evidence.packages import framework_name_of, package_named, required_name
from whygpu.model.lazy_regex import late
from whygpu.model.probe import Probe
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, Package

_FRAME = late(r'^\s{0,8}File "(?P<path>[^"\n]{1,1000})", line \d')
_IN_PACKAGE = late(
    r"/(?:site|dist)-packages/(?:google/(?=protobuf/))?(?P<module>\w{1,100})(?:[./]|$)"
)


def failed_in(machine: Snapshot, framework: Framework, probe: Probe) -> Package | None:
    """The package of the last frame, which is the one that raised the error."""
    frames = [match["path"] for line in probe.traceback if (match := _FRAME.search(line))]
    return other_package(machine, framework, frames[-1]) if frames else None


def crashed_in(probe: Probe) -> str:
    """The innermost file of Python that was running when native code crashed, as the fault handler
    prints it; empty if it did not."""
    frames = (match["path"] for line in probe.log if (match := _FRAME.search(line)))
    return next((path for path in frames if not path.startswith("<")), "")


def other_package(machine: Snapshot, framework: Framework, path: str) -> Package | None:
    """The package that a file belongs to by the name of its folder, if it is another one."""
    found = _IN_PACKAGE.search(path)
    package = package_named(machine, required_name(found["module"])) if found else None
    if package is None or framework_name_of(package.name) == framework.name:
        return None
    return package
