"""Steps of PyTorch: each step of an optimizer."""

import sys

from whygpu_bootstrap import process_record
from whygpu_bootstrap.profile import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def start(torch: "Any") -> None:
    recorder.begin()
    optimizer = sys.modules.get("torch.optim.optimizer")
    register = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if register is None:
        process_record.note("PyTorch before 2.0 does not report its steps")
        return
    if recorder.is_new("torch"):
        register(_stepped)


def _stepped(optimizer: "Any", arguments: "Any", options: "Any") -> None:
    recorder.mark("torch %s %d" % (type(optimizer).__name__, id(optimizer)))
