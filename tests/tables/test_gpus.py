"""GPU models are found by the names people type."""

from __future__ import annotations

from tests.cases import each
from whygpu.tables.architectures import TEGRA
from whygpu.tables.gpus import MODELS, find


def test_every_row_has_nvidias_page_and_a_name_of_its_own() -> None:
    assert len({model.name for model in MODELS}) == len(MODELS)
    for model in MODELS:
        assert model.source.startswith("https://developer.nvidia.com/cuda-")
        assert find(model.name) == (model,)


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
