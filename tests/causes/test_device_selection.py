"""Edges of the causes that judge which GPUs programs get to see and use."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, machine, run

HIDDEN = cause_named("visible-devices-hides-gpu")
EXCLUDED = cause_named("platform-variable-excludes-gpu")
UNUSED = cause_named("gpu-unused")
INEFFECTIVE = cause_named("environment-variable-ineffective")
WRONG = cause_named("wrong-results-on-gpu")
BLOCKED = cause_named("compute-mode-blocks")


def variable(name: str, value: str, problem: str = "") -> str:
    return f'[environment.variables.{name}]\nvalue = "{value}"\nproblem = "{problem}"\n'


def test_a_gpu_named_twice_is_told_with_its_reason() -> None:
    snapshot = machine("""
[environment.visible_gpus]
text = "0,0"
visible = []
ignored = [{text = "0", reason = "'0' names a GPU for the second time"}]
""")
    (finding,) = run(HIDDEN, snapshot).findings
    assert "second time" in finding.message


@pytest.mark.parametrize(("kind", "count"), [("rocm", 1), ("cuda", 0)])
def test_rocm_variables_concern_rocm_builds_only(kind: str, count: int) -> None:
    snapshot = machine(f"""
start = "amd"
[target.frameworks.torch.build]
kind = "{kind}"
{variable("HIP_VISIBLE_DEVICES", "-1")}
""")
    assert len(run(HIDDEN, snapshot).findings) == count


def test_void_beside_gpus_that_were_passed_in_is_no_fault() -> None:
    snapshot = machine(f"""
[system.container]
runtime = "podman"
driver_mounts = ["/dev/nvidia0"]
{variable("NVIDIA_VISIBLE_DEVICES", "void")}
""")
    assert run(HIDDEN, snapshot).status == "passed"


def test_outside_a_container_nvidia_visible_devices_means_nothing() -> None:
    snapshot = machine(f"""
[driver]
device_nodes = {{absent = "/dev/nvidia*"}}
{variable("NVIDIA_VISIBLE_DEVICES", "none")}
""")
    assert run(HIDDEN, snapshot).status == "passed"


@each(
    ("value", "found"),
    [
        ("cpu", True),
        ("cpu,cuda", True),
        ("tpu", True),
        ("cuda", False),
        ("gpu,cpu", False),
        (" cuda , cpu", False),
        ("", False),
    ],
)
def test_the_first_platform_of_the_list_decides(value: str, found: bool) -> None:
    outcome = run(EXCLUDED, machine(variable("JAX_PLATFORMS", value)))
    assert (outcome.status == "found") is found


def test_both_variables_are_told_where_both_are_set() -> None:
    text = variable("JAX_PLATFORMS", "cpu") + variable("JAX_PLATFORM_NAME", "cpu")
    findings = run(EXCLUDED, machine(text)).findings
    assert [finding.message.partition("=")[0] for finding in findings] == [
        "JAX_PLATFORMS",
        "JAX_PLATFORM_NAME",
    ]


ON_THE_CPU = """
devices = [{name = "cpu", kind = "cpu", description = ""}]
operations = [
    {operation = "matmul", requested = "cpu", ran_on = "cpu", kind = "cpu", correct = true},
]
"""


def test_only_the_framework_on_the_cpu_is_blamed() -> None:
    findings = run(UNUSED, machine(f"[probes.jax]\n{ON_THE_CPU}")).findings
    assert [finding.subject for finding in findings] == ["jax"]


def test_the_lines_that_say_something_are_quoted_and_noise_is_not() -> None:
    snapshot = machine(f"""
only = ["tensorflow"]
[probes.tensorflow]
{ON_THE_CPU}
log = [
    "E0000 cuda_dnn.cc:8579] Unable to register cuDNN factory: already registered",
    "I0000 cpu_feature_guard.cc:227] This TensorFlow binary uses oneDNN with GPU",
    "W0000 gpu_device.cc:2365] Cannot dlopen some GPU libraries.",
    "hello",
]
""")
    (finding,) = run(UNUSED, snapshot).findings
    assert [item.text for item in finding.evidence] == [
        "W0000 gpu_device.cc:2365] Cannot dlopen some GPU libraries."
    ]


def test_devices_that_could_not_be_listed_are_a_gap_beside_a_finding() -> None:
    snapshot = machine(f"""
[probes.jax]
devices = {{unknown = "the list was cut off"}}
operations = []
[probes.torch]
{ON_THE_CPU}
""")
    outcome = run(UNUSED, snapshot)
    assert [finding.subject for finding in outcome.findings] == ["torch"]
    assert "the list was cut off" in outcome.reasons[0]


def test_a_wrong_result_is_use_of_the_gpu() -> None:
    snapshot = machine("""
only = ["torch"]
[[probes]]
name = "torch"
[[probes.operations]]
operation = "matmul"
requested = "cuda:0"
ran_on = "cuda:0"
kind = "gpu"
correct = false
""")
    assert run(UNUSED, snapshot).status == "passed"
    (finding,) = run(WRONG, snapshot).findings
    assert finding.subject == "torch"


@each(
    ("name", "subject"),
    [
        ("TF_GPU_ALLOCATOR", "tensorflow"),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "jax"),
        ("PYTORCH_CUDA_ALLOC_CONF", "torch"),
        ("TF_USE_LEGACY_KERAS", "keras"),
        ("CUDA_HOME", "machine"),
        ("XLA_FLAGS", "machine"),
    ],
)
def test_a_variable_concerns_who_reads_it(name: str, subject: str) -> None:
    (finding,) = run(INEFFECTIVE, machine(variable(name, "x", "no such word"))).findings
    assert finding.subject == subject
    assert "no such word" in finding.message


def test_what_other_causes_tell_is_not_told_twice() -> None:
    text = variable("CUDA_VISIBLE_DEVICES", "9", "there is no GPU 9")
    assert run(INEFFECTIVE, machine(text)).status == "passed"


def two_gpus(first: str, second: str) -> str:
    return f"""
[[driver.gpus]]
number = 0
compute_mode = {first}
[[driver.gpus]]
number = 1
compute_mode = {second}
"""


@each(
    ("modes", "severities", "gaps"),
    [
        (('"prohibited"', '"prohibited"'), ["error", "error"], 0),
        (('"prohibited"', '"default"'), ["warning"], 0),
        (('"default"', '"default"'), [], 0),
        (('"prohibited"', '{unknown = "lost"}'), ["warning"], 1),
    ],
)
def test_one_gpu_that_lets_programs_in_is_enough(
    modes: tuple[str, str], severities: list[str], gaps: int
) -> None:
    outcome = run(BLOCKED, machine(two_gpus(*modes)))
    assert [finding.severity for finding in outcome.findings] == severities
    assert len(outcome.reasons) == gaps


@pytest.mark.parametrize(
    ("process", "status"),
    [
        ('{pid = 1, name = "python", memory_bytes = 1}', "found"),
        ('{pid = 1, name = {unknown = "gone"}, memory_bytes = 1}', "found"),
        ('{pid = 1, name = "Xorg", memory_bytes = 1}', "passed"),
    ],
)
def test_an_exclusive_gpu_is_held_by_who_computes(process: str, status: str) -> None:
    snapshot = machine(f"""
[[driver.gpus]]
number = 0
compute_mode = "exclusive"
processes = [{process}]
""")
    assert run(BLOCKED, snapshot).status == status
