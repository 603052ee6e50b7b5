"""Writes how much GPU memory the tensors of the program take now, for `whygpu memory`.

The record of the process is written too, in case that the process is killed."""

import os
import time

from whygpu_bootstrap import process_record, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INTERVAL = 1.0
"""The least number of seconds between two writes."""

_state = {"next": 0.0}


def tell(counts: "list[Any]") -> None:
    """Write [[framework, device, bytes in use]] beside the process's record, if it is time to."""
    now = time.time()
    if now < _state["next"]:
        return
    _state["next"] = now + INTERVAL
    folder = settings.report_folder()
    if folder is None:
        return
    # Imported late: a program without a framework may have a module `json` of its own.
    import json

    path = os.path.join(folder, "%d.in-use" % os.getpid())
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump({"time": round(now, 3), "in_use": counts}, file)
    os.rename(path + ".part", path)
    process_record.ask_so_far()
