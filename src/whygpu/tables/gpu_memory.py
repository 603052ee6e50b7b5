"""How much memory the common GPU models have: what logs and estimates are held against.

Entered by hand, and compared with Wikipedia's list as <https://github.com/voidful/gpu-info-api> has
it and, from the A100 on, with NVIDIA's own tables; a model that is missing only leaves a log's
figures without this comparison. To check:
<https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-gpus.html>,
<https://www.nvidia.com/en-us/geforce/graphics-cards/compare/>,
<https://en.wikipedia.org/wiki/List_of_Nvidia_graphics_processing_units>
"""

from __future__ import annotations

from whygpu.model.lazy_regex import late
from whygpu.model.units import GIB

SIZES: dict[str, tuple[int, ...]] = {
    # GeForce; where a model was sold in several sizes, all of them.
    "GTX 650": (1, 2),
    "GTX 750 Ti": (1, 2, 4),
    "GTX 960": (2, 4),
    "GTX 970": (4,),
    "GTX 980": (4,),
    "GTX 980 Ti": (6,),
    "GTX TITAN X": (12,),
    "TITAN X": (12,),
    "TITAN Xp": (12,),
    "TITAN V": (12,),
    "TITAN RTX": (24,),
    "GTX 1050": (2, 3),
    "GTX 1050 Ti": (4,),
    "GTX 1060": (3, 5, 6),
    "GTX 1070": (8,),
    "GTX 1070 Ti": (8,),
    "GTX 1080": (8,),
    "GTX 1080 Ti": (11,),
    "GTX 1650": (4,),
    "GTX 1650 SUPER": (4,),
    "GTX 1660": (6,),
    "GTX 1660 Ti": (6,),
    "GTX 1660 SUPER": (6,),
    "RTX 2060": (6, 12),
    "RTX 2060 SUPER": (8,),
    "RTX 2070": (8,),
    "RTX 2070 SUPER": (8,),
    "RTX 2080": (8,),
    "RTX 2080 SUPER": (8,),
    "RTX 2080 Ti": (11,),
    "RTX 3050": (4, 6, 8),
    "RTX 3060": (6, 8, 12),
    "RTX 3060 Ti": (8,),
    "RTX 3070": (8,),
    "RTX 3070 Ti": (8,),
    "RTX 3080": (10, 12),
    "RTX 3080 Ti": (12,),
    "RTX 3090": (24,),
    "RTX 3090 Ti": (24,),
    "RTX 4050": (6,),
    "RTX 4060": (8,),
    "RTX 4060 Ti": (8, 16),
    "RTX 4070": (12,),
    "RTX 4070 SUPER": (12,),
    "RTX 4070 Ti": (12,),
    "RTX 4070 Ti SUPER": (16,),
    "RTX 4080": (16,),
    "RTX 4080 SUPER": (16,),
    "RTX 4090": (24,),
    "RTX 5050": (8,),
    "RTX 5060": (8,),
    "RTX 5060 Ti": (8, 16),
    "RTX 5070": (12,),
    "RTX 5070 Ti": (16,),
    "RTX 5080": (16,),
    "RTX 5090": (32,),
    # Laptops have their own sizes under the same names, so their name does not decide.
    # Workstations
    "Quadro P4000": (8,),
    "Quadro P5000": (16,),
    "Quadro P6000": (24,),
    "Quadro RTX 4000": (8,),
    "Quadro RTX 5000": (16,),
    "Quadro RTX 6000": (24,),
    "Quadro RTX 8000": (48,),
    "RTX A2000": (6, 12),
    "RTX A4000": (16,),
    "RTX A4500": (20,),
    "RTX A5000": (24,),
    "RTX A6000": (48,),
    "RTX 2000 Ada Generation": (16,),
    "RTX 4000 Ada Generation": (20,),
    "RTX 4500 Ada Generation": (24,),
    "RTX 5000 Ada Generation": (32,),
    "RTX 6000 Ada Generation": (48,),
    "RTX PRO 4000 Blackwell": (24,),
    "RTX PRO 4500 Blackwell": (32,),
    "RTX PRO 5000 Blackwell": (48, 72),
    "RTX PRO 6000 Blackwell Workstation Edition": (96,),
    "RTX PRO 6000 Blackwell Server Edition": (96,),
    # Data centres
    "Tesla K40c": (12,),
    "Tesla K80": (12,),
    "Tesla M40": (12, 24),
    "Tesla M60": (8,),
    "Tesla P4": (8,),
    "Tesla P40": (24,),
    "Tesla P100": (12, 16),
    "Tesla V100": (16, 32),
    "Tesla T4": (16,),
    "A2": (16,),
    "A10": (24,),
    "A10G": (24,),
    "A16": (16,),
    "A30": (24,),
    "A40": (48,),
    "A100": (40, 80),
    "L4": (24,),
    "L40": (48,),
    "L40S": (48,),
    "H100": (80,),
    "H100 PCIe": (80,),
    "H100 NVL": (94,),
    "H100 80GB HBM3": (80,),
    "H20": (96,),
    "H200": (141,),
    "H200 NVL": (141,),
    "GH200": (96, 144),
    "B200": (180,),
    "GB200": (186,),
}
"""In GB, by the driver's name for the model without its maker."""

