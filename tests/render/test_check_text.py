"""The report as people read it, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import each
from tests.kit import command_of, machine, machine_causes, machine_examples
from whygpu import diagnose, load_snapshot
from whygpu.model.cause import Cause
from whygpu.render.check_text import render

CPU_BUILD = """
only = ["torch"]
[target.frameworks.torch]
version = "2.8.0+cpu"
[target.frameworks.torch.build]
kind = "cpu"
[probes.torch]
operations = [{kind = "cpu"}]
"""


def text(toml: str, *, width: int = 80, color: bool = False, verbose: bool = False) -> str:
    return render(diagnose(machine(toml)), width=width, color=color, verbose=verbose)


def body(report: str) -> str:
    """Without the count of causes, which changes with the catalogue."""
    return "".join(line for line in report.splitlines(True) if "causes checked" not in line)


def test_a_healthy_machine() -> None:
    assert body(text('only = ["torch"]')) == (
        "✓ PyTorch uses the GPU\n"
        "  Python 3.11.9 in the virtual environment ~/venv, driver 580.65.06, NVIDIA RTX\n"
        "  A6000\n"
        "\n"
        "  PyTorch  2.8.0  gpu  computes on NVIDIA RTX A6000\n"
        "\n"
    )


def test_a_machine_without_a_gpu() -> None:
    assert body(text('start = "no-gpu"\nonly = ["torch"]')) == (
        "✓ This machine has no GPU; everything runs on the CPU; nothing to fix\n"
        "  Python 3.11.9 in the virtual environment ~/venv, no driver, no NVIDIA GPU\n"
        "\n"
        "  PyTorch  2.8.0  cpu  computes on the CPU\n"
        "\n"
    )


def test_a_root_cause_with_its_evidence_its_fix_and_what_it_explains() -> None:
    assert body(text(CPU_BUILD)) == (
        "✗ PyTorch does not use the GPU (WG301 cpu-only-build)\n"
        "  Python 3.11.9 in the virtual environment ~/venv, driver 580.65.06, NVIDIA RTX\n"
        "  A6000\n"
        "\n"
        "  PyTorch  2.8.0+cpu  cpu  computes on the CPU [WG301]\n"
        "\n"
        "1. WG301 cpu-only-build  error, PyTorch\n"
        "   PyTorch 2.8.0+cpu (package torch) is a build without GPU support; it cannot\n"
        "   use this machine's GPU\n"
        "   seen   example: built for cpu\n"
        "   seen   example: NVIDIA RTX A6000\n"
        "   fix    Replace it with a CUDA build.\n"
        "          python -m pip uninstall -y torch && python -m pip install torch==2.8.0\n"
        "   also   explains WG404 gpu-unused (PyTorch)\n"
        "\n"
        "Details: whygpu rule WG301. Every check: whygpu check -v\n"
    )


CONDA = """
[target.installer.manager]
name = "conda"
project = ""
certain = true
declared = []
feature = ""
"""
NO_ENVIRONMENT = """
[target.interpreter]
path = "/usr/bin/python3"
isolated = false
"""
HINT = "whygpu check --python FOLDER"


def examined(toml: str, *, by_default: bool = False) -> str:
    """The lines below the headline, which say what was examined."""
    report = render(
        diagnose(machine(toml)), width=200, color=False, verbose=False, by_default=by_default
    )
    return report.partition("\n")[2].partition("\n\n")[0]


def test_what_was_examined_is_named() -> None:
    assert "Python 3.11.9 in the conda environment ~/venv, driver" in examined(CONDA)
    assert "Python 3.11.9 (/usr/bin/python3), driver" in examined(NO_ENVIRONMENT)
    unknown = examined('[target]\ninterpreter = {unknown = "it does not start"}')
    assert unknown.startswith("  Python unknown, driver 580")
    hung = '[driver]\nstate = "hung"\nversion = {unknown = "no answer"}\n'
    assert ", driver hung, " in examined(hung + 'gpus = {unknown = "no answer"}')


def test_how_to_name_another_python_is_said_if_none_was_chosen() -> None:
    assert HINT in examined(NO_ENVIRONMENT, by_default=True)
    assert HINT not in examined(NO_ENVIRONMENT)
    assert HINT not in examined("", by_default=True)


@each("toml", ["only = []", 'only = []\nstart = "no-gpu"'])
def test_without_a_framework_there_may_be_another_environment(toml: str) -> None:
    assert HINT in examined(toml, by_default=True)
    assert HINT not in examined(toml)


def test_without_probes_one_line_says_what_stays_unknown() -> None:
    report = text('only = ["torch"]\nprobes_left_out = "the frameworks were not run (--no-probe)"')
    assert report.startswith("? Cannot tell whether PyTorch uses the GPU: ")
    unknown = report.partition("Could not tell:\n")[2].partition("\n\n")[0]
    assert unknown.startswith("   the frameworks were not run (--no-probe) (WG")
    assert len(unknown.splitlines()) <= 2


def test_every_outcome_is_shown_when_asked_for() -> None:
    report = text(CPU_BUILD, verbose=True)
    for cause in machine_causes():
        assert f"  {cause.code}  {cause.slug}" in report


def test_no_outcome_is_cut_on_a_narrow_terminal() -> None:
    unknown = "[target.frameworks.torch.build]\nkind = {unknown = 'permission denied on the disk'}"
    report = text(unknown, width=40, verbose=True)
    assert "…" not in report
    for cause in machine_causes():
        assert f"  {cause.code}  " in report
    _, _, outcome = report.partition("  WG301  cpu-only-build  undetermined\n")
    assert "permission denied on the disk" in " ".join(outcome.split()[:15])


def test_the_count_of_causes_is_true() -> None:
    assert text('only = ["torch"]').endswith(".\n")
    counts = text('only = ["torch"]').rpartition(": ")[2].rstrip(".\n").split(", ")
    assert sum(int(count.split()[0]) for count in counts) == len(machine_causes())


COMMAND_INDENT = " " * 10


@pytest.mark.slow
@each("cause", machine_causes(), ids=lambda cause: cause.slug)
def test_everything_but_commands_fits_the_width(cause: Cause) -> None:
    firing = [item.text for item in machine_examples(cause) if item.expectation == "fires"]
    for toml in firing:
        report = diagnose(machine(toml))
        commands = {
            f"{COMMAND_INDENT}{command_of(remedy, report.snapshot)}"
            for finding in report.findings
            for remedy in finding.remedies
        }
        for width, verbose in ((40, False), (40, True), (80, True), (100, False)):
            lines = render(report, width=width, color=False, verbose=verbose).splitlines()
            assert all(len(line) <= width or line in commands for line in lines), width


def test_commands_are_never_wrapped() -> None:
    report = diagnose(machine(CPU_BUILD))
    lines = render(report, width=40, color=False, verbose=False).splitlines()
    for finding in report.root_causes:
        for remedy in finding.remedies:
            assert f"{COMMAND_INDENT}{command_of(remedy, report.snapshot)}" in lines


def test_colour_only_when_asked_for() -> None:
    assert "\x1b[" not in text(CPU_BUILD)
    assert "\x1b[" in text(CPU_BUILD, color=True)


def test_brackets_and_markup_in_messages_stay_as_they_are() -> None:
    toml = '[target.frameworks.torch.build]\nkind = {unknown = "[bold]not markup[/bold] :smile:"}'
    assert "[bold]not markup[/bold] :smile:" in text(toml)


def test_a_long_story_is_cut_short_in_the_table_of_frameworks() -> None:
    toml = f"""
    only = ["torch"]
    [probes.torch]
    ended = "exception"
    stage = "import"
    how = "RuntimeError: {"x" * 2000}"
    operations = []
    """
    table, _, _ = text(toml).partition("\n1. ")
    assert "xxx ... (-v)" in table
    assert len(table) < 600
    assert "... (-v)" not in text(toml, verbose=True)


def test_one_place_does_not_fill_the_screen_before_the_fix() -> None:
    saved = Path(__file__).parents[2] / "docs/examples/tensorflow-without-cuda.json"
    report = diagnose(load_snapshot(str(saved)))

    def places(*, verbose: bool) -> int:
        shown = render(report, width=200, color=False, verbose=verbose)
        return shown.count("libtensorflow_framework.so.2: needs lib")

    assert places(verbose=False) == 2
    assert places(verbose=True) > 2
