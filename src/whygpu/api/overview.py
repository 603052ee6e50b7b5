"""The verb about everything: report, which is check, memory and plan of one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whygpu.api.arguments import THIS_PYTHON, checked
from whygpu.model.observed import Known
from whygpu.model.overview import Overview
from whygpu.probes import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    from whygpu.model.snapshot import Snapshot
    from whygpu.probes.runner import Progress

_PLANNED = ("tensorflow", "keras", "jax", "torch", "cupy", "onnxruntime")
"""The frameworks that the planner knows."""


@checked
def report(
    python: str | None = THIS_PYTHON,
    *,
    machine: Snapshot | None = None,
    probe: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
    on_progress: Progress | None = None,
) -> Overview:
    """Check, memory and plan of one machine, from one look at it.

    `python`, `probe` and `timeout` are those of `check`; `machine` is a snapshot of another
    machine, to judge instead. The plan is for the frameworks that are installed.

    Example:
        whygpu.report()
    """
    from whygpu.api.machine import diagnose, snapshot
    from whygpu.api.memory_use import memory_holders
    from whygpu.api.plans import plan

    seen = machine
    if seen is None:
        seen = snapshot(
            python, probe=probe, timeout=timeout, on_progress=on_progress, to_post=False
        )
    frameworks = seen.target.frameworks
    installed = [each.name for each in frameworks.value] if isinstance(frameworks, Known) else []
    return Overview(
        check=diagnose(seen),
        memory=memory_holders(machine=seen),
        plan=plan(*(name for name in _PLANNED if name in installed), machine=seen, python=None),
    )