KEPT_FOR_ERRORS = frozenset({"Tesla T4", "A2", "A10", "A10G", "A40", "L4", "L40", "L40S"})
"""Their memory has no extra space for error correction, which takes a sixteenth of it."""

_MAKER = late(r"^(?:NVIDIA |GeForce )+")
_IN_NAME = late(r"[ -](\d{1,3}) ?GB?\b")
_OF_PROCESSOR = late(r"\bGH200 \d+ ?GB\b")
"""The size in this name is that of the processor's memory, not the GPU's: GH200 480GB."""
_PART = late(r"\bMIG \d")
"""A part of a GPU; this follows the name of the GPU."""


def sizes_of(name: str) -> tuple[int, int] | None:
    """The least and the most memory, in bytes, of GPUs with this name; None if it is not known."""
    if _PART.search(name):
        return None
    name = _without_processor(name)
    stated = _IN_NAME.search(name)
    if stated:
        return int(stated[1]) * GIB, int(stated[1]) * GIB
    known = SIZES.get(_MAKER.sub("", name.strip()))
    return (min(known) * GIB, max(known) * GIB) if known else None


def _without_processor(name: str) -> str:
    return _OF_PROCESSOR.sub("GH200", name)


_NOISE = frozenset({"nvidia", "geforce", "tesla", "quadro", "generation", "edition", "gpu", "the"})
_GLUED = late(r"(?<=[a-z])(?=\d{4})|(?<=\d{4})(?=(?:ti|super)\b)|(?<=ti)(?=super\b)")


def _words(name: str) -> frozenset[str]:
    spaced = _GLUED.sub(" ", name.lower().replace("-", " ").replace("_", " "))
    return frozenset(spaced.split()) - _NOISE


def named(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The models that a name someone types may mean, with the sizes of each in bytes.

    Exactly that model, or all that have its words and as few others as can be. A size that stands
    in the name ("A100 80GB") is taken at its word. What error correction takes is taken off.
    """
    text = _without_processor(text)
    stated = _IN_NAME.search(text)
    wanted = _words(_IN_NAME.sub("", text))
    models = [(_words(name), name) for name in SIZES]
    found = [name for words, name in models if words == wanted]
    if not found and wanted:
        wider = [(words, name) for words, name in models if wanted <= words]
        fewest = min((len(words) for words, _ in wider), default=0)
        found = [name for words, name in wider if len(words) == fewest]
    if stated is not None:
        name = found[0] if found else text
        return ((text, (_usable(name, int(stated[1])),)),)
    return tuple((name, tuple(_usable(name, size) for size in SIZES[name])) for name in found)


def _usable(name: str, gigabytes: int) -> int:
    size = gigabytes * GIB
    return size - size // 16 if name in KEPT_FOR_ERRORS else size
