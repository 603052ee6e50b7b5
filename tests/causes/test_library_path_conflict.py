"""The showcase word by word, and the other ways in which a library is there and not found."""

from __future__ import annotations

from tests.kit import cause_named, command_of, examples, machine, run
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import diagnose

CAUSE = cause_named("library-path-conflict")
SITE = "~/venv/lib/python3.11/site-packages"
SHOWCASE = next(e.text for e in examples(CAUSE.page) if e.expectation == "fires")


def test_tensorflow_2_21_as_it_is_published() -> None:
    (finding,) = run(CAUSE, machine(SHOWCASE)).findings
    assert finding.subject == "tensorflow"
    assert finding.confidence == "certain"
    assert finding.message == (
        "TensorFlow 2.21.0 needs libcusolver.so.11; it is installed in "
        f"{SITE}/nvidia/cusolver/lib, but the loader does not search there when "
        "libtensorflow_cc.so.2 needs it (a defect of 2.21.0 as published: its RUNPATH lacks "
        'that folder); TensorFlow warns "Cannot dlopen some GPU libraries" without naming any, '
        "and runs on the CPU"
    )
    assert [command_of(remedy) for remedy in finding.remedies] == [
        "whygpu run -- python PROGRAM.py",
        'export LD_LIBRARY_PATH="$HOME/venv/lib/python3.11/site-packages/nvidia/cusolver/lib'
        '${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"',
        "ln -s ~/venv/lib/python3.11/site-packages/nvidia/cusolver/lib/libcusolver.so.11 "
        "~/venv/lib/python3.11/site-packages/nvidia/cublas/lib/",
        "python -m pip install 'tensorflow[and-cuda]==2.20.0'",
    ]
    assert any("nvidia/{cublas,cusparse}/lib" in item.text for item in finding.evidence)


def test_it_is_the_one_root_cause_of_the_whole_report() -> None:
    report = diagnose(machine(SHOWCASE), catalogue())
    assert [finding.code for finding in report.root_causes] == ["WG203"]
    assert report.verdict == "cpu"


def test_tensorflows_own_words_are_evidence_where_it_was_run() -> None:
    line = "Cannot dlopen some GPU libraries. Please make sure the missing libraries ..."
    text = SHOWCASE.replace('probes_left_out = "example"\n', "")
    snapshot = machine(f'{text}\n[probes.tensorflow]\nlog = ["{line}"]\noperations = []\n')
    (finding,) = run(CAUSE, snapshot).findings
    assert [item.text for item in finding.evidence if item.kind == "probe"] == [line]


def test_another_release_is_not_accused_of_the_defect() -> None:
    (finding,) = run(CAUSE, machine(SHOWCASE.replace("2.21.0", "2.20.0"))).findings
    assert "as published" not in finding.message
    assert all("2.20.0" not in str(command_of(remedy)) for remedy in finding.remedies)


def failing(library: str, folder: str) -> str:
    return f"""
[target.frameworks.tensorflow.libraries."{library}"]
outcome = "not-found"
path = ""
chain = ["{library}"]
[target.frameworks.tensorflow.libraries."{library}".other_copies]
"{SITE}/nvidia/{folder}/lib/{library}" = {{}}
"""


def test_several_libraries_are_one_finding_and_one_command() -> None:
    text = 'only = ["tensorflow"]\n[target.frameworks.tensorflow]\nversion = "2.16.1"\n'
    snapshot = machine(
        text
        + failing("libcublas.so.12", "cublas")
        + failing("libcublasLt.so.12", "cublas")
        + failing("libcufft.so.11", "cufft")
    )
    (finding,) = run(CAUSE, snapshot).findings
    assert "libcublas.so.12, libcublasLt.so.12 and libcufft.so.11; they are" in finding.message
    command = command_of(finding.remedies[1]) or ""
    assert command.count("nvidia/cublas/lib") == 1
    assert command.count("nvidia/cufft/lib") == 1
    assert (
        command_of(finding.remedies[-1]) == "python -m pip install 'tensorflow[and-cuda]==2.16.2'"
    )


