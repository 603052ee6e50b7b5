"""GPU models are found by the names people type."""

from __future__ import annotations

import pathlib

from tests.cases import each
from whygpu.tables.architectures import TEGRA
from whygpu.tables.gpus import MODELS, find


def test_every_row_has_a_source_and_a_name_of_its_own() -> None:
    assert len({model.name for model in MODELS}) == len(MODELS)
    for model in MODELS:
        assert model.source.startswith(
            (
                "https://developer.nvidia.com/",
                "https://github.com/NVIDIA/",
                "https://pci-ids.ucw.cz/",
            )
        )
        assert find(model.name) == (model,)


CHIPS = {
    (7, 5): "1E 1F 21",
    (8, 0): "20",
    (8, 6): "22 24 25",
    (8, 9): "26 27 28",
    (9, 0): "23",
    (10, 0): "29",
    (10, 3): "31",
    (12, 0): "2B 2C 2D 2F",
    (12, 1): "2E",
}
"""The chips of each capability, by the first two digits of their PCI device IDs."""
NOT_ON_SALE = ("NVIDIA DRIVE P2021",)
"""A board of a car, of which no document names the capability."""


def test_no_gpu_since_turing_is_missing() -> None:
    path = pathlib.Path(__file__).with_name("gpu_products.txt")
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    products = [tuple(line.split(" ", 1)) for line in lines]
    by_chip = {chip: capability for capability, chips in CHIPS.items() for chip in chips.split()}
    assert len(products) > 200
    wrong = [
        (chip, name, found)
        for chip, name in products
        if name not in NOT_ON_SALE
        and (found := {model.capability for model in find(name)}) != {by_chip[chip]}
    ]
    assert wrong == []


FAMILIES = {
    "Fermi, GF100 and GF110": ((2, 0), "GTX 480|GTX 580|GTX 590|Quadro 6000|Tesla M2090|C2050"),
    "Fermi, small": ((2, 1), "GTX 460|GTS 450|GT 430|GT 520|GT 610|GT 540M|Quadro 2000|NVS 310"),
    "Kepler, GK10x": ((3, 0), "GTX 680|GTX 660 Ti|GT 740|GT 650M|GTX 880M|Quadro K4000|GRID K520"),
    "Kepler, GK110 and GK208": ((3, 5), "GTX 780|GT 720|GT 735M|Quadro K6000|Quadro K610M|K20X"),
    "Maxwell, laptops": ((5, 0), "GTX 960M|GTX 950M|940MX|940M|930MX|920MX|840M|MX110|MX130"),
    "Maxwell, GM107 desktops": ((5, 0), "GTX 750|GTX 750 Ti|Quadro K2200|Quadro M1200|Tesla M10"),
    "Maxwell, GM20x": ((5, 2), "GTX 980 Ti|GTX 970|GTX 980M|GTX 965M|Quadro M4000|Tesla M60|M40"),
    "Maxwell, Quadro laptops": ((5, 2), "Quadro M2200|Quadro M5000M|Quadro M3000M"),
    "Pascal, data centre": ((6, 1), "Tesla P40|Tesla P4|Tesla P6"),
    "Pascal, GP100": ((6, 0), "Tesla P100-SXM2-16GB|Quadro GP100"),
    "Pascal, GeForce": ((6, 1), "GTX 1080 Ti|GTX 1070 Ti|GTX 1060 6GB|GTX 1050 Ti|TITAN Xp"),
    "Pascal, small": ((6, 1), "GT 1030|GT 1010|MX150|MX230|MX250|MX330|MX350"),
    "Pascal, Quadro": ((6, 1), "Quadro P5200|Quadro P4200|Quadro P3200|Quadro P520|Quadro P500"),
    "Volta": ((7, 0), "Tesla V100-PCIE-32GB|Tesla V100S-PCIE-32GB|TITAN V|Quadro GV100"),
    "Turing, data centre": ((7, 5), "Tesla T4|NVIDIA T4G"),
    "Turing, GeForce": ((7, 5), "RTX 2080 SUPER|RTX 2060|GTX 1660 SUPER|GTX 1650 Ti|GTX 1630"),
    "Turing, small": ((7, 5), "MX450|MX550|NVIDIA T600 Laptop GPU|T550|T400 4GB"),
    "Turing, Quadro": ((7, 5), "Quadro RTX 3000|Quadro T2000 with Max-Q Design|Quadro T1000"),
    "Ampere, GA100": ((8, 0), "A100|NVIDIA A800-SXM4-80GB|A30"),
    "Ampere, data centre": ((8, 6), "NVIDIA A10G|A10|A16|A2|A40|A10M"),
    "Ampere, GeForce": ((8, 6), "RTX 3090 Ti|RTX 3070 Ti Laptop GPU|RTX 3050 Ti|RTX 2050|MX570"),
    "Ampere, workstation": (
        (8, 6),
        "RTX A6000|RTX A5500|RTX A4500|RTX A2000 12GB|RTX A1000|RTX A400",
    ),
    "Ada, data centre": ((8, 9), "L4|L20|L40|L40S"),
    "Ada, GeForce": ((8, 9), "RTX 4090|RTX 4090 D|RTX 4080 SUPER|RTX 4060 Laptop GPU|RTX 4050"),
    "Ada, workstation": (
        (8, 9),
        "RTX 6000 Ada Generation|RTX 5880 Ada|RTX 3500 Ada|RTX 4000 SFF Ada Generation|RTX 500 Ada",
    ),
    "Hopper": ((9, 0), "H100 PCIe|NVIDIA H200 NVL|H800|NVIDIA H20|GH200 480GB"),
    "Blackwell, data centre": ((10, 0), "B100|B200|GB200"),
    "Blackwell Ultra": ((10, 3), "B300|GB300"),
    "Blackwell, GeForce": ((12, 0), "RTX 5090|RTX 5090 D|RTX 5070 Ti|RTX 5060 Laptop GPU|RTX 5050"),
    "Blackwell, workstation": (
        (12, 0),
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition|RTX PRO 4000 Blackwell|"
        "NVIDIA RTX PRO 1000 Blackwell Generation Laptop GPU|RTX PRO 500 Blackwell|"
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    ),
    "Spark": ((12, 1), "NVIDIA GB10|DGX Spark"),
    "Jetson": ((8, 7), "Jetson AGX Orin|Jetson Orin NX|Jetson Orin Nano Super"),
}
"""Names as the driver reports them and as people type them, by family."""


