"""GPUs of other makers and builds for other makers, and the GPU behind WSL."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run
from whygpu import diagnose

CAUSE = cause_named("non-nvidia-backend")
WSL = cause_named("wsl-no-gpu")


def device(vendor: str, device_id: str, address: str = "0000:03:00.0") -> str:
    return f"""
[[graphics]]
vendor = "{vendor}"
address = "{address}"
device_id = "{device_id}"
kernel_driver = {{absent = "driver"}}
"""


@each(
    ("text", "found"),
    [
        (device("amd", "744c"), True),
        (device("amd", "15bf"), False),
        (device("amd", "15bf", "0000:05:00.0") + device("amd", "744c"), True),
        (device("intel", "56a0"), True),
        (device("intel", "46a6", "0000:00:02.0"), False),
        (device("other", "2000"), False),
        (device("apple", "Apple M2", ""), True),
    ],
)
def test_graphics_that_compute_are_told_from_those_that_draw(text: str, found: bool) -> None:
    snapshot = machine('start = "no-gpu"\nonly = ["tensorflow"]\n' + text)
    assert (run(CAUSE, snapshot).status == "found") is found


def test_an_nvidia_card_beside_it_makes_the_cuda_build_right() -> None:
    both = device("nvidia", "2684") + device("amd", "744c")
    assert run(CAUSE, machine(both)).status == "passed"


def test_a_rocm_build_may_be_for_the_amd_card_beside() -> None:
    both = device("nvidia", "2684") + device("amd", "744c")
    kind = '[target.frameworks.torch.build]\nkind = "rocm"\n'
    assert run(CAUSE, machine(both + kind)).status == "passed"


def test_each_framework_is_judged_by_its_own_build() -> None:
    snapshot = machine(
        'start = "no-gpu"\n'
        + device("amd", "744c")
        + '[target.frameworks.torch.build]\nkind = "rocm"\n'
        + '[target.frameworks.jax.build]\nkind = {unknown = "unreadable"}\n'
    )
    outcome = run(CAUSE, snapshot)
    assert [finding.subject for finding in outcome.findings] == ["tensorflow"]
    assert outcome.reasons == ("which GPUs JAX 0.7.2 was built for: unreadable",)


def test_a_metal_build_belongs_on_a_mac() -> None:
    snapshot = machine(
        'start = "no-gpu"\nonly = ["torch"]\n'
        + device("apple", "Apple M2", "")
        + '[target.frameworks.torch.build]\nkind = "metal"\n'
    )
    assert run(CAUSE, snapshot).status == "passed"


@each(("vendor", "device_id"), [("intel", "56a0"), ("intel", "0bd5"), ("amd", "744c")])
def test_a_cpu_build_beside_a_gpu_of_another_maker_gets_no_tick(
    vendor: str, device_id: str
) -> None:
    snapshot = machine(
        'start = "no-gpu"\nonly = ["torch"]\n'
        + device(vendor, device_id)
        + '[target.frameworks.torch.build]\nkind = "cpu"\n'
    )
    report = diagnose(snapshot)
    assert report.standing == "attention"
    assert "nothing to fix" not in report.headline
    (finding,) = run(CAUSE, snapshot).findings
    assert finding.severity == "warning"
    assert [remedy.action for remedy in finding.remedies] == [None]


def test_a_cpu_build_beside_graphics_in_the_processor_is_right() -> None:
    snapshot = machine(
        'start = "no-gpu"\nonly = ["torch"]\n'
        + device("intel", "46a6", "0000:00:02.0")
        + '[target.frameworks.torch.build]\nkind = "cpu"\n'
    )
    assert run(CAUSE, snapshot).status == "passed"


A_MAC = (
    'start = "no-gpu"\n[system]\nos = "darwin"\n[system.cpu]\narchitecture = "arm64"\n'
    + device("apple", "Apple M2", "")
)


def test_on_a_mac_tensorflow_gets_a_release_that_the_plugin_of_apple_works_with() -> None:
    snapshot = machine(f'only = ["tensorflow"]\n{A_MAC}')
    (finding,) = run(CAUSE, snapshot).findings
    assert finding.severity == "error"
    command = command_of(finding.remedies[0], snapshot) or ""
    assert "tensorflow==2.18.1 tensorflow-metal==1.2.0" in command


def test_on_a_mac_jax_works_on_the_cpu_and_nothing_is_advised() -> None:
    snapshot = machine(f'only = ["jax"]\n{A_MAC}')
    (finding,) = run(CAUSE, snapshot).findings
    assert finding.severity == "info"
    assert finding.remedies[0].action is None
    assert "JAX works on the CPU" in finding.remedies[0].text


WITH_DXG = """
start = "no-gpu"
[system]
wsl = 2
[driver]
device_nodes = [{path = "/dev/dxg", mode = "crw-rw-rw-", group = "root", usable = true}]
"""


def linux_library(state: str) -> str:
    return f"""{WITH_DXG}
state = {state}
[driver.cuda_library]
path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
version = "550.54.14"
kind = "driver"
"""


@pytest.mark.parametrize(
    ("state", "confidence"),
    [('"not-loaded"', "certain"), ('{unknown = "NVML was not asked"}', "likely")],
)
def test_a_linux_driver_that_failed_is_certain(state: str, confidence: str) -> None:
    (finding,) = run(WSL, machine(linux_library(state))).findings
    assert finding.confidence == confidence
    assert "550.54.14" in finding.message


def test_a_linux_driver_that_works_all_the_same_is_no_fault() -> None:
    snapshot = machine(
        linux_library('"working"') + '[probes.cuda]\nfacts = [["cuInit", "0 CUDA_SUCCESS"]]\n'
    )
    assert run(WSL, snapshot).status == "passed"


def test_a_container_in_wsl_is_the_containers_affair() -> None:
    snapshot = machine(
        WITH_DXG + '[system.container]\nruntime = "docker"\ndriver_mounts = {absent = "x"}\n'
    )
    assert run(WSL, snapshot).status == "not-applicable"
