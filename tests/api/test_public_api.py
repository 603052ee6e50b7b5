"""whygpu as a Python user sees it: names, documentation, defaults, errors that say what to do."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import types
from collections.abc import Callable

import pytest

import whygpu
from tests.cases import each
from whygpu.causes import catalogue
from whygpu.cli import main as cli
from whygpu.errors import UsageError
from whygpu.model.observed import Known, Unknown

VERBS = (
    *("check", "compare", "diagnose", "diff", "estimate_memory", "explain", "find_batch_size"),
    *("fix", "fleet_check", "fleet_explain", "fleet_recipe", "fleet_report"),
    *("lint", "plan_from", "report", "undo_fix"),
    *("lint_patch", "load_snapshot", "memory_holders", "plan", "plan_run", "rule", "rules", "run"),
    *("snapshot", "why_not", "apply", "device", "install", "oom_guard", "OomGuard", "record"),
    *("require_gpu", "clear_history", "history", "profile", "profile_trace", "record_history"),
)
OTHERS = ("DevicePolicy", "PolicyError", "ReplayHost", "UsageError", "__version__")


def test_dir_lists_everything_and_imports_nothing() -> None:
    assert dir(whygpu) == sorted((*VERBS, *OTHERS))
    code = "import sys, whygpu; dir(whygpu); print(*[m for m in sys.modules if 'whygpu' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if not name.startswith("__editable__")]
    assert sorted(loaded) == ["whygpu", "whygpu.version"]


@each("name", VERBS)
def test_every_verb_has_documentation_with_an_example(name: str) -> None:
    documentation = getattr(whygpu, name).__doc__
    assert documentation is not None
    assert f"whygpu.{name}(" in documentation


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    with pytest.raises(AttributeError, match="no attribute 'chekc'") as caught:
        whygpu.__getattr__("chekc")
    assert caught.value.name == "chekc"
    assert caught.value.obj is whygpu


def test_no_verb_is_hidden_by_a_package_of_its_name() -> None:
    packages = {path.name for path in pathlib.Path(whygpu.__path__[0]).iterdir() if path.is_dir()}
    assert packages.isdisjoint(VERBS)
    assert not any(isinstance(getattr(whygpu, name), types.ModuleType) for name in VERBS)


def test_the_environment_meant_is_that_of_the_program(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a notebook, the python on PATH is often another one than the kernel's."""
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\nexit 3\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    interpreter = whygpu.check(probe=False).snapshot.target.interpreter
    assert isinstance(interpreter, Known)
    assert os.path.expanduser(interpreter.value.path) == sys.executable
    # On the command line, it is the one that the shell would start.
    silent = whygpu.check(None, probe=False).snapshot.target.interpreter
    assert isinstance(silent, Unknown)


@pytest.mark.slow
@each(
    ("call", "expected"),
    [
        (lambda: whygpu.check(3), "python=3: expected str or None, received int"),  # type: ignore[arg-type]
        (lambda: whygpu.check(timeout=0), "timeout=0: expected a number of seconds between 0 and"),
        (lambda: whygpu.plan("torch", gpu=4090), "gpu=4090: expected str or None, received int"),  # type: ignore[arg-type]
        (lambda: whygpu.plan(["torch"]), "wishes=...: expected str, received list"),  # type: ignore[arg-type]
        (lambda: whygpu.diagnose("x.json"), "snapshot='x.json': expected Snapshot, received str"),  # type: ignore[arg-type]
        (lambda: whygpu.explain(3), "log=...: expected the text of a log"),  # type: ignore[arg-type]
        (lambda: whygpu.explain("missing.log"), "cannot read missing.log: No such file"),
        (lambda: whygpu.lint(3), "what=...: expected a path, several paths, or source code"),  # type: ignore[arg-type]
        (lambda: whygpu.lint("x = 1\n", fix=True), "fix=True: there is no file to change"),
        (lambda: whygpu.run(3), "command=...: expected a command line, or a list of words"),  # type: ignore[arg-type]
        (lambda: whygpu.run([]), "what should run? expected a command"),
        (lambda: whygpu.run("'"), "command=...: No closing quotation"),
        (lambda: whygpu.run("no-such-program"), "no-such-program: command not found"),
        (lambda: whygpu.apply(3), 'policy=...: expected a policy such as "gpu:1 memory=4GiB"'),  # type: ignore[arg-type]
        (lambda: whygpu.rule("WG10"), "there is no cause 'WG10'; did you mean WG101?"),
        (lambda: whygpu.load_snapshot("x"), "cannot read x: No such file or directory"),
    ],
)
def test_a_wrong_argument_is_named(call: Callable[[], object], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value).startswith(expected)


def test_a_path_may_be_given_for_a_text(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("CUDA driver version is insufficient for CUDA runtime version\n")
    assert whygpu.explain(path) == whygpu.explain(str(path))
    assert whygpu.explain(path).verdict == "found"
    with pytest.raises(UsageError, match=r"train\.log is no snapshot"):
        whygpu.load_snapshot(path)  # type: ignore[arg-type]


@each("code", [cause.code for cause in catalogue()])
def test_a_page_is_its_guide_and_its_examples(code: str) -> None:
    cause = whygpu.rule(code)
    for heading in ("## Why it happens", "## What it looks like", "## Fix", "## Sources"):
        assert f"\n{heading}\n" in cause.guide
        assert heading not in cause.examples
    assert cause.guide.startswith(cause.title)
    assert cause.examples.startswith("## ")
    assert "```toml" not in cause.guide
    assert sections(cause.guide + cause.examples) == sections(cause.page)


def sections(page: str) -> list[str]:
    return sorted(section.strip() for section in page.split("\n## "))


def test_rule_shows_examples_only_where_they_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["rule", "WG106"]) == 0
    shown = capsys.readouterr().out
    assert "## Sources" in shown
    assert "## Fires on" not in shown
    assert cli.main(["rule", "WG106", "--examples"]) == 0
    assert "## Fires on (machine)" in capsys.readouterr().out
