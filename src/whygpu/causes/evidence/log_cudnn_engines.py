"""Messages of frameworks for an operation that none of cuDNN's engines can compute.

An engine is refused for the data type, the shape or the GPU, because its release of cuDNN does not
match, or because it cannot get the memory that it works in. The message does not say which.
"""

from __future__ import annotations

from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.remedy import command_line, set_variables

_NO_ENGINE = late(
    r"No valid execution plans (?:built|found)|No execution plans (?:support the graph|built success)"
    r"|\[cudnn_frontend\] Error: No valid (?:engine|execution)|GET was unable to find an engine"
    r"|cuDNN error: CUDNN_STATUS_NOT_SUPPORTED\b"
)
_OF_THE_LAYOUT = late(r"non-contiguous input")
_TRIED_ALL = late(
    r"FIND was unable to find an engine|Unable to find a valid cuDNN algorithm"
    r"|[Nn]o valid convolution algorithms available in [Cc]u?DNN"
)

WHICH_OF_THEM = (
    "Does the same operation work with a smaller batch, in another data type (float32), or on "
    "another GPU?"
)
WHY_REFUSED = Remedy(
    "Let cuDNN print why it refuses each engine.",
    set_variables(CUDNN_LOGLEVEL_DBG="2", CUDNN_LOGDEST_DBG="stderr"),
)
WITHOUT_CUDNN = Remedy(
    "Or run the program without cuDNN, which is slower.",
    command_line("whygpu run --cudnn off -- python PROGRAM.py"),
)
OTHER_RELEASE = Remedy("Try the next or previous release of the framework, with its own cuDNN.")


def without_engine(log: Log) -> Match | None:
    """No engine was found without running any: memory is not the usual reason."""
    return log.first(_NO_ENGINE)


def of_the_layout(log: Log) -> tuple[Remedy, ...]:
    """If PyTorch names the layout of the input as a possible reason."""
    text = "Give it an input that is contiguous in memory: x = x.contiguous()."
    return (Remedy(text),) if log.says(_OF_THE_LAYOUT) else ()


def every_engine_failed(log: Log) -> list[Match]:
    """PyTorch has run each engine. Lack of memory is then the usual reason."""
    return list(log.find(_TRIED_ALL))
