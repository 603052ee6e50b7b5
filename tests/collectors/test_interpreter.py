"""Finding the target's Python, asking it, and what is left when it does not answer."""

from __future__ import annotations

import json
import ntpath
import os
import pathlib
import subprocess
import sys
import sysconfig
import venv
import zipfile
from typing import Any

import pytest

from tests.cases import each
from tests.collectors.sites import write
from tests.collectors.transcripts import file, host
from tests.unprivileged import unprivileged
from whygpu.collectors import interpreter
from whygpu.host.base import Completed
from whygpu.host.local import LocalHost
from whygpu.model.codec import decode, encode
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.target import Interpreter


def program(path: pathlib.Path, text: str) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_an_interpreter_describes_itself() -> None:
    seen = need(interpreter.collect(LocalHost(), sys.executable))
    assert seen.version == ".".join(map(str, sys.version_info[:3]))
    assert seen.prefix == sys.prefix
    assert seen.isolated == (sys.prefix != sys.base_prefix)
    assert set(seen.paths) >= {path for path in sys.path if path.endswith("site-packages")}
    assert "" not in seen.paths
    assert seen.wheel_tags[0] == f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert seen.wheel_tags[-1].startswith("linux_")


WINDOWS_PYTHONS = {
    r"stat C:\work\.venv\Scripts\python.exe": r"C:\work\.venv\Scripts\python.exe",
    r"stat C:\conda\envs\one\python.exe": r"C:\conda\envs\one\python.exe",
    r"stat C:\Python313\python.exe": r"C:\Python313\python.exe",
}


@each(
    ("environ", "expected"),
    [
        ({"VIRTUAL_ENV": r"C:\work\.venv"}, r"C:\work\.venv\Scripts\python.exe"),
        ({"CONDA_PREFIX": r"C:\conda\envs\one"}, r"C:\conda\envs\one\python.exe"),
        ({"PATH": r"C:\Windows;C:\Python313"}, r"C:\Python313\python.exe"),
    ],
)
def test_the_python_of_an_environment_on_windows(
    environ: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "path", ntpath)
    monkeypatch.setattr(os, "pathsep", ";")
    answers = {question: file(path) for question, path in WINDOWS_PYTHONS.items()}
    machine = host(answers, environ, system="Windows")
    assert interpreter.find(machine, None) == expected


