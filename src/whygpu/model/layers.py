"""The layers between a program and its GPU, and which of them is at fault.

This is the picture at the top of a page: each layer with what was seen of it and the root causes
that lie in it. It follows from a report alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from whygpu.model.derived import and_list, display_name, gpu_proven_by, usable_gpu
from whygpu.model.finding import MACHINE, Finding
from whygpu.model.libraries import Resolution
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.report import FrameworkReport, Outcome, Report
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

LayerName = Literal["program", "keras", "framework", "cudnn", "cuda", "driver", "gpu"]
LayerState = Literal[
    "works",
    "present",
    "on-cpu",
    "wrong",
    "attention",
    "follows",
    "unknown",
    "not-asked",
    "absent",
]
"""`works`: proven by using it. `present`: looked at, and nothing is wrong as far as files show.
`on-cpu`: it computes on the CPU, and nothing shows that it could do otherwise.
`wrong`, `attention`: a root cause lies here. `follows`: it fails because of another layer.
`unknown`: it could not be looked at. `not-asked`: this verb does not look at it. `absent`: it is
not there, which is no fault by itself."""

_CUDNN = "cudnn"
_FAMILIES: dict[str, LayerName] = {
    "1": "driver",
    "2": "cuda",
    "3": "framework",
    "4": "program",
    "5": "gpu",
    "6": "keras",
    "7": "program",
    "8": "driver",
}
"""By the first digit of a code. Noise (9xx) lies in no layer."""
_ELSEWHERE: dict[str, LayerName] = {
    "ecc-xid-hardware-error": "gpu",
    "host-oom": "program",
    "non-nvidia-backend": "gpu",
}
"""Causes that lie in another layer than the rest of their family."""


_CUDA_LIBRARY = re.compile(r"\blib(cu[a-z]+|nv[a-z]+|nccl)\b")
"""A library of CUDA's, as messages name it."""


class Layer(NamedTuple):
    name: LayerName
    title: str
    text: str
    """What was seen of it."""
    state: LayerState
    causes: tuple[Finding, ...] = ()
    """The root causes that lie in it."""


def layer_of(code: str, cause: str) -> LayerName | None:
    """The layer in which a cause lies."""
    if cause in _ELSEWHERE:
        return _ELSEWHERE[cause]
    name = _FAMILIES.get(code[2:3])
    return "cudnn" if name == "cuda" and _CUDNN in cause else name


def layers_with(finding: Finding) -> set[LayerName | None]:
    """The layers in which a finding lies: libraries that it names may belong to two."""
    name = layer_of(finding.code, finding.cause)
    named = set(_CUDA_LIBRARY.findall(finding.message))
    if name != "cuda" or not named:
        return {name}
    return {"cudnn" if library.startswith(_CUDNN) else "cuda" for library in named}


def layers_of(report: Report) -> tuple[Layer, ...]:
    """From the program at the top to the hardware at the bottom."""
    return tuple(_Stack(report).layers())


