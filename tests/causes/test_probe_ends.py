"""framework-import-fails, framework-crashes and framework-hangs: how a probe can end."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run

ENDS = {
    "framework-import-fails": 'ended = "exception"\nstage = "import"\nhow = "ImportError: x"',
    "framework-crashes": 'ended = "signal"\nstage = "import"\nhow = "SIGSEGV"',
    "framework-hangs": 'ended = "timed-out"\nstage = "devices"\nhow = "120 s"',
}


@each("slug", ENDS)
@each("end", ENDS)
def test_each_end_belongs_to_one_cause(slug: str, end: str) -> None:
    outcome = run(cause_named(slug), machine(f"[probes.torch]\n{ENDS[end]}"))
    assert outcome.status == ("found" if slug == end else "passed")


@pytest.mark.parametrize("slug", ENDS)
def test_only_the_framework_concerned_is_blamed(slug: str) -> None:
    outcome = run(cause_named(slug), machine(f"[probes.jax]\n{ENDS[slug]}"))
    assert [finding.subject for finding in outcome.findings] == ["jax"]


@pytest.mark.parametrize("slug", ENDS)
def test_keras_is_left_out_when_it_ends_as_its_backend_does(slug: str) -> None:
    both = f"[probes.tensorflow]\n{ENDS[slug]}\n[probes.keras]\n{ENDS[slug]}"
    outcome = run(cause_named(slug), machine(both))
    assert [finding.subject for finding in outcome.findings] == ["tensorflow"]


def test_keras_is_named_when_it_fails_in_its_own_way() -> None:
    text = (
        f"[probes.tensorflow]\n{ENDS['framework-import-fails']}\n"
        '[probes.keras]\nended = "exception"\nstage = "import"\nhow = "ImportError: y"'
    )
    outcome = run(cause_named("framework-import-fails"), machine(text))
    assert [finding.subject for finding in outcome.findings] == ["tensorflow", "keras"]


def test_the_error_that_hides_another_is_quoted_with_it() -> None:
    text = """
        [probes.keras]
        ended = "exception"
        stage = "import"
        how = "ImportError: Keras cannot be imported. Check that it is installed."
        facts = [["first exception", "ModuleNotFoundError: No module named 'jax'"]]
    """
    (found,) = run(cause_named("framework-import-fails"), machine(text)).findings
    assert "Keras cannot be imported. Check that it is installed., which hides" in found.message
    assert found.message.endswith("ModuleNotFoundError: No module named 'jax'")
    assert len(found.evidence) == 2


def test_an_error_after_the_import_says_at_which_stage() -> None:
    text = '[probes.jax]\nended = "exception"\nstage = "devices"\nhow = "RuntimeError: no cuda"'
    without_gpu = machine(f'start = "no-gpu"\n{text}')
    (found,) = run(cause_named("framework-import-fails"), without_gpu).findings
    assert found.message == "JAX 0.7.2 fails at devices: RuntimeError: no cuda"


def test_an_error_after_the_import_where_there_is_a_gpu_is_a_matter_of_the_gpu() -> None:
    text = '[probes.jax]\nended = "exception"\nstage = "devices"\nhow = "RuntimeError: no cuda"'
    assert run(cause_named("framework-import-fails"), machine(text)).status == "passed"
    (found,) = run(cause_named("gpu-unused"), machine(text)).findings
    assert "JAX 0.7.2 imports, but fails at devices: RuntimeError: no cuda" in found.message
    assert found.effect == "broken"


def test_a_probe_that_never_started_says_nothing_about_the_framework() -> None:
    text = '[probes.torch]\nended = "not-started"\nstage = "start"\nhow = "permission denied"'
    outcome = run(cause_named("framework-import-fails"), machine(text))
    assert outcome.status == "undetermined"
    assert "permission denied" in outcome.reasons[0]


def test_a_very_long_error_is_cut() -> None:
    text = f'[probes.torch]\nended = "exception"\nstage = "import"\nhow = "{"x" * 5000}"'
    (found,) = run(cause_named("framework-import-fails"), machine(text)).findings
    assert len(found.message) < 400


def test_the_line_with_which_native_code_gives_up_is_the_message() -> None:
    text = """
        [probes.tensorflow]
        ended = "exit"
        stage = "matmul default"
        how = "exit code 1"
        log = [
            "I0000 00:00:1794706054.111205 20431 cpu_feature_guard.cc:227] optimized",
            "F0000 00:00:1794706057.9 20431 parse_flags.cc:1] Unknown flag in XLA_FLAGS: --garbage",
            "    @ 0x7f0 (unknown)",
        ]
        [environment.variables.XLA_FLAGS]
        value = "--garbage"
    """
    (found,) = run(cause_named("framework-crashes"), machine(text)).findings
    assert "Unknown flag in XLA_FLAGS: --garbage" in found.message
    assert command_of(found.remedies[0]) == "unset XLA_FLAGS"


def test_a_silent_crash_is_called_silent() -> None:
    text = '[probes.torch]\nended = "signal"\nstage = "convolution cuda:0"\nhow = "SIGFPE"'
    (found,) = run(cause_named("framework-crashes"), machine(text)).findings
    assert found.message == (
        "PyTorch 2.8.0 is ended by SIGFPE (at: convolution cuda:0); it prints no message"
    )


def test_a_killed_process_is_not_debugged() -> None:
    text = '[probes.torch]\nended = "signal"\nstage = "import"\nhow = "SIGKILL"'
    (found,) = run(cause_named("framework-crashes"), machine(text)).findings
    assert "memory" in found.remedies[0].text


def test_a_crash_after_the_work_is_done_is_none() -> None:
    text = '[probes.torch]\nfacts = [["after the work", "SIGSEGV"]]'
    assert run(cause_named("framework-crashes"), machine(text)).status == "passed"


def test_a_framework_that_compiles_its_kernels_is_given_time() -> None:
    text = """
        [probes.tensorflow]
        ended = "timed-out"
        how = "120 s"
        stage = "matmul GPU:0"
        log = ["W0000 gpu_device.cc:2459] CUDA kernels will be jit-compiled from PTX, which could \
take 30 minutes or longer."]
    """
    (found,) = run(cause_named("framework-hangs"), machine(text)).findings
    assert "compiles its kernels" in found.message
    assert [command_of(remedy) for remedy in found.remedies] == ["whygpu check --timeout 1800"]


def test_an_import_that_hangs_is_not_blamed_on_the_driver() -> None:
    text = '[probes.torch]\nended = "timed-out"\nhow = "120 s"\nstage = "import"'
    (found,) = run(cause_named("framework-hangs"), machine(text)).findings
    assert "nvidia-smi" not in str(found.remedies)


def test_a_missing_module_that_is_a_requirement_is_installed() -> None:
    text = """
        [target.packages.tensorflow]
        requires = ["wrapt>=1.11.0", "numpy>=1.26"]
        [probes.tensorflow]
        ended = "exception"
        stage = "import"
        how = "ModuleNotFoundError: No module named '{}'"
    """
    cause = cause_named("framework-import-fails")
    (found,) = run(cause, machine(text.format("wrapt.wrappers"))).findings
    assert command_of(found.remedies[0]) == "python -m pip install 'wrapt>=1.11.0'"
    (found,) = run(cause, machine(text.format("tensorflow.python"))).findings
    assert [command_of(remedy) for remedy in found.remedies] == [
        "python -m pip install --force-reinstall --no-deps tensorflow==2.20.0"
    ]
    # It is installed, so another version would be needed, and nobody knows which.
    (found,) = run(cause, machine(text.format("numpy.strings"))).findings
    assert command_of(found.remedies[0]) == "python -m pip check"


@each(
    ("path", "command"),
    [
        ("/opt/old/lib/libstdc++.so.6", 'export LD_LIBRARY_PATH="/opt/cuda/lib64"'),
        ("/usr/lib/libstdc++.so.6", None),
    ],
)
def test_a_library_of_the_search_path_is_named_instead_of_the_framework(
    path: str, command: str | None
) -> None:
    text = f"""
