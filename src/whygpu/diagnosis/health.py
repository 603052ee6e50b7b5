"""What a log shows to work."""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import excerpt, framework_title
from whygpu.model.log import Log


def health(log: Log) -> str:
    """What a log shows to work: a sentence without a full stop, or nothing."""
    ready = next((device for device in log.devices if device.event == "ready"), None)
    found = next((device for device in log.devices if device.event == "found"), None)
    on_gpu = next((report for report in log.reports if report.says == "on-gpu"), None)
    has_gpu = next((report for report in log.reports if report.says == "gpu"), None)
    if ready is not None:
        name = f" ({ready.name})" if ready.name else ""
        return f"{framework_title(log)} can use the GPU{name}, line {ready.line}"
    if on_gpu is not None:
        quoted = excerpt(log.line(on_gpu.line).text.strip(), 60)
        return f"the program says that it works on the GPU, line {on_gpu.line} ({quoted})"
    if found is not None:
        return f"it shows a GPU ({found.name}), line {found.line}"
    if has_gpu is not None:
        quoted = excerpt(log.line(has_gpu.line).text.strip(), 60)
        return f"{framework_title(log)} sees a GPU, line {has_gpu.line} ({quoted})"
    if log.progress:
        return (
            f"the program does its work, line {log.progress[0]}, and does not say on which device"
        )
    return ""
