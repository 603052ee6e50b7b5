"""GPU models by the names people type, and the compute capability of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.machine_spec import GpuKind

_CURRENT = "https://developer.nvidia.com/cuda-gpus"
_LEGACY = "https://developer.nvidia.com/cuda-legacy-gpus"
_PCI = "https://pci-ids.ucw.cz/read/PC/10de"
_DRIVER = "https://github.com/NVIDIA/open-gpu-kernel-modules#compatible-gpus"


class GpuModel(NamedTuple):
    name: str
    capability: tuple[int, int]
    kind: GpuKind
    source: str


def _models(capability: tuple[int, int], kind: GpuKind, *names: str) -> tuple[GpuModel, ...]:
    source = _CURRENT if capability >= (7, 5) else _LEGACY
    return tuple(GpuModel(name, capability, kind, source) for name in names)


def _boards(capability: tuple[int, int], kind: GpuKind, *names: str) -> tuple[GpuModel, ...]:
    """Products that only the driver's list names, by the chip of their PCI device ID."""
    return tuple(GpuModel(name, capability, kind, _DRIVER) for name in names)


def _chips(capability: tuple[int, int], kind: GpuKind, *names: str) -> tuple[GpuModel, ...]:
    """Products before Turing, by the chip that the list of PCI devices gives for the name."""
    return tuple(GpuModel(name, capability, kind, _PCI) for name in names)


def _named(pattern: str, numbers: str) -> Iterator[str]:
    return (pattern.format(number) for number in numbers.split())


BESIDE_ARM = ("GB10", "DGX Spark", "GB300", "GB200", "GH200", "T4G")
"""Models that are sold with an Arm processor only: NVIDIA's Grace, and AWS Graviton for the T4G
(https://docs.nvidia.com/grace-perf-tuning-guide/, https://aws.amazon.com/ec2/instance-types/g5g/)."""

