"""Whether a log shows that NVIDIA's driver works, by its tool or in a person's words."""

from __future__ import annotations

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

_SMI = r"\bnvidia-smi(?:\.exe)?[`'\"]?"
_WORKS = late(
    rf"{_SMI}(?: (?:command|output|in \w{{1,12}}|on the host|itself|still|also|correctly|clearly|just"
    r"|does)){0,3},? (?:works?|is (?:ok|okay|fine|working|good|correct)|ok\b|runs? fine"
    r"|(?:can )?(?:shows?|lists?|sees?|detects?|finds?|reports?|recogni[sz]es?|displays?|prints?"
    r"|says)\b(?! (?:no\b|that|failed|NVIDIA-SMI|command|failed|error|not\b|0\b|nothing|[`'\"]?No\b))"
    r"|zeigt|funktioniert|fonctionne|affiche|funciona|muestra)"
    rf"|{_SMI} ?(?:正常|可以|显示|能)",
)
_FAILS = late(
    r"has failed because|[Nn]o devices were found|Failed to initialize NVML|Unable to determine"
    r"|nvidia-smi[^\n]{0,40}(?:not found|not recogni|fails?\b|doesn['’]?t|does not|can(?:not|['’]t))"
)


def driver_works(log: Log) -> bool:
    """Somewhere on that machine: a container or WSL may still lack it."""
    if log.says(_FAILS):
        return False
    listed = bool(log.devices) or log.version_of("cuda-of-driver") is not None
    return listed or log.says(_WORKS)
