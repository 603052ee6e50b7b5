"""GPUs of other makers than NVIDIA in a log."""

from __future__ import annotations

from whygpu.model.lazy_regex import late

OTHER_CARD = late(
    r"AMD Radeon|Radeon (?:RX|Pro|VII)|\bgfx(?:9|10|11|12)\d{1,2}[a-f0-9]?\b|Apple M[1-9]\b"
    r"|arm64-apple|macosx_\d+_\d+_arm64"
    r"|Intel\(?R?\)? (?:Arc|Iris|UHD|HD) Graphics"
)
AMD_MODEL = late(
    r"\bRX ?(?:[45]\d0|[5-9]\d{3})(?: ?(?:XTX|XT|GRE))?\b|\bMI(?:50|60|100|210|250X?|300[AX]|325X|35[05]X)\b"
)
"""How users call an AMD card, without the name of its maker."""
