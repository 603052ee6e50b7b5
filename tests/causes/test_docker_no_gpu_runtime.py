"""What each kind of container lacks, and that the advice is for that kind."""

from __future__ import annotations

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run

CAUSE = cause_named("docker-no-gpu-runtime")

NOTHING_PASSED_IN = """
probes_left_out = "--no-probe"
[driver]
state = "missing"
cuda_library = {absent = "libcuda.so.1"}
nvml_library = {absent = "libnvidia-ml.so.1"}
device_nodes = {absent = "/dev/nvidia*"}
gpus = {unknown = "NVML could not tell"}
"""


def in_container(runtime: str, facts: str = NOTHING_PASSED_IN) -> str:
    return f"""{facts}
[system.container]
runtime = "{runtime}"
driver_mounts = {{absent = "mountinfo"}}
"""


@each(
    ("runtime", "words"),
    [
        ("docker", "--gpus all"),
        ("podman", "nvidia.com/gpu=all"),
        ("kubernetes", "nvidia.com/gpu: 1"),
        ("containerd", "nerdctl"),
        ("apptainer", "--nv"),
        ("lxc", "nvidia.runtime"),
        ("nspawn", "--bind=/dev/nvidia0"),
        ("other", "--gpus all"),
    ],
)
def test_the_advice_is_for_this_kind_of_container(runtime: str, words: str) -> None:
    (finding,) = run(CAUSE, machine(in_container(runtime))).findings
    assert runtime in finding.message
    told = " ".join(f"{remedy.text} {command_of(remedy)}" for remedy in finding.remedies)
    assert words in told


@each(
    ("runtime", "value", "layer"),
    [
        ("kubernetes", "", "nothing shows that its manifest asks"),
        ("kubernetes", "all", "nothing shows that its manifest asks"),
        ("kubernetes", "GPU-3f2c9a10-0000-0000-0000-000000000000", "the runtime of the node"),
        ("kubernetes", "GPU-3f2c…", "the runtime of the node"),
        ("docker", "all", "another runtime has started this container"),
        ("docker", "", "/dev/nvidia0 was not passed in"),
    ],
)
def test_the_layer_that_withheld_the_gpu_is_named(runtime: str, value: str, layer: str) -> None:
    variable = f'[environment.variables.NVIDIA_VISIBLE_DEVICES]\nvalue = "{value}"\n'
    facts = NOTHING_PASSED_IN + (variable if value else "")
    (finding,) = run(CAUSE, machine(in_container(runtime, facts))).findings
    assert layer in finding.message


def test_a_sandbox_that_hides_the_module_of_a_card_in_use_is_no_missing_driver() -> None:
    text = NOTHING_PASSED_IN + 'kernel_module = {absent = "/sys/module/nvidia"}\n'
    (finding,) = run(CAUSE, machine(in_container("docker", text))).findings
    assert "not loaded" not in finding.message


def test_a_host_without_the_driver_is_told_first() -> None:
    text = NOTHING_PASSED_IN + 'kernel_module = {absent = "/sys/module/nvidia"}\n'
    text += '[graphics."0000:41:00.0"]\nkernel_driver = {absent = "/sys/bus/pci"}\n'
    (finding,) = run(CAUSE, machine(in_container("docker", text))).findings
    assert "kernel module is not loaded" in finding.message
    assert "on the host" in finding.remedies[0].text


def test_a_node_passed_by_hand_without_its_companions() -> None:
    nodes = """
probes_left_out = "--no-probe"
[driver]
device_nodes = [{path = "/dev/nvidia0", mode = "crw-rw-rw-", group = "root", usable = true}]
"""
    (finding,) = run(CAUSE, machine(in_container("docker", nodes))).findings
    assert "/dev/nvidiactl and /dev/nvidia-uvm" in finding.message


def test_missing_compute_capability_is_named() -> None:
    facts = """
probes_left_out = "--no-probe"
[driver]
cuda_library = {absent = "libcuda.so.1"}
[environment.variables.NVIDIA_DRIVER_CAPABILITIES]
value = "utility"
"""
    (finding,) = run(CAUSE, machine(in_container("docker", facts))).findings
    assert "NVIDIA_DRIVER_CAPABILITIES=utility" in finding.message
    first = command_of(finding.remedies[0])
    assert first is not None
    assert "NVIDIA_DRIVER_CAPABILITIES=compute" in first


@each("value", ["compute,utility", "all", ""])
def test_capabilities_with_compute_are_not_blamed(value: str) -> None:
    facts = f"""
probes_left_out = "--no-probe"
[driver]
cuda_library = {{absent = "libcuda.so.1"}}
[environment.variables.NVIDIA_DRIVER_CAPABILITIES]
value = "{value}"
"""
    (finding,) = run(CAUSE, machine(in_container("docker", facts))).findings
    assert "lacks compute" not in finding.message
    assert command_of(finding.remedies[0]) == "docker run --gpus all ..."


def test_one_open_card_of_two_is_enough() -> None:
    facts = """
probes_left_out = "--no-probe"
[driver.device_nodes."/dev/nvidia1"]
mode = "crw-rw-rw-"
group = "root"
usable = false
"""
    assert run(CAUSE, machine(in_container("docker", facts))).status == "passed"


def test_a_mounted_library_of_another_version_is_the_hosts_affair() -> None:
    snapshot = machine("""
probes_left_out = "--no-probe"
[driver]
state = "mismatched"
[driver.cuda_library]
path = "/usr/lib64/libcuda.so.1"
version = "550.54.14"
[driver.nvml_library]
path = "/usr/lib64/libnvidia-ml.so.1"
version = "550.54.14"
[system.container]
runtime = "docker"
driver_mounts = ["/usr/lib64/libcuda.so.550.54.14", "/usr/lib64/libnvidia-ml.so.550.54.14"]
""")
    assert run(CAUSE, snapshot).status == "passed"
    assert run(cause_named("driver-library-version-mismatch"), snapshot).status == "found"


def test_a_container_in_wsl_without_traces_of_a_gpu_is_undetermined() -> None:
    snapshot = machine("""
start = "no-gpu"
[system]
wsl = 2
[system.container]
runtime = "docker"
driver_mounts = {absent = "mountinfo"}
""")
    assert run(CAUSE, snapshot).status == "undetermined"