[environment.variables.LD_LIBRARY_PATH]
value = "/opt/old/lib:/opt/cuda/lib64"
[probes.torch]
ended = "exception"
stage = "import"
how = "ImportError: {path}: file too short"
"""
    snapshot = machine(text)
    (found,) = run(cause_named("framework-import-fails"), snapshot).findings
    commands = [command_of(remedy, snapshot) for remedy in found.remedies]
    assert (commands == [command]) is (command is not None)
    assert ("LD_LIBRARY_PATH" in found.message) is (command is not None)


@each(
    ("requires", "command"),
    [
        ('"absl-py>=1.0.0", "numpy>=1.26"', "-m pip install 'absl-py>=1.0.0'"),
        # Which of two it is, is not known.
        ('"absl-py>=1.0.0", "absl-flags"', "-m pip check"),
        ('"numpy>=1.26"', "-m pip check"),
    ],
)
def test_a_required_package_with_another_name_than_its_module(requires: str, command: str) -> None:
    text = f"""
[target.packages.tensorflow]
requires = [{requires}]
[probes.tensorflow]
ended = "exception"
stage = "import"
how = "ModuleNotFoundError: No module named 'absl'"
"""
    snapshot = machine(text)
    (found,) = run(cause_named("framework-import-fails"), snapshot).findings
    assert (command_of(found.remedies[0], snapshot) or "").endswith(command)
