"""What the data sheets of NVIDIA promise: memory bandwidth, and products of dense matrices.

By the name under which the driver lists the card, because one product name can mean cards of
different speed (an A100 has two kinds of memory and two form factors). Products in half precision
are those that add in float32, as frameworks do; the figures with sparsity, which data sheets print
first, are twice as high.

Each row has a second check. float32 is twice the number of cores times the boost clock, and the
bandwidth the width of the bus times its data rate (the test of this table has these numbers). The
products of tensor cores were compared with lists of other projects that name the same data sheets,
except those of A30, RTX 5080 and RTX 5090, which were found once. A card without a data sheet of
its own is not here, and is only compared with its neighbours: NVIDIA publishes none of the H20, and
one name covers several kinds of GH200.
"""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.driver import PcieLink
from whygpu.model.lazy_regex import late
from whygpu.model.stress import PRODUCTS, RateName

_SHEETS = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/"
_SITE = "https://www.nvidia.com/en-us/data-center/"
_VOLTA = (
    "https://images.nvidia.com/content/technologies/volta/pdf/"
    "volta-v100-datasheet-update-us-1165301-r5.pdf"
)
_T4 = _SHEETS + "tesla-t4/t4-tensor-core-datasheet-951643.pdf"
_A10 = _SHEETS + "a10/pdf/a10-datasheet.pdf"
_A30 = "https://resources.nvidia.com/en-us-gpu-resources/a30-datasheet"
_A100 = _SHEETS + "a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf"
_L4 = "https://resources.nvidia.com/en-us-gpu-resources/l4-tensor-datasheet"
_H200 = "https://nvdam.widen.net/s/nb5zzzsjdf/hpc-datasheet-sc23-h200-datasheet-3002446"
_TURING = (
    "https://images.nvidia.com/aem-dam/en-zz/Solutions/design-visualization/technologies/"
    "turing-architecture/NVIDIA-Turing-Architecture-Whitepaper.pdf"
)
_AMPERE = (
    "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf"
)
_ADA = (
    "https://images.nvidia.com/aem-dam/Solutions/Data-Center/l4/"
    "nvidia-ada-gpu-architecture-whitepaper-v2.1.pdf"
)
_BLACKWELL = (
    "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/"
    "nvidia-rtx-blackwell-gpu-architecture.pdf"
)


class Peaks(NamedTuple):
    memory: float
    """GB/s."""
    float32: float
    """TFLOP/s, like the others."""
    tf32: float | None
    """None: the GPU has no TF32."""
    half: float | None
    """bfloat16, or float16 if the GPU has no bfloat16."""
    source: str
    low_power: bool = False
    """Its power limit (150 W or less) keeps it far below these figures in long products."""