class _Stack:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._machine: Snapshot = report.snapshot
        self._proven = {probe.name for probe in self._machine.probes if gpu_proven_by(probe)}
        """The frameworks that have computed on a GPU."""

    def layers(self) -> Iterator[Layer]:
        yield self._program()
        yield self._keras()
        yield from self._frameworks()
        # Metal needs neither a driver nor libraries.
        if self._machine.system.os != "darwin":
            yield self._libraries("cudnn", "cuDNN")
            yield self._libraries("cuda", "CUDA libraries")
            yield self._driver()
        yield self._gpu()

    def _roots(self, name: LayerName, subject: str | None = None) -> tuple[Finding, ...]:
        return tuple(
            root
            for root in self._report.root_causes
            if name in layers_with(root) and (subject is None or root.subject in (subject, MACHINE))
        )

    def _gaps(self, name: LayerName) -> list[str]:
        """What could not be judged there."""
        return [
            reason
            for outcome in self._report.undetermined
            if layer_of(outcome.code, outcome.cause) == name
            for reason in outcome.gaps
        ]

    def _program(self) -> Layer:
        title = "Program and its variables"
        roots, gaps = self._roots("program"), self._gaps("program")
        text = "This check does not look at a program; whygpu lint and whygpu run do"
        if gaps:
            return _layer("program", title, gaps[0], "unknown", roots)
        if _looked_at(self._report.outcomes):
            text = f"Its variables hide no GPU. {text}"
        return _layer("program", title, text if not roots else "", "not-asked", roots)

    def _keras(self) -> Layer:
        found = next((item for item in self._report.frameworks if item.name == "keras"), None)
        if found is not None:
            return self._framework(found, "keras")
        if isinstance(self._machine.target.frameworks, Unknown):
            reason = self._machine.target.frameworks.reason
            return _layer("keras", "Keras", reason, "unknown", self._roots("keras"))
        return _layer("keras", "Keras", "not installed", "absent", self._roots("keras"))

    def _frameworks(self) -> Iterator[Layer]:
        found = [item for item in self._report.frameworks if item.name != "keras"]
        for item in found:
            yield self._framework(item, "framework")
        if found:
            return
        seen, roots = self._machine.target.frameworks, self._roots("framework")
        state: LayerState = "unknown" if isinstance(seen, Unknown) else "absent"
        text = seen.reason if isinstance(seen, Unknown) else "none is installed here"
        yield _layer("framework", "Framework", text, state, roots)

    def _framework(self, item: FrameworkReport, name: LayerName) -> Layer:
        states: dict[str, LayerState] = {
            "gpu": "works",
            "cpu": "follows",
            "broken": "follows",
            "unknown": "unknown",
            "not-installed": "absent",
        }
        title = f"{display_name(item.name)} {item.version}".rstrip()
        subject = None if name == "keras" else item.name
        state = states[item.verdict]
        if state == "follows" and not self._explained_elsewhere(item, name):
            # A build for the CPU, or a machine without a GPU, is no fault of another layer.
            state = "on-cpu"
        return _layer(name, title, item.summary, state, self._roots(name, subject))

    def _explained_elsewhere(self, item: FrameworkReport, name: LayerName) -> bool:
        return item.verdict == "broken" or any(
            name not in layers_with(finding)
            for finding in self._report.findings
            if finding.code in item.because
        )

    def _libraries(self, name: LayerName, title: str) -> Layer:
        roots, gaps = self._roots(name), self._gaps(name)
        frameworks = self._machine.target.frameworks
        if not isinstance(frameworks, Known):
            return _layer(name, title, *_without(frameworks, "no framework needs it"), roots)
        built = [each for each in frameworks.value if _is_for_cuda(each)]
        users = {
            each.name: [item for item in each.libraries.value if _layer_of_library(item) == name]
            for each in built
            if isinstance(each.libraries, Known)
        }
        unread = [each.libraries for each in built if isinstance(each.libraries, Unknown)]
        users = {user: found for user, found in users.items() if found}
        text = _builds(name, built)
        if unread or gaps:
            reason = unread[0].reason if unread else gaps[0]
            return _layer(name, title, reason, "unknown", roots)
        if not users:
            missing = "no installed framework is built for CUDA" if not built else "none is loaded"
            return _layer(name, title, missing, "absent", roots)
        loaded = [item for found in users.values() for item in found]
        failing = sorted({item.library for item in loaded if item.outcome != "loads"})
        text += f"; {and_list(failing)} cannot be loaded" if failing else "; all can be loaded"
        used = self._proven.issuperset(users)
        state: LayerState = "works" if used else "unknown" if failing else "present"
        return _layer(name, title, text, state, roots)

    def _driver(self) -> Layer:
        driver, roots = self._machine.driver, self._roots("driver")
        state = driver.state
        version = f" {driver.version.value}" if isinstance(driver.version, Known) else ""
        title = f"Driver{version}"
        if not isinstance(state, Known):
            return _layer("driver", title, *_without(state, "there is none"), roots)
        if state.value == "working":
            cuda = driver.cuda
            up_to = f"; runs programs for CUDA {cuda.value}" if isinstance(cuda, Known) else ""
            return _layer("driver", title, f"answers{up_to}", "works", roots)
        if state.value == "missing":
            return _layer("driver", title, "none is installed", "absent", roots)
        text = driver.detail or f"the driver is {state.value}"
        return _layer("driver", title, text, "unknown", roots)

    def _gpu(self) -> Layer:
        roots, gaps, gpu = self._roots("gpu"), self._gaps("gpu"), usable_gpu(self._machine)
        if isinstance(gpu, Known):
            title = _first_upper(gpu.value)
            if self._proven:
                return _layer("gpu", title, "a framework has computed on it", "works", roots)
            if gaps:
                return _layer("gpu", title, gaps[0], "unknown", roots)
            return _layer("gpu", title, "seen; nothing has used it", "present", roots)
        return _layer("gpu", "GPU", *_without(gpu, "no GPU is seen here"), roots)


def _layer(
    name: LayerName, title: str, text: str, state: LayerState, roots: tuple[Finding, ...]
) -> Layer:
    """The worst root cause decides the state. A remark (info) changes nothing."""
    severities = {root.severity for root in roots}
    if "error" in severities:
        state = "wrong"
    elif "warning" in severities:
        state = "attention"
    return Layer(name, title, text, state, roots)


def _without(fact: Absent | Unknown, absent: str) -> tuple[str, LayerState]:
    if isinstance(fact, Unknown):
        return fact.reason, "unknown"
    return absent, "absent"


def _looked_at(outcomes: Iterable[Outcome]) -> bool:
    """Whether every cause about variables has an answer."""
    mine = [outcome for outcome in outcomes if outcome.code[2:3] == "4"]
    return bool(mine) and all(each.status in ("passed", "not-applicable") for each in mine)


def _is_for_cuda(framework: Framework) -> bool:
    kind = framework.build.kind
    return isinstance(kind, Known) and kind.value == "cuda"


def _layer_of_library(item: Resolution) -> LayerName:
    if _CUDNN in item.library:
        return "cudnn"
    return "driver" if item.library.startswith("libcuda.") else "cuda"


def _builds(name: LayerName, frameworks: Iterable[Framework]) -> str:
    """For which release each framework was built."""
    by_release: dict[str, list[str]] = {}
    for each in frameworks:
        release = each.build.cudnn if name == "cudnn" else each.build.cuda
        known = release.value if isinstance(release, Known) else "an unknown release"
        by_release.setdefault(known, []).append(display_name(each.name))
    return "; ".join(
        f"{and_list(names)} {'is' if len(names) == 1 else 'are'} built for {release}"
        for release, names in by_release.items()
    )


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]
