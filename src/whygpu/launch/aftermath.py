"""What is known of memory after a run that failed, from all who know something of it."""

from __future__ import annotations

from whygpu.host.local import LocalHost
from whygpu.launch.process import Ended
from whygpu.memory.shortage import Run, memory_end
from whygpu.model.memory_use import MemoryEnd
from whygpu.model.observed import Known
from whygpu.model.policy import RunReport
from whygpu.model.snapshot import Snapshot
from whygpu.privacy import Redactor
from whygpu.readers.log import read_text


def memory_end_of(
    report: RunReport, ended: Ended, text: str, machine: Snapshot
) -> MemoryEnd | None:
    """How memory ended the run; None where nothing says that it did. `machine` is as it is now.

    Private data is removed: a control group may have its user's name.
    """
    gpus = machine.driver.gpus
    shared = machine.system.memory.shared_bytes
    end = memory_end(
        Run(
            error_text=text,
            records=report.records,
            host=ended.memory,
            policy=report.policy,
            progress=len(read_text(text).progress),
            gpus=gpus.value if isinstance(gpus, Known) else (),
            shared_total=shared.value if isinstance(shared, Known) else None,
        )
    )
    return Redactor(LocalHost().platform).value(end)
