"""GPUs of other makers than NVIDIA in a log."""

from __future__ import annotations

import re

from whygpu.causes.evidence.log_driver_works import driver_works
from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match

OTHER_CARD = late(
    r"AMD Radeon|Radeon (?:RX|Pro|VII)|\bgfx(?:9|10|11|12)\d{1,2}[a-f0-9]?\b|Apple M[1-9]\b"
    r"|arm64-apple|macosx_\d+_\d+_arm64"
    r"|Intel\(?R?\)? (?:Arc|Iris|UHD|HD) Graphics"
)
AMD_MODEL = late(
    r"\bRX ?(?:[45]\d0|[5-9]\d{3})(?: ?(?:XTX|XT|GRE))?\b|\bMI(?:50|60|100|210|250X?|300[AX]|325X|35[05]X)\b"
)
"""How users call an AMD card, without the name of its maker."""
_OWN_CARD = late(
    r"\b(?P<amd>AMD (?:GPU|card|graphics)|Radeon(?! Graphics\b)(?: (?:RX|Pro|HD|VII))?(?: ?\d{3,4}\w{0,4})?"
    r"|RX ?(?:[45]\d0|[5-9]\d{3})(?: ?(?:XTX|XT))?)\b"
    r"|\b(?P<intel>Intel(?:\(R\))? (?:Arc|Iris|UHD|HD|GPU|graphics)(?: (?:Xe|Plus|Pro|Graphics|A\d{3}))?)",
    re.IGNORECASE,
)
_NVIDIA = late(r"(?:\bGeForce|\bRTX ?\d|\bGTX ?\d|\bQuadro\b|\bTesla [A-Z]\d|\bMX\d{3}\b)")


def only_card(log: Log) -> Match | None:
    """The card that a person names as the own one, if it is not NVIDIA's and no other is named."""
    if driver_works(log) or log.says(_NVIDIA):
        return None
    return next(
        (match for match in log.find(_OWN_CARD) if log.line(match.line).level == "none"), None
    )


FOR_AMD = Remedy(
    "Install the framework's build for ROCm: AMD's list says which cards it supports, on Linux and "
    "in WSL (https://rocm.docs.amd.com). Other cards can only use the CPU there."
)
FOR_INTEL = Remedy(
    "PyTorch has builds for Intel's Arc and newer integrated GPUs (device='xpu', "
    "https://pytorch.org/get-started/locally/). With an older one, use the CPU."
)
