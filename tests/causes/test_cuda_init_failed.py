"""What is said of each way in which the driver can fail to start."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run

CAUSE = cause_named("cuda-init-failed")


@each(
    ("code", "words"),
    [
        ("999 CUDA_ERROR_UNKNOWN", "nvidia_uvm"),
        ("3 CUDA_ERROR_NOT_INITIALIZED", "device nodes"),
        ("46 CUDA_ERROR_DEVICE_UNAVAILABLE", "compute mode"),
        ("304 CUDA_ERROR_OPERATING_SYSTEM", "operating system"),
        ("803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "kernel module"),
    ],
)
def test_a_code_is_said_with_its_meaning(code: str, words: str) -> None:
    (finding,) = run(CAUSE, machine(f'[probes.cuda]\nfacts = [["cuInit", "{code}"]]')).findings
    assert code in finding.message
    assert words in finding.message


def test_a_code_without_a_row_is_still_reported() -> None:
    (finding,) = run(CAUSE, machine('[probes.cuda]\nfacts = [["cuInit", "12345"]]')).findings
    assert "cuInit returned 12345" in finding.message
    assert finding.remedies


def test_the_compat_folder_is_the_first_thing_to_leave_out() -> None:
    snapshot = machine("""
[driver.cuda_library]
path = "/usr/local/cuda-13.1/compat/libcuda.so.1"
kind = "compat"
[probes.cuda]
facts = [["cuInit", "804 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"]]
""")
    (finding,) = run(CAUSE, snapshot).findings
    assert "/usr/local/cuda-13.1/compat" in str(command_of(finding.remedies[0]))


@pytest.mark.parametrize(("mig", "named"), [("true", True), ("false", False)])
def test_mig_is_named_where_it_is_on(mig: str, named: bool) -> None:
    snapshot = machine(f"""
[[driver.gpus]]
number = 0
mig = {mig}
[probes.cuda]
devices = []
facts = [["cuInit", "100 CUDA_ERROR_NO_DEVICE"]]
""")
    (finding,) = run(CAUSE, snapshot).findings
    assert ("MIG" in finding.message) is named


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("[]", "CUDA sees only instances that were created, and there is none"),
        ('{unknown = "NVML: Unknown Error"}', "whether there are any is not known"),
        ('["MIG 1g.10gb"]', ""),
    ],
)
def test_an_instance_is_created_only_if_there_is_none(layout: str, words: str) -> None:
    snapshot = machine(f"""
[driver.gpus.0]
mig = true
[driver.gpus.0.health]
mig_layout = {layout}
[probes.cuda]
devices = []
facts = [["cuInit", "100 CUDA_ERROR_NO_DEVICE"]]
""")
    (finding,) = run(CAUSE, snapshot).findings
    commands = [command_of(remedy) for remedy in finding.remedies]
    assert words in finding.message
    assert ("sudo nvidia-smi mig -cgi 0 -C" in commands) is bool(words)


@each(
    ("probe", "words"),
    [
        (
            'facts = [["libcuda.so.1", "wrong ELF class: ELFCLASS32"]]\ndevices = {absent = "x"}',
            "ELFCLASS32",
        ),
        ('ended = "signal"\nhow = "SIGSEGV"\nstage = "cuInit"\nfacts = []', "SIGSEGV (at: cuInit)"),
        ('devices = {unknown = "cuDeviceGetCount: 3 X"}', "cuDeviceGetCount: 3 X"),
        ("devices = []", "counts no GPU"),
    ],
)
def test_a_failure_without_a_code_is_said_in_its_own_words(probe: str, words: str) -> None:
    (finding,) = run(CAUSE, machine(f"[probes.cuda]\n{probe}")).findings
    assert words in finding.message


def test_no_library_at_all_is_left_to_the_cause_that_says_so() -> None:
    snapshot = machine("""
[driver]
cuda_library = {absent = "libcuda.so.1"}
[probes.cuda]
devices = {absent = "libcuda.so.1"}
facts = [["libcuda.so.1", "cannot open shared object file"]]
""")
    assert run(CAUSE, snapshot).status == "passed"


@pytest.mark.parametrize("ended", ["exception", "exit", "not-started"])
def test_a_probe_that_failed_by_itself_is_a_gap(ended: str) -> None:
    snapshot = machine(f"""
[probes.cuda]
ended = "{ended}"
how = "ImportError: no ctypes"
stage = "start"
devices = {{unknown = "x"}}
facts = []
""")
    outcome = run(CAUSE, snapshot)
    assert outcome.status == "undetermined"
    assert "ImportError: no ctypes" in outcome.reasons[0]


def test_nvml_may_fail_while_cuda_starts() -> None:
    (finding,) = run(
        CAUSE, machine('[driver]\nstate = "failed"\ndetail = "Unknown Error"')
    ).findings
    assert "CUDA itself starts" in finding.message
    assert finding.confidence == "likely"


def test_under_wsl_the_advice_is_for_windows() -> None:
    snapshot = machine("""
[system]
wsl = 2
[probes.cuda]
facts = [["cuInit", "999 CUDA_ERROR_UNKNOWN"]]
""")
    (finding,) = run(CAUSE, snapshot).findings
    assert [command_of(remedy) for remedy in finding.remedies] == ["wsl --update; wsl --shutdown"]


def test_a_code_that_is_no_number_is_not_judged() -> None:
    outcome = run(CAUSE, machine('[probes.cuda]\nfacts = [["cuInit", "gone"]]'))
    assert outcome.status == "undetermined"


@each(
    ("detail", "command"),
    [
        ("GPU requires reset", "sudo nvidia-smi --gpu-reset"),
        ("Insufficient External Power", None),
        ("Unknown Error", "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"),
    ],
)
def test_the_reason_that_nvml_gives_comes_before_a_guess(detail: str, command: str | None) -> None:
    snapshot = machine(f"""
[driver]
state = "failed"
detail = "{detail}"
[probes.cuda]
facts = [["cuInit", "999 CUDA_ERROR_UNKNOWN"]]
""")
    (finding,) = run(CAUSE, snapshot).findings
    assert (detail in finding.message) == (detail != "Unknown Error")
    first = finding.remedies[0]
    assert (command_of(first) if first.action else None) == command


def test_a_jetson_has_no_nvidia_uvm_to_reload() -> None:
    snapshot = machine("""
[graphics."0000:41:00.0"]
device_id = "tegra234"
[probes.cuda]
facts = [["cuInit", "999 CUDA_ERROR_UNKNOWN"]]
""")
    (finding,) = run(CAUSE, snapshot).findings
    assert "video,render" in (command_of(finding.remedies[0]) or "")
    assert "uvm" not in " ".join(command_of(remedy) or "" for remedy in finding.remedies)


def test_a_driver_that_fails_is_named_also_if_it_is_not_known_whether_this_is_a_container() -> None:
    snapshot = machine("""
[system]
container = {unknown = "/proc/1/cgroup: Permission denied"}
[driver.gpus.0]
mig = true
[driver.gpus.0.health]
mig_layout = []
[probes.cuda]
devices = []
facts = [["cuInit", "100 CUDA_ERROR_NO_DEVICE"]]
""")
    (finding,) = run(CAUSE, snapshot).findings
    assert "whether there are any is not known" in finding.message
