"""Broken files: whose they are decides what to do about them."""

from __future__ import annotations

from tests.kit import cause_named, command_of, machine, run
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import diagnose

CAUSE = cause_named("library-file-broken")
SITE = "~/venv/lib/python3.11/site-packages"


def broken(folder: str, detail: str, result: str = "broken", outcome: str = "broken-file") -> str:
    return f"""
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "{outcome}"
path = "{folder}/libcudnn.so.9"
chain = ["libcudnn.so.9"]
detail = "{detail}"
searched = [{{path = "{folder}", kind = "runpath", result = "{result}"}}]
"""


def test_a_wheels_file_is_restored_by_its_wheel() -> None:
    folder = f"{SITE}/nvidia/cudnn/lib"
    text = broken(folder, f"{folder}/libcudnn.so.9: file too short")
    (finding,) = run(CAUSE, machine(text)).findings
    assert f"{folder}/libcudnn.so.9: file too short" in finding.message
    assert finding.message.count("file too short") == 1
    assert [command_of(remedy) for remedy in finding.remedies] == [
        "python -m pip install --force-reinstall --no-deps nvidia-cudnn-cu12==9.10.2.21"
    ]


def test_a_crash_while_loading_it_is_its_consequence() -> None:
    """A file that is cut short is mapped beyond its end, and reading there is a bus error."""
    folder = f"{SITE}/nvidia/cublas/lib"
    text = broken(folder, f"{folder}/libcudnn.so.9: the file is cut short") + (
        '[probes.tensorflow]\nended = "signal"\nhow = "SIGBUS"\nstage = "devices"\n'
        "operations = []\n"
    )
    report = diagnose(machine(text), catalogue())
    assert [finding.cause for finding in report.root_causes] == ["library-file-broken"]


def test_a_file_of_nobody_is_moved_out_of_the_way() -> None:
    text = broken("/opt/cudnn", "/opt/cudnn/libcudnn.so.9: invalid ELF header")
    (finding,) = run(CAUSE, machine(text)).findings
    assert command_of(finding.remedies[0]) == (
        "mv /opt/cudnn/libcudnn.so.9 /opt/cudnn/libcudnn.so.9.broken"
    )


def test_a_file_that_may_not_be_read_is_named() -> None:
    detail = "libcudnn.so.9: cannot open shared object file: Permission denied"
    (finding,) = run(CAUSE, machine(broken("/opt/cudnn", detail, outcome="not-found"))).findings
    assert "/opt/cudnn/libcudnn.so.9" in finding.message
    assert "Permission denied" in finding.message


def test_a_copy_that_was_passed_over_is_named_with_its_own_fault() -> None:
    """The loader's words are that it found none, and it has gone on searching."""
    detail = "libcudnn.so.9: cannot open shared object file: No such file or directory"
    text = broken("/opt/arm", detail, "other-architecture", "not-found") + (
        'other_copies = [{path = "/opt/arm/libcudnn.so.9", reason = "it is for aarch64, 64 bits", '
        "usable = false}]\n[cuda.copies.cudnn]\nremove = true\n"
    )
    (finding,) = run(CAUSE, machine(text)).findings
    assert "/opt/arm/libcudnn.so.9: it is for aarch64, 64 bits" in finding.message
    assert "does not try another copy" not in finding.message


def test_the_only_copy_is_for_another_processor() -> None:
    detail = "libcudnn.so.9: cannot open shared object file: No such file or directory"
    text = broken("/opt/arm", detail, "other-architecture", "not-found") + (
        "[cuda.copies.cudnn]\nremove = true\n"
    )
    (finding,) = run(CAUSE, machine(text)).findings
    assert "/opt/arm/libcudnn.so.9" in finding.message


def test_a_folder_that_the_user_added_is_taken_off_the_search_path_first() -> None:
    """The default machine has an intact copy of the wheel, which the loader then finds."""
    text = broken("/opt/cudnn", "/opt/cudnn/libcudnn.so.9: file too short") + (
        '[environment.variables.LD_LIBRARY_PATH]\nvalue = "/opt/cudnn:/opt/other"\n'
    )
    (finding,) = run(CAUSE, machine(text)).findings
    assert [command_of(remedy) for remedy in finding.remedies] == [
        'export LD_LIBRARY_PATH="/opt/other"',
        "mv /opt/cudnn/libcudnn.so.9 /opt/cudnn/libcudnn.so.9.broken",
    ]
    assert f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9 is intact" in finding.remedies[0].text


def test_the_search_path_stays_if_no_other_copy_would_be_found() -> None:
    text = broken("/opt/cudnn", "/opt/cudnn/libcudnn.so.9: file too short") + (
        '[environment.variables.LD_LIBRARY_PATH]\nvalue = "/opt/cudnn"\n'
        "[cuda.copies.cudnn]\nremove = true\n"
    )
    (finding,) = run(CAUSE, machine(text)).findings
    assert [command_of(remedy) for remedy in finding.remedies] == [
        "mv /opt/cudnn/libcudnn.so.9 /opt/cudnn/libcudnn.so.9.broken"
    ]


def own_module(name: str, python: str = "~/venv/bin/python") -> str:
    """TensorFlow's own library is damaged; the interpreter opens the module that links it."""
    folder = f"{SITE}/tensorflow"
    return f"""
start = "no-gpu"
only = ["{name}"]
[target.frameworks.{name}.libraries."{folder}/_imported.so"]
requester = "{python}"
required = true
outcome = "broken-file"
path = "{folder}/_imported.so"
chain = ["{folder}/_imported.so", "libtensorflow_framework.so.2"]
detail = "{folder}/libtensorflow_framework.so.2: the file is truncated"
[probes.{name}]
ended = "signal"
how = "SIGBUS"
stage = "import"
operations = []
"""


def test_a_damaged_file_of_its_own_breaks_the_import_with_or_without_a_gpu() -> None:
    text = own_module("tensorflow")
    for start in ("no-gpu", "healthy"):
        report = diagnose(machine(text.replace("no-gpu", start)), catalogue())
        (finding,) = report.root_causes
        assert (finding.cause, finding.effect) == ("library-file-broken", "broken")
        assert finding.message.endswith("TensorFlow cannot be imported")
        # There is no other copy that the loader would find if this one were renamed.
        assert command_of(finding.remedies[-1]) == (
            "python -m pip install --force-reinstall --no-deps tensorflow==2.20.0"
        )


def test_a_damaged_plug_in_of_jax_does_not_matter_without_a_gpu() -> None:
    assert run(CAUSE, machine(own_module("jax"))).status == "not-applicable"
    opened_later = own_module("tensorflow", f"{SITE}/tensorflow/libtensorflow_cc.so.2")
    assert run(CAUSE, machine(opened_later)).status == "not-applicable"
