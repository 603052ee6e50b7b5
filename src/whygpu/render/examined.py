"""What a check looked at, in one line: the interpreter, the driver and the GPU."""

from __future__ import annotations

from whygpu.model.derived import usable_gpu
from whygpu.model.observed import Absent, Known
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Target


def examined(machine: Snapshot) -> str:
    return ", ".join(machine_parts(machine))


def machine_parts(machine: Snapshot) -> list[str]:
    """The interpreter, the driver and the GPU."""
    parts = [_python_text(machine.target)]
    if machine.system.os != "darwin":
        parts.append(_driver_text(machine))
    gpu = usable_gpu(machine)
    known = gpu.value if isinstance(gpu, Known) else None
    parts.append(known or ("no NVIDIA GPU" if isinstance(gpu, Absent) else "GPU unknown"))
    return parts


def _python_text(target: Target) -> str:
    """The version, and the environment or else the interpreter that it belongs to."""
    if not isinstance(target.interpreter, Known):
        return "Python unknown"
    python = target.interpreter.value
    name = f"Python {python.version}" + (" (free-threaded)" if python.free_threaded else "")
    if not python.isolated:
        return f"{name} ({python.path})"
    manager = target.installer.value.manager if isinstance(target.installer, Known) else None
    tool = manager.value if isinstance(manager, Known) and manager.value.certain else None
    if tool is not None and tool.name in ("conda", "pixi"):
        return f"{name} in the {tool.name} environment {python.prefix}"
    by = f" of {tool.name}" if tool is not None else ""
    return f"{name} in the virtual environment {python.prefix}{by}"


def _driver_text(machine: Snapshot) -> str:
    version, state = machine.driver.version, machine.driver.state
    if isinstance(version, Known):
        return f"driver {version.value}"
    if not isinstance(state, Known):
        return "driver unknown"
    if state.value != "missing":
        return f"driver {state.value}"
    return "no NVIDIA driver" if isinstance(machine.amd, Known) else "no driver"