def test_what_start_up_files_print_is_not_taken_for_the_answer(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('{\"version\": \"0\"}', end='')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    seen = need(interpreter.collect(LocalHost(), sys.executable))
    assert seen.version.startswith("3.")
    assert seen.paths[0] == str(tmp_path)


def test_what_is_printed_at_the_exit_is_not_taken_for_the_answer(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import atexit\natexit.register(print, 'bye')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert need(interpreter.collect(LocalHost(), sys.executable)).version.startswith("3.")


def test_modules_in_the_current_folder_are_not_imported(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "os", "sysconfig"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    assert need(interpreter.collect(LocalHost(), sys.executable)).prefix == sys.prefix


def test_a_python_that_is_too_old_is_called_so(tmp_path: pathlib.Path) -> None:
    real = f'exec "{sys.executable}" "$@" | sed -E \'s/"numbers": .[0-9, ]+./"numbers": [2, 7]/\''
    python = program(tmp_path / "python", f"#!/bin/sh\n{real}\n")
    seen = interpreter.collect(LocalHost(), str(python))
    assert isinstance(seen, Unknown)
    assert "whygpu examines 3.6 and later" in seen.reason


def test_behind_a_wrapper_the_interpreter_itself_is_seen(tmp_path: pathlib.Path) -> None:
    shim = program(tmp_path / "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    assert need(interpreter.collect(LocalHost(), str(shim))).path == sys.executable


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("#!/bin/sh\necho broken >&2; exit 3", "exit code 3: broken"),
        ("#!/bin/sh\nkill -SEGV $$", "signal 11"),
        ("#!/bin/sh\necho hello", "does not answer like a Python interpreter"),
        ("#!/bin/sh\necho '{\"version\": 3}'", "does not answer like a Python interpreter"),
        (
            "#!/bin/sh\nprintf 'pyenv: version 9 is not installed\\nSee pyenv help\\n' >&2; exit 1",
            "exit code 1: pyenv: version 9 is not installed",
        ),
        (
            "#!/bin/sh\nprintf 'ModuleNotFoundError: no encodings\\n\\n<no frame>\\n' >&2; exit 1",
            "exit code 1: ModuleNotFoundError: no encodings",
        ),
        ("#!/no/such/interpreter", "does not exist"),
    ],
)
def test_one_that_does_not_start_is_unknown_with_its_reason(
    tmp_path: pathlib.Path, script: str, reason: str
) -> None:
    python = program(tmp_path / "bin/python", script)
    seen = interpreter.collect(LocalHost(), str(python))
    assert isinstance(seen, Unknown)
    assert reason in seen.reason


def test_the_files_around_a_dead_interpreter_still_tell_where_packages_are(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "lib/python3.7/site-packages").mkdir(parents=True)
    (tmp_path / "pyvenv.cfg").write_text("home = /gone/bin\nversion = 3.7.16\n")
    seen = need(interpreter.layout(LocalHost(), str(tmp_path / "bin/python")))
    assert seen.version == "3.7.16"
    assert seen.isolated
    assert seen.paths == (str(tmp_path / "lib/python3.7/site-packages"),)


def test_a_free_threaded_build_keeps_its_packages_in_a_folder_of_its_own(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "lib/python3.14t/site-packages").mkdir(parents=True)
    seen = need(interpreter.layout(LocalHost(), str(tmp_path / "bin/python")))
    assert (seen.version, seen.free_threaded) == ("3.14", True)
    assert seen.paths == (str(tmp_path / "lib/python3.14t/site-packages"),)


def test_a_folder_with_two_pythons_is_not_guessed_about(tmp_path: pathlib.Path) -> None:
    (tmp_path / "lib/python3.7").mkdir(parents=True)
    (tmp_path / "lib/python3.11").mkdir()
    assert isinstance(interpreter.layout(LocalHost(), str(tmp_path / "bin/python")), Unknown)


@pytest.mark.slow
def test_the_user_site_counts_only_when_it_is_on_the_path(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = pathlib.Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"
    if not base.exists():
        pytest.skip(f"no base interpreter at {base}")
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path))
    monkeypatch.delenv("PYTHONNOUSERSITE", raising=False)
    folder = tmp_path / "lib" / os.path.basename(sysconfig.get_path("stdlib")) / "site-packages"
    assert isinstance(need(interpreter.collect(LocalHost(), str(base))).user_site, Absent)
    folder.mkdir(parents=True)
    seen = need(interpreter.collect(LocalHost(), str(base))).user_site
    assert seen == Known(str(folder), "site.getusersitepackages()")
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    assert isinstance(need(interpreter.collect(LocalHost(), str(base))).user_site, Absent)


@pytest.fixture
def nothing_active(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """Neither an environment nor a Python on PATH; returns the one folder that is on it."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path / "path"


def test_the_active_environment_comes_before_path(
    tmp_path: pathlib.Path, nothing_active: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = program(nothing_active / "python3", "")
    assert interpreter.find_default(LocalHost()) == str(on_path)
    conda = program(tmp_path / "conda/bin/python", "")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    assert interpreter.find_default(LocalHost()) == str(conda)
    venv = program(tmp_path / "venv/bin/python", "")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    assert interpreter.find_default(LocalHost()) == str(venv)


def test_a_name_with_a_version_is_found_if_there_is_no_other(
    nothing_active: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system without /usr/bin/python3, or a PATH with one of several Pythons."""
    file = nothing_active.parent / "a file"
    file.write_text("")
    monkeypatch.setenv("PATH", f"{file}:{nothing_active}:/nonexistent")
    program(nothing_active / "python3.9", "")
    newest = program(nothing_active / "python3.10", "")
    program(nothing_active / "python3.99-config", "")
    assert interpreter.find_default(LocalHost()) == str(newest)
    plain = program(nothing_active / "python3", "")
    assert interpreter.find_default(LocalHost()) == str(plain)


def test_an_environment_that_was_deleted_is_passed_over(
    nothing_active: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = program(nothing_active / "python", "")
    monkeypatch.setenv("VIRTUAL_ENV", "/deleted")
    assert interpreter.find_default(LocalHost()) == str(on_path)


def test_an_environment_whose_base_is_gone_is_not_passed_over(
    tmp_path: pathlib.Path, nothing_active: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python that is next on PATH is not the one that is meant."""
    program(nothing_active / "python", "")
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").symlink_to("/gone/python3")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    with pytest.raises(interpreter.NoInterpreter, match="no longer exists"):
        interpreter.find_default(LocalHost())
    for given in ("venv", "venv/bin/python"):
        with pytest.raises(interpreter.NoInterpreter, match="no longer exists"):
            interpreter.resolve(LocalHost(), str(tmp_path / given))


def test_no_python_at_all_says_what_to_do(nothing_active: pathlib.Path) -> None:
    with pytest.raises(interpreter.NoInterpreter, match="name one with python="):
        interpreter.find_default(LocalHost())


def test_python_may_be_named_in_three_ways(
    tmp_path: pathlib.Path, nothing_active: pathlib.Path
) -> None:
    venv = program(tmp_path / "venv/bin/python", "")
    command = program(nothing_active / "python3.7", "")
    host = LocalHost()
    assert interpreter.resolve(host, str(venv)) == str(venv)
    assert interpreter.resolve(host, str(tmp_path / "venv")) == str(venv)
    assert interpreter.resolve(host, "python3.7") == str(command)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("/no/such/python", "no such file"),
        ("python0.1", "nor a command on PATH"),
        ("{here}", "not a Python environment"),
        ("{here}/note.txt", "not an executable file"),
    ],
)
def test_what_cannot_be_resolved_says_why(
    tmp_path: pathlib.Path, nothing_active: pathlib.Path, given: str, message: str
) -> None:
    (tmp_path / "note.txt").write_text("")
    with pytest.raises(interpreter.NoInterpreter, match=message):
        interpreter.resolve(LocalHost(), given.format(here=tmp_path))


def answer_of(python: str) -> dict[str, Any]:
    """What a real interpreter answers, to be spoiled."""
    done = need(LocalHost().run([python, "-c", interpreter._SCRIPT], timeout=60))
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def replayed(stdout: str, *, code: int = 0, stderr: str = "", timed_out: bool = False) -> Any:
    question = f"run /env/bin/python -c {interpreter._SCRIPT}"
    machine = host({question: Completed(code, stdout, stderr, timed_out)})
    return interpreter.collect(machine, "/env/bin/python")


WRONG: tuple[Any, ...] = (
    None, True, -1, 10**400, 1.5, float("inf"), "", "x" * 10_000, "\x00", "\udcff",
    [], [1], ["a", 1], [[]], [None], {}, {"known": 1},
)  # fmt: skip


def test_an_answer_that_lies_is_taken_as_it_is_or_refused_and_never_crashes() -> None:
    true = answer_of(sys.executable)
    for field in true:
        for lie in WRONG:
            for spoiled in ({**true, field: lie}, {**true, f"{field}s": lie}):
                seen = replayed(json.dumps(spoiled))
                assert isinstance(seen, Known | Unknown)
                if isinstance(seen, Known):
                    decode(Interpreter, encode(seen.value))
        less = {key: value for key, value in true.items() if key != field}
        assert isinstance(replayed(json.dumps(less)), Unknown)


@each(
    "answer",
    [
        {"stdout": "{}"},
        {"stdout": "[" * 100_000},
        {"stdout": "null"},
        {"stdout": "hello"},
        {"stdout": "", "code": 1},
        {"stdout": "", "code": -11},
        {"stdout": "{}", "timed_out": True, "code": -9},
    ],
)
def test_an_answer_that_is_none_is_unknown(answer: dict[str, Any]) -> None:
    assert isinstance(replayed(**answer), Unknown)


def test_an_answer_after_which_it_does_not_end_is_unknown() -> None:
    true = json.dumps(answer_of(sys.executable))
    assert isinstance(replayed(true, timed_out=True, code=-9), Unknown)
    assert isinstance(replayed(true, code=1), Unknown)
    assert isinstance(replayed(true), Known)


def test_entries_of_the_path_that_are_no_text_are_left_out(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import sys, pathlib\nsys.path[:0] = [None, 1, b'x', pathlib.Path('/')]\n"
    (tmp_path / "sitecustomize.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert str(tmp_path) in need(interpreter.collect(LocalHost(), sys.executable)).paths


def test_a_start_up_file_that_fails_is_told(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('boom')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    seen = need(interpreter.collect(LocalHost(), sys.executable))
    assert need(seen.complaints) == ("sitecustomize: RuntimeError: boom",)


def environment(folder: pathlib.Path) -> pathlib.Path:
    """A virtual environment with one package in it; returns its site-packages."""
    venv.create(folder, symlinks=True, with_pip=False)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    (site / "torch-2.8.0.dist-info").mkdir()
    return site


def seen_by(*words: str | pathlib.Path) -> str:
    """Known or Unknown, and why, as a process without root's rights sees it."""
    code = (
        "import sys; from whygpu.collectors import interpreter as i;"
        "from whygpu.host.local import LocalHost as H;"
        "seen = i.collect(H(), sys.argv[1]); print(type(seen).__name__, seen)"
    )
    command = [*unprivileged(), sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_packages_that_may_not_be_looked_at_are_not_packages_that_are_not_there(
    tmp_path: pathlib.Path,
) -> None:
    environment(tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    assert seen_by(python).startswith("Known")
    (tmp_path / "venv/lib").chmod(0)
    answer = seen_by(python)
    (tmp_path / "venv/lib").chmod(0o755)
    assert answer.startswith("Unknown")
    assert "permission denied" in answer


def test_an_environment_without_its_settings_is_not_the_one_it_was_made_from(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = environment(tmp_path / "venv")
    python = str(tmp_path / "venv/bin/python")
    (tmp_path / "venv/pyvenv.cfg").unlink()
    seen = interpreter.collect(LocalHost(), python)
    assert isinstance(seen, Unknown)
    assert str(site) in seen.reason
    assert "no pyvenv.cfg" in seen.reason


def test_a_link_to_an_interpreter_is_that_interpreter(tmp_path: pathlib.Path) -> None:
    real = os.path.realpath(sys.executable)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(real)
    assert isinstance(interpreter.collect(LocalHost(), str(tmp_path / "bin/python")), Known)


def place_of(name: str, python: str = sys.executable) -> Any:
    seen = need(interpreter.collect(LocalHost(), python))
    return next(module.place for module in need(seen.modules) if module.name == name)


@pytest.mark.slow
def test_the_target_says_where_an_import_finds_a_framework(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").touch()
    (tmp_path / "jax").mkdir()
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as archive:
        archive.writestr("keras/__init__.py", "")
    finder = (
        "import importlib.util as u, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'tensorflow': raise KeyError('broken finder')\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    (tmp_path / "sitecustomize.py").write_text(finder)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{tmp_path / 'zipped.zip'}")
    assert need(place_of("torch")) == str(tmp_path / "torch")
    assert need(place_of("keras")) == str(tmp_path / "zipped.zip/keras")
    assert isinstance(place_of("jax"), Absent), "a mere folder is no framework"
    assert place_of("tensorflow") == Unknown("KeyError: 'broken finder'")


def test_an_active_environment_without_a_python_is_not_passed_over(
    tmp_path: pathlib.Path, nothing_active: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next Python on PATH is another environment: an answer about it would be misleading."""
    on_path = program(nothing_active / "python3", "")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    (tmp_path / "conda/bin").mkdir(parents=True)
    assert interpreter.find_default(LocalHost()) == str(on_path)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    (tmp_path / "venv/bin").mkdir(parents=True)
    with pytest.raises(interpreter.NoInterpreter, match="VIRTUAL_ENV names"):
        interpreter.find_default(LocalHost())


def test_a_module_in_the_current_folder_hides_an_installed_one_unless_it_is_that(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("torch", "keras", "numpy"):
        write(tmp_path / f"site/{name}/__init__.py", "")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    write(tmp_path / "project/torch.py", "")
    write(tmp_path / "project/keras/__init__.py", "")
    write(tmp_path / "project/jax.py", "")  # not installed, so it hides nothing
    (tmp_path / "project/numpy").mkdir()  # no package: the installed one comes first
    write(tmp_path / "data/torch.py/scores.csv", "")  # nor is a folder a module
    write(tmp_path / "data/keras/__init__.py/notes.txt", "")

    def nearby(folder: str) -> dict[str, str]:
        monkeypatch.chdir(tmp_path / folder)
        found = need(interpreter.collect(LocalHost(), sys.executable))
        return {item.name: need(item.place) for item in need(found.in_current_folder)}

    assert nearby("project") == {
        "torch": str(tmp_path / "project/torch.py"),
        "keras": str(tmp_path / "project/keras"),
    }
    assert nearby("site") == {}
    assert nearby("data") == {}