@each("family", FAMILIES)
def test_no_family_is_missing(family: str) -> None:
    capability, names = FAMILIES[family]
    for name in names.split("|"):
        assert {model.capability for model in find(name)} == {capability}, name


def test_jetsons_are_the_tegra_capabilities() -> None:
    for model in MODELS:
        assert (model.kind == "jetson") == (model.capability in TEGRA)


@each(
    ("typed", "name"),
    [
        ("RTX 5090", "GeForce RTX 5090"),
        ("4090", "GeForce RTX 4090"),
        ("rtx4090", "GeForce RTX 4090"),
        ("1080", "GeForce GTX 1080"),
        ("1080ti", "GeForce GTX 1080 Ti"),
        ("GTX 1080 Ti", "GeForce GTX 1080 Ti"),
        ("A100", "A100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "GeForce RTX 3080"),
        ("RTX 4070 Ti SUPER", "GeForce RTX 4070 Ti"),
        ("NVIDIA RTX A6000", "RTX A6000"),
        ("k80", "Tesla K80"),
    ],
)
def test_a_clear_name(typed: str, name: str) -> None:
    assert [model.name for model in find(typed)] == [name]


@each(
    ("typed", "capabilities"),
    [
        ("RTX 6000", {(7, 5), (8, 6), (8, 9)}),
        ("titan x", {(5, 2), (6, 1)}),
        ("Jetson Orin", {(8, 7)}),
        ("Voodoo 2", set()),
        ("NVIDIA", set()),
        ("", set()),
    ],
)
def test_names_of_several_models_or_none(typed: str, capabilities: set[tuple[int, int]]) -> None:
    assert {model.capability for model in find(typed)} == capabilities


@each(
    ("name", "capabilities"),
    [
        ("GeForce GT 710", {(2, 1), (3, 5)}),
        ("NVIDIA GeForce GT 730", {(2, 1), (3, 0), (3, 5)}),
        ("GT 740M", {(3, 0), (3, 5)}),
    ],
)
def test_a_name_of_several_chips_gives_each(name: str, capabilities: set[tuple[int, int]]) -> None:
    assert {model.capability for model in find(name)} == capabilities