def test_a_library_behind_several_others_is_one_finding_that_names_the_chain() -> None:
    chains = "".join(
        f"""
[target.frameworks.tensorflow.libraries."{library}"]
outcome = "dependency-missing"
chain = ["{library}", "libnvJitLink.so.12"]
[target.frameworks.tensorflow.libraries."{library}".other_copies]
"{SITE}/nvidia/nvjitlink/lib/libnvJitLink.so.12" = {{}}
"""
        for library in ("libcusolver.so.11", "libcusparse.so.12")
    )
    (finding,) = run(CAUSE, machine(f'only = ["tensorflow"]\n{chains}')).findings
    assert "libnvJitLink.so.12 (for libcusolver.so.11 and libcusparse.so.12)" in finding.message
    assert "when libcusolver.so.11 needs it" in finding.message


MIXED = """
only = ["tensorflow"]
[environment.variables.LD_LIBRARY_PATH]
value = "/opt/cuda-12.1/lib64:/opt/other"
[target.frameworks.tensorflow.libraries."libcusolver.so.11"]
outcome = "symbol-missing"
chain = ["libcusolver.so.11", "libcublas.so.12"]
detail = "/x/libcusolver.so.11: undefined symbol: cublasSetEnvironmentMode, version libcublas.so.12"
searched = [{path = "/opt/cuda-12.1/lib64", kind = "ld-library-path", result = "found"}]
"""


def test_an_older_copy_before_the_wheels_is_named_and_taken_off() -> None:
    (finding,) = run(CAUSE, machine(MIXED)).findings
    assert "CUDA libraries of different releases" in finding.message
    assert "undefined symbol: cublasSetEnvironmentMode" in finding.message
    assert "libcublas.so.12 was found through LD_LIBRARY_PATH" in finding.message
    assert [command_of(remedy) for remedy in finding.remedies] == [
        "whygpu run -- python PROGRAM.py",
        'export LD_LIBRARY_PATH="/opt/other"',
    ]


def test_two_frameworks_of_which_one_is_affected() -> None:
    text = SHOWCASE.replace('only = ["tensorflow"]', 'only = ["tensorflow", "torch"]')
    assert [finding.subject for finding in run(CAUSE, machine(text)).findings] == ["tensorflow"]


def test_a_gap_beside_a_finding_hides_nothing() -> None:
    text = SHOWCASE.replace('only = ["tensorflow"]', 'only = ["tensorflow", "torch"]')
    outcome = run(
        CAUSE, machine(f'{text}\n[target.frameworks.torch]\nlibraries = {{unknown = "denied"}}\n')
    )
    assert [finding.subject for finding in outcome.findings] == ["tensorflow"]
    assert outcome.reasons == ("the libraries that PyTorch 2.8.0 loads: denied",)


def test_a_file_without_the_name_asked_for_gets_a_link() -> None:
    text = SHOWCASE.replace('libcusolver.so.11" = {}', 'libcusolver.so.11.7.5" = {}')
    (finding,) = run(CAUSE, machine(text)).findings
    assert command_of(finding.remedies[0]) == (
        "ln -s libcusolver.so.11.7.5 "
        "~/venv/lib/python3.11/site-packages/nvidia/cusolver/lib/libcusolver.so.11"
    )
    # A folder on the search path is not enough here.
    assert not any("whygpu run" in (command_of(remedy) or "") for remedy in finding.remedies)


def test_the_stub_is_taken_off_the_search_list() -> None:
    snapshot = machine(
        '[environment.variables.LD_LIBRARY_PATH]\nvalue = "/usr/local/cuda/lib64/stubs:/opt"\n'
        '[driver.cuda_library]\npath = "/usr/local/cuda/lib64/stubs/libcuda.so.1"\n'
        'kind = "toolkit-stub"\n'
    )
    (finding,) = run(CAUSE, snapshot).findings
    assert finding.subject == "machine"
    assert command_of(finding.remedies[0]) == 'export LD_LIBRARY_PATH="/opt"'
