"""The instruction sets that each value of ONEDNN_MAX_CPU_ISA allows oneDNN on x86."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

VARIABLES = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""oneDNN reads the first that is set. The second is the name before 2021."""

USERS = ("tensorflow", "torch")
"""Frameworks whose builds for x86 compute with oneDNN on the CPU."""


class Limit(NamedTuple):
    value: str
    features: frozenset[str]
    """Kernel flags of the instruction sets that it allows."""
    other_names: tuple[str, ...] = ()


_AVX = frozenset(("sse4_1", "avx"))
_AVX2 = _AVX | {"avx2", "fma", "f16c"}
_CORE = _AVX2 | {"avx512f", "avx512bw", "avx512vl", "avx512dq"}
_VNNI = _CORE | {"avx512_vnni"}
_BF16 = _VNNI | {"avx512_bf16"}
_FP16 = _BF16 | {"avx512_fp16", "avx_vnni"}
_AMX = _FP16 | {"amx_tile", "amx_int8", "amx_bf16"}

ROWS: tuple[Limit, ...] = (
    Limit("SSE41", frozenset(("sse4_1",))),
    Limit("AVX", _AVX),
    Limit("AVX2", _AVX2),
    Limit("AVX2_VNNI", _AVX2 | {"avx_vnni"}),
    Limit("AVX2_VNNI_2", _AVX2 | {"avx_vnni"}),
    Limit("AVX512_CORE", _CORE),
    Limit("AVX512_CORE_VNNI", _VNNI),
    Limit("AVX512_CORE_BF16", _BF16),
    Limit("AVX512_CORE_FP16", _FP16, ("AVX10_1_512",)),
    Limit("AVX512_CORE_AMX", _AMX, ("AVX10_1_512_AMX",)),
    Limit("AVX512_CORE_AMX_FP16", _AMX | {"amx_fp16"}, ("AVX10_1_512_AMX_FP16",)),
)
"""From the least to the most."""


def limit_without(unusable: Collection[str]) -> Limit:
    """The highest limit that prevents oneDNN from using these instructions.

    What the processor lacks need not be left out: oneDNN asks the processor for it.
    """
    return next((row for row in reversed(ROWS) if row.features.isdisjoint(unusable)), ROWS[0])


def allows(value: str, feature: str) -> bool:
    """Whether oneDNN may use a feature under this value. It ignores values it does not know."""
    given = value.strip().upper()
    row = next((row for row in ROWS if given in (row.value, *row.other_names)), None)
    return row is None or feature in row.features
