"""Findings about libraries that the machine has no copy of: those of CUDA, and cuDNN."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.library_faults import (
    consequence,
    effect_on,
    failures,
    no_copy,
    to_install,
)
from whygpu.causes.evidence.library_installs import install_remedies
from whygpu.causes.evidence.library_search import dlopen_warning, listed, requests_seen
from whygpu.model.cause import Cause
from whygpu.model.finding import Finding, Gap
from whygpu.model.observed import Known
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework


def missing_library_findings(
    cause: Cause, machine: Snapshot, fault: Literal["cuda-runtime-missing", "cudnn-missing"]
) -> Iterator[Finding | Gap]:
    for item in failures(machine, fault):
        if isinstance(item, Gap):
            yield item
            continue
        framework, failing = item
        where, confidence = no_copy(machine, failing)
        built_for = _cuda_of(framework) if fault == "cuda-runtime-missing" else ""
        yield cause.finding(
            subject=framework.name,
            effect=effect_on(framework),
            message=(
                f"{titled(framework)}{built_for} needs {listed(failing)}, but {where}; "
                f"{consequence(framework, failing)}"
            ),
            evidence=requests_seen(failing) + dlopen_warning(machine, framework),
            remedies=install_remedies(machine, framework, to_install(machine, framework)),
            confidence=confidence,
        )


def _cuda_of(framework: Framework) -> str:
    cuda = framework.build.cuda
    return f" (built for CUDA {cuda.value})" if isinstance(cuda, Known) else ""