CARDS: dict[str, Peaks] = {
    "Tesla P100-SXM2-16GB": Peaks(732, 10.6, None, None, _SITE + "tesla-p100/"),
    "Tesla P100-PCIE-16GB": Peaks(732, 9.3, None, None, _SITE + "tesla-p100/"),
    "Tesla P100-PCIE-12GB": Peaks(549, 9.3, None, None, _SITE + "tesla-p100/"),
    "Tesla V100-SXM2-16GB": Peaks(900, 15.7, None, 125, _VOLTA),
    "Tesla V100-SXM2-32GB": Peaks(900, 15.7, None, 125, _VOLTA),
    "Tesla V100-PCIE-16GB": Peaks(900, 14, None, 112, _VOLTA),
    "Tesla V100-PCIE-32GB": Peaks(900, 14, None, 112, _VOLTA),
    "Tesla V100S-PCIE-32GB": Peaks(1134, 16.4, None, 130, _VOLTA),
    # Some editions of its data sheet round the bandwidth to 300.
    "Tesla T4": Peaks(320, 8.1, None, 65, _T4, low_power=True),
    "A2": Peaks(200, 4.5, 9, 18, _SITE + "products/a2/", low_power=True),
    "A10": Peaks(600, 31.2, 62.5, 125, _A10, low_power=True),
    "A30": Peaks(933, 10.3, 82, 165, _A30),
    "A40": Peaks(696, 37.4, 74.8, 149.7, _AMPERE),
    "A100-SXM4-40GB": Peaks(1555, 19.5, 156, 312, _A100),
    "A100-PCIE-40GB": Peaks(1555, 19.5, 156, 312, _A100),
    "A100-SXM4-80GB": Peaks(2039, 19.5, 156, 312, _A100),
    "A100 80GB PCIe": Peaks(1935, 19.5, 156, 312, _A100),
    "A100-PCIE-80GB": Peaks(1935, 19.5, 156, 312, _A100),
    "L4": Peaks(300, 30.3, 60, 121, _L4, low_power=True),
    "L40": Peaks(864, 90.5, 90.5, 181, _ADA),
    "L40S": Peaks(864, 91.6, 183, 362, _SITE + "l40s/"),
    "H100 80GB HBM3": Peaks(3350, 67, 494, 989, _SITE + "h100/"),
    "H100 PCIe": Peaks(2000, 51, 378, 756, _SITE + "h100/"),
    "H100 NVL": Peaks(3900, 60, 417, 835, _SITE + "h100/"),
    "H200": Peaks(4800, 67, 494, 989, _H200),
    "H200 NVL": Peaks(4800, 60, 417, 835, _H200),
    "B200": Peaks(7700, 75, 1100, 2250, _SITE + "hgx/"),
    "GeForce GTX 1080 Ti": Peaks(484, 11.3, None, None, _TURING),
    "GeForce RTX 2080": Peaks(448, 10.1, None, 40.3, _TURING),
    "GeForce RTX 2080 Ti": Peaks(616, 13.4, None, 53.8, _TURING),
    "TITAN RTX": Peaks(672, 16.3, None, 130.5, _TURING),
    "Quadro RTX 6000": Peaks(672, 16.3, None, 130.5, _TURING),
    "GeForce RTX 3070": Peaks(448, 20.3, 20.3, 40.6, _AMPERE),
    "GeForce RTX 3080": Peaks(760, 29.8, 29.8, 59.5, _AMPERE),
    "GeForce RTX 3090": Peaks(936, 35.6, 35.6, 71, _AMPERE),
    "RTX A6000": Peaks(768, 38.7, 77.4, 154.8, _AMPERE),
    "GeForce RTX 4080": Peaks(717, 48.7, 48.7, 97.5, _ADA),
    "GeForce RTX 4090": Peaks(1008, 82.6, 82.6, 165.2, _ADA),
    "GeForce RTX 5080": Peaks(960, 56.3, 56.3, 112.6, _BLACKWELL),
    "GeForce RTX 5090": Peaks(1792, 104.8, 104.8, 209.5, _BLACKWELL),
}
"""By the driver's name for the card, without its maker."""

_MAKER = late(r"^NVIDIA ")

_LANE: dict[int, float] = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""GB/s of one PCIe lane in one direction, by generation."""


def card_peaks(gpu_name: str) -> Peaks | None:
    return CARDS.get(_MAKER.sub("", gpu_name.strip()))


def peak_of(name: RateName, peaks: Peaks) -> float | None:
    """The promised rate in bytes or operations per second; None if there is none."""
    if name == "memory":
        return peaks.memory * 1e9
    figures = {
        "float32": peaks.float32,
        "tf32": peaks.tf32,
        "bfloat16": peaks.half if peaks.tf32 is not None else None,
        "float16": peaks.half,
    }
    figure = figures.get(name)
    return None if figure is None else figure * 1e12


def link_peak(link: PcieLink) -> float | None:
    """Bytes per second of the fastest link that both the GPU and its slot have."""
    lane = _LANE.get(link.max_generation)
    return None if lane is None else lane * link.max_width * 1e9


LEAST_SHARE: dict[RateName, float] = {
    "memory": 0.6,
    "to-gpu": 0.4,
    "from-gpu": 0.4,
    "float32": 0.35,
    "tf32": 0.3,
    "bfloat16": 0.3,
    "float16": 0.3,
}
"""Below this share of the peak, something is wrong with the GPU, its power or its slot.

Nothing reaches a data sheet's figure: it is the clock at its highest times everything that the chip
has. Copies within healthy memory reach 75 to 95 %. Long products are limited by power, and reach
45 to 80 %, depending on the card, its cooling and the library. Copies over PCIe reach 75 to 85 %,
less in virtual machines. The bounds lie so far below that a healthy GPU does not meet them, so they
find a GPU that is stuck at low clocks, and not one that is a tenth slower than it should be: for
that, GPUs are compared with their neighbours."""
LOW_POWER_SHARE = 0.15
"""The same for products on cards that their power limit slows most."""


def least_share(name: RateName, gpu_name: str) -> float:
    peaks = card_peaks(gpu_name)
    if peaks is not None and peaks.low_power and name in PRODUCTS:
        return LOW_POWER_SHARE
    return LEAST_SHARE[name]
