"""Remedies in a copy: what counts as a fix, and that the environment itself stays as it was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fixing.small import content, environment, installs, judge
from whygpu.fixing.proof import NotProven, OriginalChanged, Proof, moved_variables, prove
from whygpu.fixing.workshop import workshop
from whygpu.model.derived import installer_of
from whygpu.model.finding import Finding, Remedy
from whygpu.model.observed import Known
from whygpu.model.remedy import PrependPath
from whygpu.model.report import Report
from whygpu.model.target import Manager

Remedies = Mapping[str, tuple[Remedy, ...]]


def proven(env: Path, remedies: Remedies, cured_by: Mapping[str, str] | None = None) -> Proof:
    """The proof, and that nothing remains of the copy."""
    before = content(env)

    def examine(folder: str, environ: Mapping[str, str]) -> Report:
        return judge(folder, environ, remedies, cured_by)

    with workshop(str(env)) as shop:
        first = judge(str(env), {}, remedies, cured_by)
        proof = prove(shop, first, {}, examine, lambda text: None, lambda finding: True)
    assert content(env) == before
    assert [path.name for path in env.parent.iterdir()] == [env.name]
    return proof


def results(proof: Proof) -> list[str]:
    return [attempt.result for attempt in proof.attempts]


def commands(proof: Proof) -> list[str]:
    return [step.remedy.text for step in proof.steps]


def test_a_remedy_that_works(tmp_path: Path) -> None:
    proof = proven(environment(tmp_path / "env", "a"), {"a": installs("a")})
    assert (results(proof), commands(proof)) == (["works"], ["Install a."])
    assert proof.after.verdict == "gpu"
    assert proof.copy.files > 3


def test_the_next_remedy_is_tried_if_the_first_fails_or_does_nothing(tmp_path: Path) -> None:
    proof = proven(environment(tmp_path / "env", "a"), {"a": installs("refused", "idle", "a")})
    assert results(proof) == ["failed", "no-effect", "works"]
    assert commands(proof) == ["Install a."]
    assert "No matching distribution" in proof.attempts[0].detail


def test_a_remedy_that_damages_the_copy_leaves_nothing_behind(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    proof = proven(env, {"a": installs("damage", "a")})
    assert results(proof) == ["failed", "works"]


def test_a_command_that_writes_into_shared_files_is_found_out(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    remedies = {"a": installs("in-place", "a")}
    first = judge(str(env), {}, remedies)
    with workshop(str(env)) as shop, pytest.raises(OriginalChanged, match=r"lib/numbers/large\.so"):
        prove(
            shop,
            first,
            {},
            lambda folder, environ: judge(folder, environ, remedies),
            lambda text: None,
            lambda finding: True,
        )


@pytest.mark.parametrize(
    ("word", "reason"),
    [("unreached", "the package index cannot be reached"), ("full", "the disk is full")],
)
def test_what_keeps_a_command_from_being_tried_says_nothing_about_the_remedy(
    tmp_path: Path, word: str, reason: str
) -> None:
    proof = proven(environment(tmp_path / "env", "a"), {"a": installs(word)})
    assert results(proof) == ["prevented"]
    assert reason in proof.attempts[0].detail


def test_a_verdict_that_is_no_longer_known_is_no_proof(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")

    def examine(folder: str, environ: Mapping[str, str]) -> Report:
        report = judge(folder, environ, {"a": installs("a")})
        if report.verdict != "gpu":
            return report
        (framework,) = report.frameworks
        return report._replace(frameworks=(framework._replace(verdict="unknown"),))

    with workshop(str(env)) as shop:
        first = examine(str(env), {})
        proof = prove(shop, first, {}, examine, lambda text: None, lambda finding: True)
    assert proof.steps == ()


def test_a_clean_remedy_is_better_than_one_that_shows_another_fault(tmp_path: Path) -> None:
    proof = proven(environment(tmp_path / "env", "a"), {"a": installs("half-a", "a")})
    assert results(proof) == ["other-fault", "works"]
    assert commands(proof) == ["Install a."]


def test_a_fault_that_mending_another_shows_is_mended_too(tmp_path: Path) -> None:
    remedies = {"a": installs("half-a"), "shown-by-a": installs("idle", "shown-by-a")}
    proof = proven(environment(tmp_path / "env", "a"), remedies)
    assert commands(proof) == ["Install half-a.", "Install shown-by-a."]
    assert proof.after.verdict == "gpu"


def test_a_remedy_that_ends_in_another_fault_is_no_fix(tmp_path: Path) -> None:
    proof = proven(environment(tmp_path / "env", "a"), {"a": installs("half-a")})
    assert proof.steps == ()
    assert proof.after.verdict == "cpu"
    assert results(proof) == ["other-fault"]


def test_memory_that_others_took_meanwhile_is_no_fault_of_the_remedy(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")

    def examine(folder: str, environ: Mapping[str, str]) -> Report:
        report = judge(folder, environ, {"a": installs("a")})
        if report.verdict != "gpu":
            return report
        held = "others hold 138 GiB"
        full = Finding("WG501", "oom-other-process", "error", "torch", held, (), (), "broken")
        (framework,) = report.frameworks
        return report._replace(findings=(full,), frameworks=(framework._replace(verdict="broken"),))

    with workshop(str(env)) as shop:
        first = examine(str(env), {})
        proof = prove(shop, first, {}, examine, lambda text: None, lambda finding: True)
    assert (proof.steps, results(proof)) == ((), ["prevented"])
    assert "its fault is gone, but others hold 138 GiB" in proof.attempts[0].detail


def test_several_faults_are_mended_one_after_the_other(tmp_path: Path) -> None:
    remedies = {"a": installs("a"), "b": installs("refused"), "c": installs("c")}
    proof = proven(environment(tmp_path / "env", "a", "b", "c"), remedies)
    assert commands(proof) == ["Install a.", "Install c."]
    assert [f.cause for f in proof.after.findings] == ["b"]


def test_a_variable_may_be_what_helps(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    folder = Remedy("Search there.", PrependPath("LD_LIBRARY_PATH", ("/there",)))
    proof = proven(env, {"a": (folder,)}, {"a": "/there"})
    assert results(proof) == ["works"]
    assert proof.environ["LD_LIBRARY_PATH"] == "/there"


def test_steps_name_the_environment_and_not_the_copy(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")

    def examine(folder: str, environ: Mapping[str, str]) -> Report:
        there = Remedy("Search there.", PrependPath("LD_LIBRARY_PATH", (f"{folder}/lib",)))
        return judge(folder, environ, {"a": (there,)}, {"a": f"{folder}/lib"})

    with workshop(str(env)) as shop:
        before = examine(str(env), {})
        proof = prove(shop, before, {}, examine, lambda text: None, lambda f: True)
    assert proof.steps[0].remedy.action == PrependPath("LD_LIBRARY_PATH", (f"{env}/lib",))


def test_a_copy_that_behaves_otherwise_proves_nothing(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")

    def examine(folder: str, environ: Mapping[str, str]) -> Report:
        (Path(folder) / "lib" / "faults" / "b").write_text("")
        return judge(folder, environ, {"a": installs("a")})

    first = judge(str(env), {}, {"a": installs("a")})
    with workshop(str(env)) as shop, pytest.raises(NotProven, match="only the copy has b"):
        prove(shop, first, {}, examine, lambda text: None, lambda f: True)


def test_the_tool_of_a_project_never_works_in_the_copy(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")

    def examine(folder: str, environ: Mapping[str, str]) -> Report:
        report = judge(folder, environ, {"a": installs("a")})
        poetry = Known(Manager("poetry", str(tmp_path), True), folder)
        installer = Known(installer_of(report.snapshot)._replace(manager=poetry), folder)
        target = report.snapshot.target._replace(installer=installer)
        return report._replace(snapshot=report.snapshot._replace(target=target))

    with workshop(str(env)) as shop:
        proof = prove(shop, examine(str(env), {}), {}, examine, lambda text: None, lambda f: True)
    assert results(proof) == ["works"], "poetry add would change the project"


def test_only_what_is_wanted_is_mended(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a", "b")
    remedies = {"a": installs("a"), "b": installs("b")}

    def wanted(finding: Finding) -> bool:
        return finding.cause == "b"

    with workshop(str(env)) as shop:
        first = judge(str(env), {}, remedies)
        proof = prove(
            shop, first, {}, lambda f, e: judge(f, e, remedies), lambda text: None, wanted
        )
    assert commands(proof) == ["Install b."]


def test_variables_that_lead_into_the_environment_lead_into_the_copy() -> None:
    environ = {"PATH": "/env/bin:/usr/bin:/env2/bin", "VIRTUAL_ENV": "/env", "A": "b"}
    assert moved_variables(environ, "/env", "/copy") == {
        "PATH": "/copy/bin:/usr/bin:/env2/bin",
        "VIRTUAL_ENV": "/copy",
        "A": "b",
    }
