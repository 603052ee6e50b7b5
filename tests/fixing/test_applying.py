"""The exchange that applies a fix, and the way back."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fixing.small import content, environment, installs, judge
from whygpu.fixing import applying, workshop
from whygpu.fixing.applying import Result, undo
from whygpu.fixing.exchange import exchange
from whygpu.fixing.proof import prove
from whygpu.fixing.workshop import NotApplied, NothingToUndo, fingerprint
from whygpu.model.finding import Remedy
from whygpu.model.remedy import LinkFile, PrependPath
from whygpu.model.report import Report

REMEDIES = {"a": installs("a"), "b": installs("b")}
CURED = {"variable": "/there"}
WITH_VARIABLE = {
    "variable": (Remedy("Search there.", PrependPath("LD_LIBRARY_PATH", ("/there",))),)
}


def apply(env: Path, remedies: Mapping[str, tuple[Remedy, ...]] = REMEDIES) -> Result:
    environ = {"PATH": os.environ["PATH"]}

    def examine(folder: str, variables: Mapping[str, str]) -> Report:
        return judge(folder, variables, remedies, CURED)

    with workshop.workshop(str(env)) as shop:
        seen = fingerprint(str(env))
        first = examine(str(env), environ)
        proof = prove(shop, first, environ, examine, lambda text: None, lambda finding: True)
        return applying.apply(
            shop, proof, seen, environ, lambda variables: examine(str(env), variables)
        )


def siblings(env: Path) -> list[str]:
    return sorted(path.name for path in env.parent.iterdir() if path != env)


def test_the_environment_is_the_proven_copy(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    done = apply(env)
    assert done.after.verdict == "gpu"
    assert not (env / "lib" / "faults" / "a").exists()
    assert (env / "bin" / "tool").read_text() == f"{env}\n", "a command names the copy"
    assert siblings(env) == [os.path.basename(done.applied.saved_in)]


def test_undo_gives_back_exactly_what_was(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    before = content(env)
    apply(env)
    undone = undo(str(env), force=False)
    assert content(env) == before
    assert siblings(env) == []
    assert undone.undone == (f"WG900: {env}/bin/python -m pip install a",)
    with pytest.raises(NothingToUndo):
        undo(str(env), force=False)


def test_fixes_are_taken_back_in_turn(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a", "b")
    first = content(env)
    apply(env, {"a": installs("a")})
    second = content(env)
    apply(env, {"b": installs("b")})
    assert len(siblings(env)) == 2
    undo(str(env), force=False)
    assert content(env) == second
    undo(str(env), force=False)
    assert content(env) == first


def test_variables_are_kept_in_the_activation_script(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "variable")
    done = apply(env, WITH_VARIABLE)
    assert (done.after.verdict, done.applied.activation) == ("gpu", "bin/activate")
    assert '"/there${' in (env / "bin" / "activate").read_text()


def test_later_changes_are_not_lost_unless_forced(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    before = content(env)
    apply(env)
    (env / "lib" / "numpy-2.0.dist-info").mkdir()
    (env / "lib" / "numpy-2.0.dist-info" / "METADATA").write_text("")
    with pytest.raises(NotApplied, match="since the fix, numpy changed"):
        undo(str(env), force=False)
    assert undo(str(env), force=True).changed_since == ("numpy",)
    assert content(env) == before


def test_what_was_written_in_place_is_not_said_to_be_restored(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    apply(env)
    shared = env / "lib" / "numbers" / "large.so"
    if shared.stat().st_nlink == 1:
        pytest.skip("this file system copies files by sharing their blocks")
    with open(shared, "ab") as file:
        file.write(b"more")
    assert undo(str(env), force=True).not_restored == ("lib/numbers/large.so",)


def test_a_saved_environment_that_is_gone_is_missed(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    done = apply(env)
    os.rename(done.applied.saved_in, tmp_path / "elsewhere")
    with pytest.raises(NothingToUndo, match="it was deleted, or the environment was moved"):
        undo(str(env), force=False)


def test_nothing_of_the_variables_stays_in_the_saved_folder(tmp_path: Path) -> None:
    done = apply(environment(tmp_path / "env", "a"))
    assert sorted(os.listdir(done.applied.saved_in)) == [
        ".gitignore",
        "environment",
        "lock",
        "record.json",
    ]


def test_an_environment_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    with workshop.workshop(str(env)) as shop:
        proof = prove(
            shop,
            judge(str(env), {}, REMEDIES),
            {},
            lambda folder, environ: judge(folder, environ, REMEDIES),
            lambda text: None,
            lambda finding: True,
        )
        (env / "new").write_text("by somebody else")
        before = content(env)
        with pytest.raises(NotApplied, match="somebody has changed"):
            applying.apply(shop, proof, "other", {}, lambda variables: proof.after)
    assert content(env) == before
    assert siblings(env) == []


def test_an_environment_that_does_not_behave_as_the_copy_did_is_put_back(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    before = content(env)
    with workshop.workshop(str(env)) as shop:
        seen = fingerprint(str(env))
        first = judge(str(env), {}, REMEDIES)
        proof = prove(
            shop,
            first,
            {},
            lambda folder, environ: judge(folder, environ, REMEDIES),
            lambda text: None,
            lambda finding: True,
        )
        with pytest.raises(NotApplied, match="showed a, which the copy did not"):
            applying.apply(shop, proof, seen, {}, lambda variables: first)
    assert content(env) == before
    assert siblings(env) == []


def test_a_link_to_another_place_is_not_replaced_by_a_copy(tmp_path: Path) -> None:
    env = environment(tmp_path / "here" / "env", "a")
    (tmp_path / "project").mkdir()
    (env / "lib" / "project").symlink_to(tmp_path / "project")
    before = content(env)
    with pytest.raises(NotApplied, match="lib/project in the environment is a link"):
        apply(env)
    assert content(env) == before


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.EINVAL, "cannot exchange two folders in one step"),
        (errno.EXDEV, "a lower layer of a container's file system"),
        (errno.EBUSY, "is a mount"),
        (errno.EACCES, "Permission denied"),
    ],
)
def test_a_file_system_that_cannot_exchange(
    number: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(one: str, other: str) -> None:
        raise OSError(number, os.strerror(number), one)

    env = environment(tmp_path / "env", "a")
    before = content(env)
    monkeypatch.setattr(workshop, "exchange", refuse)
    with pytest.raises(NotApplied, match=says):
        apply(env)
    assert content(env) == before
    assert siblings(env) == []


def test_links_lead_into_the_environment_and_not_into_the_saved_folder(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    (env / "bin" / "again").symlink_to(env / "bin" / "python")

    def examine(folder: str, variables: Mapping[str, str]) -> Report:
        link = LinkFile((f"{folder}/lib/numbers/large.so",), f"{folder}/lib")
        report = judge(folder, variables, {"a": (Remedy("Link it.", link),)})
        if not os.path.exists(f"{folder}/lib/large.so"):
            return report
        (framework,) = report.frameworks
        return report._replace(findings=(), frameworks=(framework._replace(verdict="gpu"),))

    environ = {"PATH": os.environ["PATH"]}
    with workshop.workshop(str(env)) as shop:
        seen = fingerprint(str(env))
        first = examine(str(env), environ)
        proof = prove(shop, first, environ, examine, lambda text: None, lambda finding: True)
        done = applying.apply(
            shop, proof, seen, environ, lambda variables: examine(str(env), variables)
        )
    workshop.remove(done.applied.saved_in)
    assert (env / "lib" / "large.so").exists()
    assert os.readlink(env / "lib" / "large.so") == f"{env}/lib/numbers/large.so"
    assert os.readlink(env / "bin" / "again") == f"{env}/bin/python"


def test_the_way_back_of_an_environment_with_a_similar_name_is_kept(tmp_path: Path) -> None:
    env, other = environment(tmp_path / "venv", "a"), environment(tmp_path / ".venv", "b")
    before = content(env)
    apply(env)
    apply(other)
    undo(str(env), force=False)
    assert content(env) == before
    assert not (other / "lib" / "faults" / "b").exists()


def test_the_way_back_stays_if_another_fix_came_between(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a", "b")
    before = content(env)

    def examine(folder: str, variables: Mapping[str, str]) -> Report:
        return judge(folder, variables, REMEDIES)

    environ = {"PATH": os.environ["PATH"]}
    with workshop.workshop(str(env)) as shop:
        seen = fingerprint(str(env))
        proof = prove(
            shop, examine(str(env), environ), environ, examine, lambda _: None, lambda _: True
        )

        def meanwhile(variables: Mapping[str, str]) -> Report:
            # The first fix has exchanged, and examines the result.
            (env / "lib" / "faults" / "a").write_text("")
            apply(env, {"a": installs("a")})
            return examine(str(env), variables)

        applying.apply(shop, proof, seen, environ, meanwhile)
    undo(str(env), force=False)
    undo(str(env), force=True)
    assert content(env) == before


def test_two_fixes_at_once_are_one_after_the_other(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    before = content(env)
    ended: list[str] = []

    def once() -> None:
        try:
            apply(env)
            ended.append("applied")
        except NotApplied as reason:
            ended.append(str(reason))

    both = [threading.Thread(target=once) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert "applied" in ended
    for _ in range(ended.count("applied")):
        with suppress(NothingToUndo):
            undo(str(env), force=False)
    assert content(env) == before


def test_a_signal_just_after_the_exchange_leaves_what_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = environment(tmp_path / "env", "a")
    before = content(env)
    calls: list[str] = []

    def interrupted(one: str, other: str) -> None:
        exchange(one, other)
        calls.append(one)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(workshop, "exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        apply(env)
    assert (content(env), siblings(env)) == (before, [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_root_leaves_the_environment_to_its_owner(tmp_path: Path) -> None:
    env = environment(tmp_path / "env", "a")
    for path in (env, *env.rglob("*")):
        os.chown(path, 1234, 1235, follow_symlinks=False)
    done = apply(env)
    saved = Path(done.applied.saved_in)
    places = (env, *env.rglob("*"), saved, *saved.rglob("*"))
    owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in places}
    assert (env / "bin" / "tool").exists()
    assert owners == {(1234, 1235)}
