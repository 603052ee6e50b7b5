"""How much memory the common GPU models have: what a log's figures are held against.

Entered by hand, not read from a list of NVIDIA's; a model that is missing only leaves a log's
figures without this comparison. To check: <https://www.nvidia.com/en-us/geforce/graphics-cards/compare/>
"""

from __future__ import annotations

from whygpu.model.late import late

_GIB = 1 << 30

SIZES: dict[str, tuple[int, ...]] = {
    # GeForce; where a model was sold in several sizes, all of them.
    "GTX 650": (1, 2),
    "GTX 750 Ti": (2, 4),
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
    "GTX 1660": (6,),
    "GTX 1660 Ti": (6,),
    "GTX 1660 SUPER": (6,),
    "RTX 2060": (6, 12),
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
    "RTX 4070 Ti": (12,),
    "RTX 4070 Ti SUPER": (16,),
    "RTX 4080": (16,),
    "RTX 4080 SUPER": (16,),
    "RTX 4090": (24,),
    "RTX 5070": (12,),
    "RTX 5070 Ti": (16,),
    "RTX 5080": (16,),
    "RTX 5090": (32,),
    # Laptops have their own sizes under the same names, so they are not told by name.
    # Workstations
    "Quadro P4000": (8,),
    "Quadro P5000": (16,),
    "Quadro P6000": (24,),
    "Quadro RTX 4000": (8,),
    "Quadro RTX 5000": (16,),
    "Quadro RTX 6000": (24,),
    "Quadro RTX 8000": (48,),
    "RTX A4000": (16,),
    "RTX A5000": (24,),
    "RTX A6000": (48,),
    "RTX 6000 Ada Generation": (48,),
    # Data centres
    "Tesla K40c": (12,),
    "Tesla K80": (12,),
    "Tesla M40": (12, 24),
    "Tesla M60": (8,),
    "Tesla P4": (8,),
    "Tesla P40": (24,),
    "Tesla T4": (16,),
    "A10": (24,),
    "A10G": (24,),
    "A30": (24,),
    "A40": (48,),
    "L4": (24,),
    "L40": (48,),
    "L40S": (48,),
    "H100 PCIe": (80,),
    "H100 80GB HBM3": (80,),
    "H200": (141,),
    "B200": (180, 192),
}
"""In GB, by the driver's name for the model without its maker."""

_MAKER = late(r"^(?:NVIDIA |GeForce )+")
_IN_NAME = late(r"[ -](\d{1,3}) ?GB\b")


def sizes_of(name: str) -> tuple[int, int] | None:
    """The least and the most memory, in bytes, of GPUs with this name; None if it is not known."""
    stated = _IN_NAME.search(name)
    if stated:
        return int(stated[1]) * _GIB, int(stated[1]) * _GIB
    known = SIZES.get(_MAKER.sub("", name.strip()))
    return (min(known) * _GIB, max(known) * _GIB) if known else None
