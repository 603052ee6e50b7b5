"""GPU models by the names people type, and the compute capability of each."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.machine_spec import GpuKind

_CURRENT = "https://developer.nvidia.com/cuda-gpus"
_LEGACY = "https://developer.nvidia.com/cuda-legacy-gpus"


class GpuModel(NamedTuple):
    name: str
    capability: tuple[int, int]
    kind: GpuKind
    source: str


def _models(capability: tuple[int, int], kind: GpuKind, *names: str) -> tuple[GpuModel, ...]:
    source = _CURRENT if capability >= (7, 5) else _LEGACY
    return tuple(GpuModel(name, capability, kind, source) for name in names)


MODELS: tuple[GpuModel, ...] = (
    *_models((12, 1), "data-center", "GB10", "DGX Spark"),
    *_models((12, 0), "data-center", "RTX PRO 6000 Blackwell Server Edition"),
    *_models(
        (12, 0),
        "workstation",
        "RTX PRO 6000 Blackwell Workstation Edition",
        "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "RTX PRO 5000 Blackwell",
        "RTX PRO 4500 Blackwell",
        "RTX PRO 4000 Blackwell",
        "RTX PRO 2000 Blackwell",
    ),
    *_models(
        (12, 0),
        "geforce",
        "GeForce RTX 5090",
        "GeForce RTX 5080",
        "GeForce RTX 5070 Ti",
        "GeForce RTX 5070",
        "GeForce RTX 5060 Ti",
        "GeForce RTX 5060",
        "GeForce RTX 5050",
    ),
    *_models((11, 0), "jetson", "Jetson T5000", "Jetson T4000", "Jetson Thor"),
    *_models((10, 3), "data-center", "GB300", "B300"),
    *_models((10, 0), "data-center", "GB200", "B200"),
    *_models((9, 0), "data-center", "GH200", "H200", "H100"),
    *_models((8, 9), "data-center", "L4", "L40", "L40S"),
    *_models(
        (8, 9),
        "workstation",
        "RTX 6000 Ada",
        "RTX 5000 Ada",
        "RTX 4500 Ada",
        "RTX 4000 Ada",
        "RTX 4000 SFF Ada",
        "RTX 2000 Ada",
    ),
    *_models(
        (8, 9),
        "geforce",
        "GeForce RTX 4090",
        "GeForce RTX 4080",
        "GeForce RTX 4070 Ti",
        "GeForce RTX 4070",
        "GeForce RTX 4060 Ti",
        "GeForce RTX 4060",
        "GeForce RTX 4050",
    ),
    *_models((8, 7), "jetson", "Jetson AGX Orin", "Jetson Orin NX", "Jetson Orin Nano"),
    *_models((8, 6), "data-center", "A40", "A16", "A10", "A2"),
    *_models(
        (8, 6), "workstation", "RTX A6000", "RTX A5000", "RTX A4000", "RTX A3000", "RTX A2000"
    ),
    *_models(
        (8, 6),
        "geforce",
        "GeForce RTX 3090 Ti",
        "GeForce RTX 3090",
        "GeForce RTX 3080 Ti",
        "GeForce RTX 3080",
        "GeForce RTX 3070 Ti",
        "GeForce RTX 3070",
        "GeForce RTX 3060 Ti",
        "GeForce RTX 3060",
        "GeForce RTX 3050 Ti",
        "GeForce RTX 3050",
    ),
    *_models((8, 0), "data-center", "A100", "A30"),
    *_models((7, 5), "data-center", "T4"),
    *_models(
        (7, 5),
        "workstation",
        "Quadro RTX 8000",
        "Quadro RTX 6000",
        "Quadro RTX 5000",
        "Quadro RTX 4000",
        "T1200",
        "T1000",
        "T600",
        "T500",
        "T400",
    ),
    *_models(
        (7, 5),
        "geforce",
        "TITAN RTX",
        "GeForce RTX 2080 Ti",
        "GeForce RTX 2080",
        "GeForce RTX 2070",
        "GeForce RTX 2060",
        "GeForce GTX 1660 Ti",
        "GeForce GTX 1660",
        "GeForce GTX 1650 Ti",
        "GeForce GTX 1650",
    ),
    *_models((7, 2), "jetson", "Jetson AGX Xavier", "Jetson Xavier NX"),
    *_models((7, 0), "data-center", "V100"),
    *_models((7, 0), "workstation", "Quadro GV100"),
    *_models((7, 0), "geforce", "TITAN V"),
    *_models((6, 2), "jetson", "Jetson TX2"),
    *_models((6, 1), "data-center", "Tesla P40", "Tesla P4"),
    *_models(
        (6, 1),
        "workstation",
        "Quadro P6000",
        "Quadro P5000",
        "Quadro P4000",
        "Quadro P2200",
        "Quadro P2000",
        "Quadro P1000",
        "Quadro P620",
        "Quadro P600",
        "Quadro P400",
    ),
    *_models(
        (6, 1),
        "geforce",
        "TITAN Xp",
        "TITAN X Pascal",
        "GeForce GTX 1080 Ti",
        "GeForce GTX 1080",
        "GeForce GTX 1070 Ti",
        "GeForce GTX 1070",
        "GeForce GTX 1060",
        "GeForce GTX 1050 Ti",
        "GeForce GTX 1050",
    ),
    *_models((6, 0), "data-center", "Tesla P100"),
    *_models((6, 0), "workstation", "Quadro GP100"),
    *_models((5, 3), "jetson", "Jetson Nano", "Jetson TX1"),
    *_models((5, 2), "data-center", "Tesla M60", "Tesla M40"),
    *_models((5, 2), "workstation", "Quadro M6000", "Quadro M5000", "Quadro M4000", "Quadro M2000"),
    *_models(
        (5, 2),
        "geforce",
        "GeForce GTX TITAN X",
        "GeForce GTX 980 Ti",
        "GeForce GTX 980",
        "GeForce GTX 970",
        "GeForce GTX 960",
        "GeForce GTX 950",
    ),
    *_models((5, 0), "workstation", "Quadro K2200", "Quadro K1200", "Quadro K620"),
    *_models((5, 0), "geforce", "GeForce GTX 750 Ti", "GeForce GTX 750"),
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
)

_NOISE = frozenset({"nvidia", "geforce", "tesla", "laptop", "gpu", "mobile", "the"})
_SIZES = late(r"\d{1,6}\s{0,4}g[bi]?b?|pcie|sxm\d?|nvl|hbm\d\w?")
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
