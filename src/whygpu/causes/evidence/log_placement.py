"""Operations that TensorFlow could not place, in the messages of all its generations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

Kind = Literal["no-device", "no-kernel"]


class Placement(NamedTuple):
    """An operation that could not be placed on the requested device."""

    line: int
    last: int
    """The last line of the message."""
    operation: str
    device: str
    """As requested: /device:GPU:0, GPU:1; empty if nothing was requested."""
    has: str
    """The devices of the process, as the message lists them."""
    kernels: str
    """The devices for which the operation has a kernel, in the same form."""
    says: Kind | None
    """What the message itself states, if it does."""


_MOST_LINES = 12
_START = late(
    r"Cannot assign a device (?:for operation|to node) ?'?(?P<node>[^\s:']{1,200})"
    r"|Could not satisfy (?:explicit )?device specification '(?P<spec>[^']{0,120})'"
    r"|Cannot colocate nodes"
    r"|No OpKernel was registered to support Op '(?P<op>\w{1,80})'"
    r"|Operation was explicitly assigned to"
)
_NO_KERNEL = late(
    r"no supported kernel for \w{2,12} devices|no device type supports both|No OpKernel for"
    r"|Cannot colocate nodes"
)
_NO_DEVICE = late(
    r"no devices matching that specification|but available devices are"
    r"|refers to a valid device|CUDA is not enabled"
)
_ASKED = late(
    r"(?:assigned to|device specification|incompatible device)\s{1,12}'?"
    r"(?P<device>/[^\s']{1,80}:[\d*]+)"
)
_AVAILABLE = late(
    r"[Aa]vailable devices(?: are|:)? ?\[?(?P<devices>[^\]]{0,400})"
    r"|Registered devices: \[(?P<registered>[^\]\n]{0,200})\]"
)
_SUPPORTED = late(r"Supported device types \[(?P<types>[^\]\n]{0,80})\]")
_KERNEL = late(r"device='(?P<device>\w{2,12})'")
_NAME = late(r"\b[A-Za-z_]{1,20}:\d{1,5}\b")
_JOB = late(r"/job:\w{1,40}")
_TYPE = late(r"(?:device:|/|\b)(?P<kind>XLA_GPU|XLA_CPU|GPU|CPU|TPU_SYSTEM|TPU|gpu|cpu|tpu)\b")
_OF_TPU = late(r"TPU")
_OF_GPU = late(r"Cudnn|Nccl|Cuda")


def placements(log: Log) -> Iterator[Placement]:
    """Every such message, in the order of the log."""
    position = {(line.number, line.text): index for index, line in enumerate(log.lines)}
    done = -1
    for match in log.find(_START):
        index = position[match.line, match.text]
        if match.line <= done:
            continue
        end = index
        for following in log.lines[index + 1 : index + _MOST_LINES]:
            if following.level != "none" or following.text.startswith("Traceback"):
                break
            end += 1
        last = log.lines[end].number
        text = "\n".join(line.text for line in log.lines[index : end + 1])
        done = match.line
        yield _read(match.line, last, text, match.groups)


def _read(line: int, last: int, text: str, groups: dict[str, str | None]) -> Placement:
    asked = _ASKED.search(text)
    available = _AVAILABLE.search(text)
    supported = _SUPPORTED.search(text)
    kernels = {match["device"] for match in _KERNEL.finditer(text)}
    if supported:
        kernels.update(word.strip() for word in supported["types"].split(","))
    # The end of a message of many lines is not always kept; its first lines decide.
    says: Kind | None = None
    if _NO_DEVICE.search(text):
        says = "no-device"
    elif _NO_KERNEL.search(text):
        says = "no-kernel"
    has = (available["devices"] or available["registered"] or "") if available else ""
    return Placement(
        line,
        line if says else last,
        groups["op"] or groups["node"] or "",
        asked["device"] if asked else "",
        has.strip(),
        ",".join(sorted(kernels)),
        says,
    )


def misplaced(placement: Placement) -> Kind | None:
    """Whether the device or the kernel is missing; None if the message does not show it."""
    if placement.says:
        return placement.says
    kinds = {match["kind"].upper() for match in _TYPE.finditer(placement.has)}
    if kinds and placement.device:
        return "no-kernel" if _is_there(placement) else "no-device"
    if _OF_TPU.search(placement.operation):
        return "no-device"
    if kinds and "GPU" not in kinds and ("GPU" in placement.kernels or _gpu_op(placement)):
        return "no-device"
    return "no-kernel" if kinds or placement.kernels else None


def _is_there(placement: Placement) -> bool:
    """Whether the requested device is one of the process's devices."""
    name = placement.device.rpartition("/")[2].removeprefix("device:").lower()
    names = {match.group().lower() for match in _NAME.finditer(placement.has)}
    job = _JOB.search(placement.device)
    return name in names and (job is None or job.group() in placement.has)


def _gpu_op(placement: Placement) -> bool:
    return _OF_GPU.search(placement.operation) is not None
