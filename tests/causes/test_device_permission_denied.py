"""Which closed nodes matter, and how to be let in."""

from __future__ import annotations

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run
from whygpu import diagnose

CAUSE = cause_named("device-permission-denied")


def closed(*names: str, mode: str = "crw-rw----", group: str = "video", before: str = "") -> str:
    nodes = "".join(
        f"""
[driver.device_nodes."/dev/{name}"]
mode = "{mode}"
group = "{group}"
usable = false
"""
        for name in names
    )
    return f'probes_left_out = "--no-probe"\n{before}\n{nodes}'


@each(
    ("names", "status"),
    [
        (("nvidia0",), "found"),
        (("nvidiactl",), "found"),
        (("nvidia-uvm",), "found"),
        (("nvidia1",), "passed"),
        (("nvidia-modeset",), "passed"),
        (("nvidia-caps/nvidia-cap1",), "passed"),
    ],
)
def test_only_what_cuda_must_open_counts(names: tuple[str, ...], status: str) -> None:
    assert run(CAUSE, machine(closed(*names))).status == status


@each(
    ("runtime", "words"),
    [
        ("docker", "--group-add video"),
        ("podman", "keep-groups"),
        ("kubernetes", "supplementalGroups"),
        ("apptainer", "usermod"),
    ],
)
def test_the_group_is_joined_where_it_counts(runtime: str, words: str) -> None:
    before = f'[system.container]\nruntime = "{runtime}"\ndriver_mounts = ["/dev/nvidia0"]'
    (finding,) = run(CAUSE, machine(closed("nvidia0", before=before))).findings
    told = " ".join(f"{remedy.text} {command_of(remedy)}" for remedy in finding.remedies)
    assert words in told


def test_a_mode_for_root_alone_is_mended_by_the_mode() -> None:
    text = closed("nvidiactl", mode="crw-------", group="root")
    (finding,) = run(CAUSE, machine(text)).findings
    assert "chmod" in str(command_of(finding.remedies[0]))


def test_modes_that_allow_it_point_to_the_scheduler() -> None:
    text = closed("nvidia0", mode="crw-rw-rw-", group="root")
    (finding,) = run(CAUSE, machine(text)).findings
    assert "scheduler" in finding.remedies[0].text


def test_a_refusal_of_nvml_alone_is_only_likely() -> None:
    snapshot = machine("""
probes_left_out = "--no-probe"
[driver]
state = "denied"
detail = "Insufficient Permissions"
""")
    (finding,) = run(CAUSE, snapshot).findings
    assert finding.confidence == "likely"
    assert "Insufficient Permissions" in finding.message


def test_a_driver_that_started_all_the_same_refutes_it() -> None:
    text = closed("nvidia0").partition("\n")[2]
    assert run(CAUSE, machine(text)).status == "passed"


def test_rules_of_a_job_are_not_called_a_matter_of_modes() -> None:
    (finding,) = run(CAUSE, machine(closed("nvidia0", mode="crw-rw-rw-", group="root"))).findings
    assert "asks for no GPU" in finding.message
    assert "--gres=gpu:1" in str(command_of(finding.remedies[0]))


@each(
    ("mode", "status"),
    [
        ("crw-rw----", "found"),
        # A scheduler withholds GPUs of other jobs by rules, and leaves the mode as it is.
        ("crw-rw-rw-", "passed"),
    ],
)
def test_one_of_several_gpus_is_closed_by_its_mode(mode: str, status: str) -> None:
    nodes = closed("nvidia1", mode=mode).replace('probes_left_out = "--no-probe"', "")
    works = '[probes.cuda]\nfacts = [["cuInit", "0 CUDA_SUCCESS"]]\n'
    outcome = run(CAUSE, machine(nodes + works))
    assert outcome.status == status
    assert all(finding.effect == "none" for finding in outcome.findings)


def test_a_driver_that_lists_no_gpu_follows_from_the_device_rules() -> None:
    """A Slurm job that asked for no GPU: the driver answers, and shows what may be opened."""
    job = closed("nvidia0", mode="crw-rw-rw-", group="root", before="[driver]\ngpus = []")
    report = diagnose(machine(job))
    assert [finding.code for finding in report.root_causes] == ["WG104"]
    unseen = machine('probes_left_out = "--no-probe"\n[driver]\ngpus = []')
    assert [finding.code for finding in diagnose(unseen).root_causes] == ["WG103"]
