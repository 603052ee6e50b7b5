"""ROCm builds on machines with AMD GPUs: what the pages of the causes do not show."""

from __future__ import annotations

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run
from whygpu import diagnose
from whygpu.model.remedy import SetVariable
from whygpu.model.snapshot import Snapshot

NODES = """[
    {path = "/dev/kfd", mode = "crw-rw----", group = "render", usable = true},
    {path = "/dev/dri/renderD128", mode = "crw-rw----", group = "render", usable = true},
    {path = "/dev/dri/renderD129", mode = "crw-rw----", group = "render", usable = false},
]"""


def amd(
    gpus: str = '[{node = 1, target = "gfx1032"}]',
    nodes: str = NODES,
    targets: str = '["gfx90a", "gfx1030", "gfx1100"]',
    driver: str = '"amdgpu"',
    more: str = "",
) -> Snapshot:
    return machine(f"""
start = "amd"
[graphics."0000:03:00.0"]
device_id = "73ff"
kernel_driver = {driver}
[amd]
gpus = {gpus}
device_nodes = {nodes}
rocm = {{absent = "/opt/rocm/.info/version"}}
[target.frameworks.torch.build]
amd_targets = {targets}
{more}
""")


TARGET = cause_named("rocm-target-missing")
PERMISSION = cause_named("kfd-not-permitted")
DRIVER = cause_named("amdgpu-not-loaded")


def test_the_override_is_offered_for_a_close_relative_that_the_build_knows() -> None:
    (finding,) = run(TARGET, amd()).findings
    assert [remedy.action for remedy in finding.remedies] == [
        SetVariable("HSA_OVERRIDE_GFX_VERSION", "10.3.0"),
        None,
    ]
    (finding,) = run(TARGET, amd(targets='["gfx90a"]')).findings
    assert [remedy.action for remedy in finding.remedies] == [None]
    (finding,) = run(TARGET, amd(gpus='[{node = 1, target = "gfx803"}]')).findings
    assert [remedy.action for remedy in finding.remedies] == [None]


def test_one_gpu_that_has_code_is_enough() -> None:
    two = '[{node = 1, target = "gfx1036"}, {node = 2, target = "gfx1100"}]'
    assert run(TARGET, amd(gpus=two)).status == "passed"


def test_a_value_that_is_no_override_changes_nothing() -> None:
    wrong = '[environment.variables.HSA_OVERRIDE_GFX_VERSION]\nvalue = "gfx1030"\n'
    assert run(TARGET, amd(more=wrong)).status == "found"


def test_one_render_file_that_may_be_opened_is_enough() -> None:
    assert run(PERMISSION, amd()).status == "passed"


def test_a_closed_render_file_is_as_bad_as_a_closed_kfd() -> None:
    closed = NODES.replace("true", "false").replace("false", "true", 1)
    (finding,) = run(PERMISSION, amd(nodes=closed)).findings
    assert "/dev/dri/renderD128" in finding.message
    assert "group render" in finding.message


def test_a_missing_driver_explains_the_rest() -> None:
    report = diagnose(
        amd(
            gpus='{absent = "/sys/class/kfd/kfd/topology/nodes"}',
            nodes='{absent = "/dev/kfd, /dev/dri/renderD*"}',
            driver='{absent = "/sys/bus/pci/devices/0000:03:00.0/driver"}',
        )
    )
    assert [finding.cause for finding in report.root_causes if finding.subject == "torch"] == [
        "amdgpu-not-loaded"
    ]


def test_a_likely_finding_leaves_the_verdict_open() -> None:
    left_out = "the frameworks were not run (--no-probe)"
    closed = amd(nodes=NODES.replace("true", "false"), targets='["gfx1032"]')
    report = diagnose(closed._replace(probes=(), probes_left_out=left_out))
    (verdict,) = report.frameworks
    assert verdict.verdict == "unknown"
    assert verdict.summary == f"something is likely to prevent it, but {left_out}"


def test_wsl_has_another_driver() -> None:
    nothing = '{absent = "/sys/class/kfd/kfd/topology/nodes"}'
    snapshot = amd(gpus=nothing, more="[system]\nwsl = 2\n")
    assert run(DRIVER, snapshot).status == "not-applicable"


def test_a_machine_of_nvidia_is_not_asked() -> None:
    for cause in (TARGET, PERMISSION, DRIVER):
        assert run(cause, machine("")).status == "not-applicable"


def with_override(value: str, target: str) -> Snapshot:
    gpus = f'[{{node = 1, target = "{target}"}}]'
    return amd(gpus, more=f'[environment.variables.HSA_OVERRIDE_GFX_VERSION]\nvalue = "{value}"\n')


@each(
    ("value", "target", "status"),
    [
        ("11.0.0", "gfx1032", "found"),
        ("10.3.0", "gfx1032", "passed"),
        ("10.3.0", "gfx1010", "passed"),
        ("9.0.10", "gfx1100", "found"),
    ],
)
def test_a_gpu_cannot_stand_for_one_of_another_generation(
    value: str, target: str, status: str
) -> None:
    assert run(TARGET, with_override(value, target)).status == status


def test_the_override_that_fits_is_offered_instead_of_the_wrong_one() -> None:
    (finding,) = run(TARGET, with_override("11.0.0", "gfx1032")).findings
    assert "another generation" in finding.message
    assert finding.remedies[0].action == SetVariable("HSA_OVERRIDE_GFX_VERSION", "10.3.0")


def container(runtime: str) -> str:
    return f'[system.container]\nruntime = "{runtime}"\ndriver_mounts = {{absent = "mounts"}}\n'


@each(
    ("where", "command"),
    [
        ("", 'sudo usermod -aG render "$USER"'),
        (container("docker"), '--group-add "$(stat -c %g /dev/kfd)"'),
        (container("podman"), "--group-add keep-groups"),
        (container("apptainer"), "apptainer exec --rocm"),
    ],
)
def test_the_way_to_the_files_is_that_of_the_place(where: str, command: str) -> None:
    closed = NODES.replace("true", "false")
    (finding,) = run(PERMISSION, amd(nodes=closed, more=where)).findings
    assert command in str(command_of(finding.remedies[0]))


def test_nobody_is_told_to_join_root() -> None:
    of_root = NODES.replace("true", "false").replace('group = "render"', 'group = "root"')
    (finding,) = run(PERMISSION, amd(nodes=of_root)).findings
    assert command_of(finding.remedies[0]) is None
    assert "udev" in finding.remedies[0].text


def test_a_build_that_computes_on_the_cpu_without_a_reason_is_reported() -> None:
    healthy = amd('[{node = 1, target = "gfx1100"}]')
    report = diagnose(healthy)
    assert [root.code for root in report.root_causes] == ["WG404"]


def test_a_cpu_build_beside_an_amd_gpu_does_not_make_the_gpu_disappear() -> None:
    cpu = '[target.frameworks.torch.build]\nkind = "cpu"\n'
    report = diagnose(
        machine(f"""
start = "amd"
{cpu}
""")
    )
    assert "no NVIDIA GPU, but a GPU of AMD at 0000:03:00.0, which no build here is for" in (
        report.headline
    )