MODELS: tuple[GpuModel, ...] = (
    *_models((12, 1), "data-center", "GB10", "DGX Spark"),
    *_models(
        (12, 0),
        "data-center",
        "RTX PRO 6000 Blackwell Server Edition",
        "RTX PRO 4500 Blackwell Server Edition",
    ),
    *_models(
        (12, 0),
        "workstation",
        "RTX PRO 6000 Blackwell Workstation Edition",
        *_named("RTX PRO {} Blackwell", "5000 4500 4000 3000 2000 1000 500"),
        "RTX PRO 4000 Blackwell SFF Edition",
    ),
    *_models(
        (12, 0),
        "geforce",
        *_named("GeForce RTX {}", "5090 5080 5070 5060 5050"),
        *_named("GeForce RTX {} Ti", "5070 5060"),
        *_named("GeForce RTX {} D", "5090"),
    ),
    *_boards((12, 0), "workstation", "RTX 6000D"),
    *_boards((12, 0), "geforce", "GeForce RTX 5090 D v2"),
    *_models((11, 0), "jetson", "Jetson T5000", "Jetson T4000", "Jetson Thor", "Jetson AGX Thor"),
    *_models((10, 3), "data-center", "GB300", "B300"),
    *_models((10, 0), "data-center", "GB200", "B200", "B100"),
    *_models((9, 0), "data-center", "GH200", "H200", "H100", "H800", "H20"),
    *_boards((9, 0), "data-center", "H20-3e"),
    *_boards((8, 9), "data-center", "L2"),
    *_boards((8, 9), "workstation", "RTX 2000E Ada"),
    # A chip of this generation, unlike the RTX 3050.
    *_boards((8, 9), "geforce", "GeForce RTX 3050 A"),
    *_models((8, 9), "data-center", "L4", "L20", "L40", "L40S", "L40G"),
    *_models(
        (8, 9),
        "workstation",
        *_named("RTX {} Ada", "6000 5880 5000 4500 4000 3500 3000 2000 1000 500"),
        "RTX 4000 SFF Ada",
    ),
    *_models(
        (8, 9),
        "geforce",
        *_named("GeForce RTX {}", "4090 4080 4070 4060 4050"),
        *_named("GeForce RTX {} Ti", "4070 4060"),
        *_named("GeForce RTX {} D", "4090"),
    ),
    *_models((8, 7), "jetson", "Jetson AGX Orin", "Jetson Orin NX", "Jetson Orin Nano"),
    *_models((8, 6), "data-center", "A40", "A16", "A10", "A10G", "A10M", "A2"),
    *_models(
        (8, 6), "workstation", *_named("RTX A{}", "6000 5500 5000 4500 4000 3000 2000 1000 500 400")
    ),
    *_models(
        (8, 6),
        "geforce",
        *_named("GeForce RTX {}", "3090 3080 3070 3060 3050 2050"),
        *_named("GeForce RTX {} Ti", "3090 3080 3070 3060 3050"),
        "GeForce MX570",
    ),
    *_boards((8, 6), "workstation", "RTX A4000H"),
    *_boards((8, 6), "geforce", "GeForce MX570 A", *_named("CMP {}HX", "90 70")),
    *_boards((8, 0), "data-center", "AX800", "A100-PG509-200", "PG509-210", "PG506-232"),
    *_models((8, 0), "data-center", "A100", "A100X", "A800", "A30", "A30X"),
    *_models((7, 5), "data-center", "T4", "T4G"),
    *_models(
        (7, 5),
        "workstation",
        *_named("Quadro RTX {}", "8000 6000 5000 4000 3000"),
        *_named("Quadro T{}", "2000 1000"),
        *_named("T{}", "1200 1000 600 550 500 400"),
    ),
    *_models(
        (7, 5),
        "geforce",
        "TITAN RTX",
        *_named("GeForce RTX {}", "2080 2070 2060"),
        "GeForce RTX 2080 Ti",
        *_named("GeForce GTX {}", "1660 1650 1630"),
        *_named("GeForce GTX {} Ti", "1660 1650"),
        *_named("GeForce MX{}", "450 550"),
    ),
    *_boards((7, 5), "workstation", "T400E", "DGX Display"),
    *_boards((7, 5), "workstation", *_named("Matrox D-Series D{}", "2450 2480")),
    *_boards((7, 5), "geforce", *_named("CMP {}HX", "50 40 30")),
    *_models((7, 2), "jetson", "Jetson AGX Xavier", "Jetson Xavier NX"),
    *_models((7, 0), "data-center", "V100", "V100S"),
    *_models((7, 0), "workstation", "Quadro GV100"),
    *_models((7, 0), "geforce", "TITAN V"),
    *_models((6, 2), "jetson", "Jetson TX2", "Jetson TX2 NX"),
    *_models((6, 1), "data-center", "Tesla P40", "Tesla P6", "Tesla P4"),
    *_models(
        (6, 1),
        "workstation",
        *_named("Quadro P{}", "6000 5200 5000 4200 4000 3200 3000 2200 2000 1000"),
        *_named("Quadro P{}", "620 600 520 500 400"),
    ),
    *_models(
        (6, 1),
        "geforce",
        "TITAN Xp",
        "TITAN X Pascal",
        *_named("GeForce GTX {}", "1080 1070 1060 1050"),
        *_named("GeForce GTX {} Ti", "1080 1070 1050"),
        *_named("GeForce GT {}", "1030 1010"),
        *_named("GeForce MX{}", "150 230 250 330 350"),
    ),
    *_models((6, 0), "data-center", "Tesla P100"),
    *_models((6, 0), "workstation", "Quadro GP100"),
    *_models((5, 3), "jetson", "Jetson Nano", "Jetson TX1"),
    *_models((5, 2), "data-center", "Tesla M60", "Tesla M40", "Tesla M6", "Tesla M4"),
    *_models(
        (5, 2),
        "workstation",
        *_named("Quadro M{}", "6000 5000 4000 2200 2000 5500M 5000M 4000M 3000M"),
    ),
    *_models(
        (5, 2),
        "geforce",
        "GeForce GTX TITAN X",
        *_named("GeForce GTX {}", "980 970 960 950 980M 970M 965M"),
        "GeForce GTX 980 Ti",
    ),
    *_models((5, 0), "data-center", "Tesla M10"),
    *_models(
        (5, 0),
        "workstation",
        *_named("Quadro K{}", "2200 1200 620 2200M 620M"),
        *_named("Quadro M{}", "1200 520 2000M 1000M 600M 500M"),
    ),
    *_models(
        (5, 0),
        "geforce",
        *_named("GeForce GTX {}", "750 745 960M 950M 850M"),
        "GeForce GTX 750 Ti",
        *_named("GeForce {}", "945M 940M 940MX 930M 930MX 920MX 845M 840M 830M"),
        *_named("GeForce MX{}", "110 130"),
    ),
    # The GeForce GTX 860M, 820M, 910M and 920M are missing: each name is that of several chips.
    *_models((3, 7), "data-center", "Tesla K80"),
    *_models((3, 5), "data-center", "Tesla K40", "Tesla K20"),
    *_models(
        (3, 5),
        "geforce",
        "GeForce GTX TITAN Black",
        "GeForce GTX TITAN Z",
        "GeForce GTX TITAN",
        "GeForce GTX 780 Ti",
        "GeForce GTX 780",
    ),
    *_models((3, 0), "data-center", "Tesla K10"),
    *_models(
        (3, 0),
        "geforce",
        "GeForce GTX 770",
        "GeForce GTX 760",
        "GeForce GTX 690",
        "GeForce GTX 680",
        "GeForce GTX 670",
        "GeForce GTX 660",
        "GeForce GTX 650",
    ),
    *_chips(
        (6, 1),
        "data-center",
        "P102-100",
        "P104-100",
        "P104-101",
        "P106-090",
        "P106-100",
    ),
    *_chips(
        (5, 2),
        "workstation",
        "Quadro M5500",
    ),
    *_chips(
        (5, 0),
        "workstation",
        "NVS 810",
    ),
    *_chips(
        (3, 5),
        "workstation",
        *_named("Quadro {}", "K510M K5200 K6000 K610M"),
    ),
    *_chips(
        (3, 5),
        "geforce",
        "GeForce 825M",
        *_named("GeForce GT {}", "720 720M 735M"),
    ),
    *_chips(
        (3, 5),
        "data-center",
        "Tesla K20X",
    ),
    *_chips(
        (3, 0),
        "workstation",
        *_named("NVS {}", "1000 510"),
        *_named("Quadro {}", "410 4100 K1000M K1100M K2000 K2000D K2000M K2100M K3000M"),
        *_named("Quadro {}", "K3100M K4000 K4000M K4100M K420 K4200 K5000 K5000M K500M"),
        *_named("Quadro {}", "K5100M K600"),
    ),
    *_chips(
        (3, 0),
        "geforce",
        *_named("GeForce GT {}", "640M 645M 650M 740 745M 750M 755M"),
        "GeForce GTX 650 Ti Boost",
        *_named("GeForce GTX {} Ti", "660 760"),
        *_named("GeForce GTX {}", "660M 670MX 675MX 680M 680MX 760M 765M 770M 780M 870M"),
        *_named("GeForce GTX {}", "880M"),
    ),
    *_chips(
        (3, 0),
        "data-center",
        *_named("GRID {}", "K1 K2 K520"),
    ),
    *_chips(
        (2, 1),
        "workstation",
        *_named("NVS {}", "310 315 4200M 5200M 5400M"),
        *_named("Quadro {}", "1000M 2000 2000M 3000M 4000M 500M 600"),
    ),
    *_chips(
        (2, 1),
        "geforce",
        *_named("GeForce {}", "410M 510 605 610M 705M"),
        *_named("GeForce GT {}", "415M 420 420M 425M 430 435M 440 445M 520 520M 520MX"),
        *_named("GeForce GT {}", "525M 530 540M 550M 555M 560M 610 620 620M 635M"),
        "GeForce GTS 450",
        *_named("GeForce GTX {}", "460 460M 470M 485M 555 570M 580M 670M 675M"),
        "GeForce GTX 550 Ti",
    ),
    *_chips(
        (2, 0),
        "workstation",
        *_named("Quadro {}", "4000 5000 5000M 5010M 6000 7000"),
    ),
    *_chips(
        (2, 0),
        "geforce",
        *_named("GeForce GTX {}", "465 470 480 480M 570 580 590"),
        "GeForce GTX 560 Ti 448 Cores",
    ),
    *_chips(
        (2, 0),
        "data-center",
        *_named("Tesla {}", "C2050 C2090 M2070 M2075 M2090"),
    ),
    # These names are those of several chips; a name alone does not tell them apart.
    *_chips((3, 5), "geforce", *_named("GeForce GT {} GK208", "710 730 730M 740M")),
    *_chips((3, 0), "geforce", *_named("GeForce GT {} GK107", "630 730 730M 740M")),
    *_chips((2, 1), "geforce", "GeForce GT 710 GF119", *_named("GeForce GT {} GF108", "630 730")),
)

