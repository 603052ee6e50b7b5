"""The data sheets' figures: plausible, and found by the driver's names."""

from __future__ import annotations

import pytest

from tests.cases import each
from whygpu.model.driver import PcieLink
from whygpu.model.stress import RATES
from whygpu.tables.gpu_speeds import CARDS, LEAST_SHARE, card_peaks, least_share, link_peak, peak_of


@each("name", CARDS)
def test_a_row_is_plausible(name: str) -> None:
    peaks = CARDS[name]
    assert 100 < peaks.memory < 10_000
    assert 1 < peaks.float32 < 200
    # With sparsity, the figures would be twice as high; TF32 is never below float32.
    if peaks.tf32 is not None:
        assert peaks.half is not None
        assert peaks.float32 <= peaks.tf32 <= peaks.half
        assert 1.9 <= peaks.half / peaks.tf32 <= 2.1
    assert peaks.source.startswith("https://")


CHIPS = {
    "Tesla P100-SXM2-16GB": (3584, 1.480, 4096, 1.43),
    "Tesla P100-PCIE-16GB": (3584, 1.303, 4096, 1.43),
    "Tesla P100-PCIE-12GB": (3584, 1.303, 3072, 1.43),
    "Tesla V100-SXM2-16GB": (5120, 1.530, 4096, 1.756),
    "Tesla V100-SXM2-32GB": (5120, 1.530, 4096, 1.756),
    "Tesla V100-PCIE-16GB": (5120, 1.380, 4096, 1.756),
    "Tesla V100-PCIE-32GB": (5120, 1.380, 4096, 1.756),
    "Tesla V100S-PCIE-32GB": (5120, 1.597, 4096, 2.214),
    "Tesla T4": (2560, 1.590, 256, 10.0),
    "A2": (1280, 1.770, 128, 12.5),
    "A10": (9216, 1.695, 384, 12.5),
    "A30": (3584, 1.440, 3072, 2.43),
    "A40": (10752, 1.740, 384, 14.5),
    "A100-SXM4-40GB": (6912, 1.410, 5120, 2.43),
    "A100-PCIE-40GB": (6912, 1.410, 5120, 2.43),
    "A100-SXM4-80GB": (6912, 1.410, 5120, 3.186),
    "A100 80GB PCIe": (6912, 1.410, 5120, 3.024),
    "A100-PCIE-80GB": (6912, 1.410, 5120, 3.024),
    "L4": (7424, 2.040, 192, 12.5),
    "L40": (18176, 2.490, 384, 18.0),
    "L40S": (18176, 2.520, 384, 18.0),
    "H100 80GB HBM3": (16896, 1.980, 5120, 5.24),
    "H100 PCIe": (14592, 1.755, 5120, 3.2),
    "H100 NVL": (16896, 1.785, 6016, 5.2),
    "H200": (16896, 1.980, 6144, 6.25),
    "H200 NVL": (16896, 1.785, 6144, 6.25),
    "B200": (18944, 1.980, 8192, 7.5),
    "GeForce GTX 1080 Ti": (3584, 1.582, 352, 11.0),
    "GeForce RTX 2080": (2944, 1.710, 256, 14.0),
    "GeForce RTX 2080 Ti": (4352, 1.545, 352, 14.0),
    "TITAN RTX": (4608, 1.770, 384, 14.0),
    "Quadro RTX 6000": (4608, 1.770, 384, 14.0),
    "GeForce RTX 3070": (5888, 1.725, 256, 14.0),
    "GeForce RTX 3080": (8704, 1.710, 320, 19.0),
    "GeForce RTX 3090": (10496, 1.695, 384, 19.5),
    "RTX A6000": (10752, 1.800, 384, 16.0),
    "GeForce RTX 4080": (9728, 2.505, 256, 22.4),
    "GeForce RTX 4090": (16384, 2.520, 384, 21.0),
    "GeForce RTX 5080": (10752, 2.617, 256, 30.0),
    "GeForce RTX 5090": (21760, 2.407, 512, 28.0),
}
"""Cores, boost clock in GHz, bits of the memory bus, and Gbit/s of each of its lines."""


@each("name", CARDS)
def test_a_row_follows_from_the_chip_and_its_memory(name: str) -> None:
    cores, clock, bits, rate = CHIPS[name]
    assert CARDS[name].float32 == pytest.approx(2 * cores * clock / 1000, rel=0.012)
    assert CARDS[name].memory == pytest.approx(bits / 8 * rate, rel=0.025)


@each(
    ("driver_name", "memory"),
    [
        ("NVIDIA H200", 4.8e12),
        ("NVIDIA A100-SXM4-40GB", 1.555e12),
        ("NVIDIA A100-SXM4-80GB", 2.039e12),
        ("Tesla V100-SXM2-16GB", 9e11),
        ("NVIDIA GeForce RTX 4090", 1.008e12),
    ],
)
def test_the_driver_s_name_finds_the_card(driver_name: str, memory: float) -> None:
    peaks = card_peaks(driver_name)
    assert peaks is not None
    assert peak_of("memory", peaks) == memory


def test_a_card_of_a_similar_name_is_another_card() -> None:
    assert card_peaks("NVIDIA GeForce RTX 4090 Laptop GPU") is None
    assert card_peaks("NVIDIA H100 80GB HBM3 MIG 1g.10gb") is None


def test_a_link_has_the_speed_of_its_lanes() -> None:
    assert link_peak(PcieLink(16, 16, 1, 4)) == 1.969 * 16 * 1e9
    assert link_peak(PcieLink(16, 16, 9, 9)) is None


def test_every_rate_has_a_bound() -> None:
    assert set(LEAST_SHARE) == set(RATES)
    assert least_share("bfloat16", "NVIDIA L4") < least_share("bfloat16", "NVIDIA H200")
    assert least_share("memory", "NVIDIA L4") == LEAST_SHARE["memory"]
