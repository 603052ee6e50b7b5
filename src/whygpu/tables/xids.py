"""NVIDIA's Xids: the numbers by which the driver reports a fault of a GPU to the kernel log.

NVIDIA's catalogue says for each number what to do at once, and what if it returns. The meanings are
our own words. If the catalogue describes a procedure that depends on registers (48, 74, 144 and
others), the action is the one that it starts with or most often ends in. Numbers that the catalogue
lists as unused have no row, except those of older GPUs that are still seen.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
"""For Ampere and newer GPUs."""
OLDER = "https://docs.nvidia.com/deploy/xid-errors/index.html"
"""The list from before that catalogue, for older GPUs."""

XidAction = Literal[
    "check-program", "restart-program", "reset-gpu", "restart-machine", "check-hardware", "none"
]
"""What to do first. `check-program`: the program's own code is the likely reason. `none`: nothing;
if it returns, it is a matter for the vendor."""


class Xid(NamedTuple):
    number: int
    meaning: str
    """The rest of a sentence: "Xid 79: the GPU has fallen off the bus"."""
    action: XidAction
    source: str = CATALOGUE


_COPY = "one of the GPU's copy engines failed"
_VIDEO = "the GPU's video decoder failed"
_PICTURES = "the GPU's JPEG decoder failed"
_LINK = "an NVLink error"

_NAMED = (
    Xid(8, "the GPU stopped executing commands", "restart-program"),
    Xid(11, "the GPU received commands that are invalid or damaged", "check-program"),
    Xid(13, "a kernel of the program failed on the GPU", "check-program"),
    Xid(25, "the GPU received commands that are not allowed", "check-program"),
    Xid(31, "the program accessed GPU memory that it does not have", "check-program"),
    Xid(32, "the GPU received commands that are invalid or damaged", "check-program"),
    Xid(37, "an error of the GPU's firmware", "none"),
    Xid(38, "an error of the GPU's firmware", "none"),
    *(Xid(number, _COPY, "restart-program") for number in (39, 40, 41)),
    Xid(43, "the GPU ended the work of a program after a fault of it", "check-program"),
    Xid(44, "a fault while the GPU switched between programs", "none"),
    Xid(45, "the work of a program was removed from the GPU, at its end or after another fault",
        "check-program"),
    Xid(46, "the GPU stopped executing commands", "reset-gpu"),
    Xid(48, "an uncorrectable memory error", "reset-gpu"),
    Xid(54, "the GPU's power cable is not connected", "check-hardware"),
    Xid(60, "the GPU's video processor failed", "restart-program"),
    Xid(61, "the GPU's internal controller stopped", "reset-gpu", OLDER),
    Xid(62, "the GPU's internal controller halted", "reset-gpu"),
    Xid(63, "a memory row was replaced", "none"),
    Xid(64, "a memory row could not be replaced", "reset-gpu"),
    Xid(66, "the driver made an access that the GPU does not allow", "none"),
    Xid(67, "the driver made an access that the GPU does not allow", "none"),
    Xid(68, _VIDEO, "restart-program"),
    Xid(69, "the GPU received commands that are not allowed", "check-program"),
    *(Xid(number, _COPY, "restart-program") for number in (70, 71, 72)),
    Xid(74, _LINK, "reset-gpu"),
    *(Xid(number, _COPY, "restart-program") for number in (75, 76, 77)),
    Xid(79, "the GPU has fallen off the bus", "restart-machine"),
    Xid(80, "damaged data was sent to the GPU", "check-program"),
    Xid(82, _PICTURES, "restart-program"),
    *(Xid(number, _VIDEO, "restart-program") for number in (83, 84)),
    Xid(85, _COPY, "restart-program"),
    Xid(86, "the GPU's optical flow unit failed", "restart-program"),
    *(Xid(number, _VIDEO, "restart-program") for number in (88, 89)),
    Xid(92, "many memory errors that were corrected", "none"),
    Xid(93, "the GPU's settings memory was written too often", "none"),
    Xid(94, "a contained memory error", "restart-program"),
    Xid(95, "an uncontained memory error", "reset-gpu"),
    *(Xid(number, _VIDEO, "restart-program") for number in (96, 97, 98)),
    *(Xid(number, _PICTURES, "restart-program") for number in range(99, 106)),
    Xid(106, "a test message", "none"),
    Xid(107, "a test message", "none"),
    Xid(108, _LINK, "none"),
    Xid(109, "the GPU did not switch its context in time", "reset-gpu"),
    Xid(110, "a security fault of the GPU", "reset-gpu"),
    Xid(119, "the GPU's system processor (GSP) does not answer", "reset-gpu"),
    Xid(120, "an error of the GPU's system processor (GSP)", "reset-gpu"),
    Xid(121, "an error of the chip-to-chip link", "none"),
    *(Xid(number, _COPY, "restart-program") for number in range(126, 136)),
    Xid(136, "an NVLink could not be started", "reset-gpu"),
    Xid(137, _LINK, "none"),
    Xid(139, "the GPU's optical flow unit failed", "restart-program"),
    Xid(140, "an unrecoverable memory error", "reset-gpu"),
    Xid(143, "the GPU could not be started", "reset-gpu"),
    *(Xid(number, _LINK, "reset-gpu") for number in (144, 145, 146)),
    *(Xid(number, _LINK, "none") for number in (147, 148)),
    *(Xid(number, _LINK, "reset-gpu") for number in (149, 150)),
    Xid(151, "the keys of a confidential virtual machine could not be changed", "restart-machine"),
    Xid(154, "the driver says what has to be done after another Xid", "none"),
    Xid(155, _LINK, "reset-gpu"),
    Xid(156, "a faulty part of the GPU is taken out of use", "reset-gpu"),
    Xid(157, "a faulty part of the GPU could not be taken out of use", "none"),
    Xid(158, "the GPU did not answer in time", "reset-gpu"),
    Xid(160, "a channel of the GPU was retired", "none"),
    Xid(161, "a channel of the GPU could not be retired", "none"),
)  # fmt: skip

XIDS: dict[int, Xid] = {row.number: row for row in _NAMED}

_OF_A_PROGRAM = frozenset({68})
"""Numbers that programs cause as well, beside those whose action says so: input that the video
decoder cannot read."""


def follows_a_program(number: int) -> bool:
    """Whether a program's own fault, or its end, is the likely reason."""
    row = XIDS.get(number)
    return number in _OF_A_PROGRAM or (row is not None and row.action == "check-program")


def is_of_the_hardware(number: int) -> bool:
    """Whether NVIDIA's catalogue asks for more than a new start of the program."""
    row = XIDS.get(number)
    return row is not None and row.action in ("reset-gpu", "restart-machine", "check-hardware")