_NOISE = frozenset(
    {"nvidia", "geforce", "tesla", "laptop", "gpu", "mobile", "the"}
    # As in "Quadro T2000 with Max-Q Design" and "RTX 6000 Ada Generation".
    | {"with", "max", "q", "design", "generation"}
    # As in "RTX A2000 Embedded GPU", "GeForce RTX 3050 OEM" and "B300 SXM6 AC".
    | {"embedded", "oem", "ac", "lc", "active"}
)
_SIZES = late(r"\d{1,6}\s{0,4}g[bi]?b?|pcie|sxm\d?|nvl\d*|hbm\d\w?")
"""How makers tell the variants of one model apart; their capability is the same."""
_GLUED = late(r"(?<=[a-z])(?=\d{3,})|(?<=\d{3})(?=(?:ti|super)\b)")


def _words(name: str) -> tuple[str, ...]:
    spaced = _GLUED.sub(" ", name.lower().replace("-", " ").replace("_", " "))
    words = tuple(word for word in spaced.split() if word not in _NOISE)
    kept = tuple(word for word in words if not _SIZES.fullmatch(word) and word != "super")
    return kept or words


_BY_WORDS = tuple((frozenset(_words(model.name)), model) for model in MODELS)


def find(name: str) -> tuple[GpuModel, ...]:
    """The models that a name may mean: one if it is clear, none if it is not on record.

    An exact name wins; else every model that has all the words of the name.
    """
    wanted = frozenset(_words(name))
    exact = tuple(model for words, model in _BY_WORDS if words == wanted)
    if exact:
        return exact
    found = tuple(model for words, model in _BY_WORDS if wanted and wanted <= words)
    shortest = min((len(_words(model.name)) for model in found), default=0)
    # "4090" is the RTX 4090; "1080" is the GTX 1080, not the 1080 Ti, which has a name of its own.
    return tuple(model for model in found if len(_words(model.name)) == shortest)
