"""What a person would call the thing that changed."""

from __future__ import annotations

from tests.cases import each
from tests.kit import machine
from whygpu.causes import machine_catalogue
from whygpu.cli.output import public
from whygpu.differences.answering import Named, answer

HEALTH = """
[driver.gpus.0.health]
vbios = "96.00"
ecc = true
persistence = true
power_limit_watts = 300
power_default_watts = 300
max_clock_mhz = 1800
max_memory_clock_mhz = 8000
slowdowns = []
pcie = {width = 16, max_width = 16, generation = 4, max_generation = 4}
rows = {corrected = 0, uncorrected = 0, pending = false, failed = false}
pages_pending = {absent = "Ampere"}
nvlinks = 0
mig_layout = []
"""


def named(before: str, after: str) -> list[tuple[str, str, str]]:
    found = answer(
        Named("before", machine(before)), Named("after", machine(after)), machine_catalogue()
    )
    return [(item.kind, item.title, item.values) for item in found.differences]


@each(
    ("change", "expected"),
    [
        ('[system]\nkernel = "6.11.0"', ("system", "the kernel", "6.8.0-40-generic → 6.11.0")),
        ('[driver]\nuvm = {absent = "x"}', ("driver", "nvidia_uvm", "yes → none")),
        (
            '[driver]\nversion = "535.1"\nkernel_module = "535.1"\ncuda = "12.2"',
            ("driver", "the driver", "580.65.06 → 535.1"),
        ),
        (
            '[driver.gpus.0]\ncompute_mode = "prohibited"',
            ("gpu", "the compute mode of GPU 0", "default → prohibited"),
        ),
        (
            "[driver.gpus.0]\nmemory_used_bytes = 1073741824",
            ("moment", "the memory in use on GPU 0", "512 MiB → 1 GiB"),
        ),
        (
            '[environment.variables.TF_XLA_FLAGS]\nvalue = ""',
            ("variable", "TF_XLA_FLAGS", "not set → empty"),
        ),
        (
            '[target.packages.nvidia-cudnn-cu12]\nversion = "11.7.5.82"',
            ("package", "nvidia-cudnn-cu12", "version 9.10.2.21 → version 11.7.5.82"),
        ),
        (
            '[target.packages.nvidia-cudnn-cu12]\nversion = "11.7.5.82"',
            ("package", "nvidia-cudnn-cu12", "version 9.10.2.21 → version 11.7.5.82"),
        ),
        (
            '[target.packages.numpy]\nversion = "2.2.0"',
            ("package", "numpy", "2.1.3 → 2.2.0"),
        ),
        (
            "[target.packages.numpy]\nremove = true",
            ("package", "numpy", "2.1.3 → not installed"),
        ),
        (
            '[target.packages.jaxlib]\nversion = "0.8.0"\n[target.packages.jax]\nversion = "0.8.0"'
            '\n[target.frameworks.jax]\nversion = "0.8.0"',
            ("package", "jax", "jax 0.7.2, jaxlib 0.7.2 → jax 0.8.0, jaxlib 0.8.0"),
        ),
    ],
)
def test_one_change_is_one_difference(change: str, expected: tuple[str, str, str]) -> None:
    assert named("", change) == [expected]


@each(
    ("old", "new", "expected"),
    [
        ('vbios = "96.00"', 'vbios = "97.00"', ("gpu", "the firmware of GPU 0", "96.00 → 97.00")),
        ("ecc = true", "ecc = false", ("gpu", "the ECC mode of GPU 0", "yes → no")),
        (
            "power_limit_watts = 300",
            "power_limit_watts = 150",
            ("gpu", "the power limit of GPU 0", "300 → 150"),
        ),
        ("width = 16, max", "width = 4, max", ("gpu", "the PCIe link of GPU 0", "16 → 4")),
        (
            "generation = 4, max",
            "generation = 1, max",
            ("moment", "the PCIe link of GPU 0", "4 → 1"),
        ),
        ("nvlinks = 0", "nvlinks = 4", ("gpu", "the NVLinks of GPU 0", "0 → 4")),
    ],
)
def test_the_hardware_of_a_gpu(old: str, new: str, expected: tuple[str, str, str]) -> None:
    assert old in HEALTH
    assert named(HEALTH, HEALTH.replace(old, new)) == [expected]


def test_a_version_of_four_numbers_is_not_removed_as_an_address() -> None:
    change = '[target.packages.nvidia-cudnn-cu12]\nversion = "11.7.5.82"'
    sides = (Named("before", machine()), Named("after", machine(change)))
    shown = public(answer(*sides, machine_catalogue()))
    assert shown.differences[0].after == "version 11.7.5.82"
