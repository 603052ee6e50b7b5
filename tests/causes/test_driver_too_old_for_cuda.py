"""Driver floors at their edges, and drivers that are not what their number says."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run

CAUSE = cause_named("driver-too-old-for-cuda")


def torch(driver: str, cuda: str, more: str = "") -> str:
    return (
        f'only = ["torch"]\n{more}\n[driver]\nversion = "{driver}"\n'
        f'[target.frameworks.torch.build]\ncuda = "{cuda}"\n'
    )


@each(
    ("driver", "cuda", "status"),
    [
        ("525.60.13", "12.9", "passed"),
        ("525.60.12", "12.0", "found"),
        ("580.65.06", "13.1", "passed"),
        ("579.99", "13.0", "found"),
        ("450.80.02", "11.8", "passed"),
        ("450.51.05", "11.8", "found"),
        ("450.51.05", "11.0", "passed"),
        # Before CUDA 11 every release has a floor of its own.
        ("418.39", "10.1", "passed"),
        ("418.39", "10.2", "found"),
        # "10" may be any of three releases.
        ("440.33", "10", "passed"),
        ("418.39", "10", "undetermined"),
        ("390.46", "10", "found"),
    ],
)
def test_the_floor_itself_is_enough(driver: str, cuda: str, status: str) -> None:
    assert run(CAUSE, machine(torch(driver, cuda))).status == status


def test_only_the_framework_that_is_too_new_is_blamed() -> None:
    snapshot = machine(
        'only = ["jax", "torch"]\n[driver]\nversion = "550.54.14"\ncuda = "12.4"\n'
        '[target.frameworks.torch.build]\ncuda = "13.0"\n'
    )
    (finding,) = run(CAUSE, snapshot).findings
    assert finding.subject == "torch"
    assert "580" in finding.message
    assert "550.54.14, whose newest CUDA version is 12.4" in finding.message
    commands = [command_of(remedy, snapshot) for remedy in finding.remedies]
    assert commands == [
        "python -m pip uninstall -y torch && python -m pip install torch==2.8.0",
        "sudo ubuntu-drivers install",
    ]


def test_a_release_not_on_record_hides_nothing() -> None:
    snapshot = machine(
        'only = ["jax", "torch"]\n[driver]\nversion = "470.57.02"\ncuda = "11.4"\n'
        '[target.frameworks.jax.build]\ncuda = "99.0"\n'
    )
    outcome = run(CAUSE, snapshot)
    assert [finding.subject for finding in outcome.findings] == ["torch"]
    (reason,) = outcome.reasons
    assert "CUDA 99.0" in reason
    assert "no minimum driver is on record" in reason


def test_the_compatibility_package_stands_in_for_a_newer_driver() -> None:
    package = (
        '[driver.cuda_library]\npath = "/usr/local/cuda/compat/libcuda.so.1"\n'
        'version = "550.54.14"\nkind = "compat"\n'
    )
    assert run(CAUSE, machine(torch("470.57.02", "12.4") + package)).status == "passed"


@pytest.mark.parametrize(("cuda", "status"), [("12.0", "passed"), ("11.8", "found")])
def test_under_wsl_the_driver_is_judged_by_its_cuda_version(cuda: str, status: str) -> None:
    # 527.41 is a Windows driver's number: as a Linux one it would be judged by another scale.
    snapshot = machine(
        f'only = ["torch"]\n[system]\nwsl = 2\n[driver]\nversion = "527.41"\ncuda = "{cuda}"\n'
    )
    outcome = run(CAUSE, snapshot)
    assert outcome.status == status
    if outcome.findings:
        assert "Windows" in outcome.findings[0].remedies[-1].text


def test_tensorflow_is_offered_the_newest_release_that_fits() -> None:
    snapshot = machine('only = ["tensorflow"]\n[driver]\nversion = "470.57.02"\ncuda = "11.4"\n')
    (finding,) = run(CAUSE, snapshot).findings
    assert "TensorFlow 2.14" in finding.remedies[0].text


def test_without_a_driver_there_is_nothing_to_compare() -> None:
    snapshot = machine(
        'only = ["torch"]\n[driver]\nversion = {absent = "no driver"}\n'
        'cuda = {absent = "no driver"}\n'
    )
    assert run(CAUSE, snapshot).status == "not-applicable"


@each(
    ("gpu", "capability", "says"),
    [
        (
            "Tesla K80",
            "3.7",
            "Keep this driver: branch 470 is the last one that supports Tesla K80",
        ),
        ("Tesla P100", "6.0", "525.60.13 or newer, up to branch 580, the last one for Tesla P100,"),
        ("RTX 3090", "8.6", "Or update the NVIDIA driver to 525.60.13 or newer, then restart"),
    ],
)
def test_no_driver_is_advised_that_has_dropped_the_gpu(
    gpu: str, capability: str, says: str
) -> None:
    text = f"""
        only = ["torch"]
        [driver]
        version = "470.57.02"
        cuda = "11.4"
        [driver.gpus.0]
        name = "{gpu}"
        compute_capability = "{capability}"
    """
    (found,) = run(CAUSE, machine(text)).findings
    assert says in found.remedies[-1].text
