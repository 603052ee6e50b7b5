"""A program under `whygpu run` behaves as it does without: streams, signals, forks, folders."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.programs import (
    PYTHON,
    QUIET,
    WHYGPU,
    Terminal,
    environment,
    in_shell,
    run,
    same_as_bare,
    script,
    seen,
)
from tests.patience import PATIENCE, wait_until
from tests.targets import find_interpreter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        (
            "import sys, this, warnings; print('out'); print('err', file=sys.stderr)\n"
            "print(sys.argv, sys.path, sys.flags, sys.executable, input())\n"
            "warnings.warn('careful'); sys.exit(7)",
            7,
        ),
        ("raise ValueError('wrong')", 1),
        ("import os; os._exit(9)", 9),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143),
        ("import os; os.abort()", 134),
        ("import sitecustomize", 1),
        (
            "import os, sys; sys.stderr = open('/dev/null', 'w'); print(1, file=sys.stderr)\n"
            "os.close(2); print('still here')",
            0,
        ),
        ("import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(42)'])", 0),
        ("import os; print('child' if os.fork() == 0 else os.wait()[1])", 0),
    ],
)
def test_code_on_the_command_line(code: str, exit_code: int) -> None:
    if code == "import sitecustomize" and run([PYTHON, "-c", code]).returncode == 0:
        pytest.skip("this Python has a sitecustomize")
    if code == "import sitecustomize":
        # The one thing that shows: a name that is taken, where nobody else has it.
        assert run([*QUIET, PYTHON, "-c", code]).returncode == 0
        return
    assert same_as_bare([PYTHON, "-c", code], text="words\n")[0] == exit_code


def test_bytes_pass_unchanged(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import os\n"
        "for i in range(2000): os.write(2, bytes(range(256)) * 4)\n"
        "os.write(1, bytes(range(256)) * 1000)\n",
    )
    argv = [*QUIET, PYTHON, str(program)]
    done = subprocess.run(argv, env=environment(), capture_output=True, timeout=PATIENCE)
    assert done.stderr == bytes(range(256)) * 8000
    assert done.stdout == bytes(range(256)) * 1000


def test_order_of_both_streams_in_one_pipe(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import os\nfor i in range(500):\n"
        "    os.write(1, b'out %d\\n' % i)\n    os.write(2, b'err %d\\n' % i)\n",
    )
    done = subprocess.run(
        [*QUIET, PYTHON, str(program)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout == "".join(f"out {i}\nerr {i}\n" for i in range(500))


def test_standard_error_in_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as file:
        code = "import os, sys; print('x', file=sys.stderr); print(os.isatty(2)); sys.exit(3)"
        done = subprocess.run(
            [*QUIET, PYTHON, "-c", code],
            stderr=file,
            stdout=file,
            env=environment(),
            timeout=PATIENCE,
        )
    assert done.returncode == 3
    assert log.read_text() == "before\nx\nFalse\n"


def test_a_reader_that_leaves() -> None:
    code = "while True: print('x' * 1000)"
    shell = "{} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    bare = shell.format(f"{in_shell(PYTHON, '-c', code)} 2>/dev/null")
    ours = shell.format(f"{in_shell(*QUIET, PYTHON, '-c', code)} 2>/dev/null")
    assert run(["/bin/bash", "-c", ours]).stdout == run(["/bin/bash", "-c", bare]).stdout


def test_more_open_files_are_handed_on(tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    command = in_shell(*QUIET, PYTHON, "-c", "import os; os.write(7, b'seven')")
    command += f" 7>{in_shell(extra)}"
    assert run(["/bin/bash", "-c", command]).returncode == 0
    assert extra.read_text() == "seven"


def test_a_path_with_blanks(tmp_path: Path) -> None:
    program = script(tmp_path / "my programs", "import sys; print(sys.argv[1:], __file__)")
    assert same_as_bare([PYTHON, program, "a b", "--option", "--", "$HOME"])[0] == 0


def test_a_module(tmp_path: Path) -> None:
    script(tmp_path, "print(__name__, __package__)", "package/__main__.py")
    env = environment(PYTHONPATH=str(tmp_path))
    assert same_as_bare([PYTHON, "-m", "package"], env=env)[1] == "__main__ package\n"


def test_the_users_own_sitecustomize(tmp_path: Path) -> None:
    script(tmp_path, "import os\nos.environ['MINE'] = 'yes'\n", "sitecustomize.py")
    env = environment(PYTHONPATH=str(tmp_path))
    code = "import os, sys, sitecustomize; print(os.environ['MINE'], sitecustomize.__file__)"
    assert same_as_bare([PYTHON, "-c", code], env=env)[1].startswith("yes")


def test_a_sitecustomize_that_fails(tmp_path: Path) -> None:
    script(tmp_path, "raise RuntimeError('broken')\n", "sitecustomize.py")
    env = environment(PYTHONPATH=str(tmp_path))
    code, out, err = same_as_bare([PYTHON, "-c", "print('on it goes')"], env=env)
    assert (code, out) == (0, "on it goes\n")
    assert "broken" in err


@pytest.mark.parametrize("options", ["-E", "-I", "-S", "-s -B -O -u -X dev -W ignore"])
def test_options_of_python(options: str) -> None:
    code = "import sys; print(sys.flags, sys.path, sys.warnoptions, sys._xoptions)"
    same_as_bare([PYTHON, *options.split(), "-c", code])


def test_workers_of_every_kind(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import multiprocessing, sys, threading\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "def square(x): return x * x\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn', 'forkserver'):\n"
        "        with multiprocessing.get_context(method).Pool(2) as pool:\n"
        "            print(method, pool.map(square, range(5)))\n"
        "    with ProcessPoolExecutor(2) as pool: print(list(pool.map(square, range(5))))\n"
        "    threads = [threading.Thread(target=square, args=(i,)) for i in range(8)]\n"
        "    for t in threads: t.start()\n"
        "    for t in threads: t.join()\n",
    )
    assert same_as_bare([PYTHON, program])[0] == 0


def test_a_shell_script_that_starts_python(tmp_path: Path) -> None:
    program = script(
        tmp_path, f"#!/bin/sh\n{in_shell(PYTHON)} -c 'import os; print(1)'\nexit 5\n", "start.sh"
    )
    program.chmod(0o755)
    assert same_as_bare([program]) == (5, "1\n", "")


def test_a_script_without_a_first_line_is_a_shells(tmp_path: Path) -> None:
    program = script(tmp_path, "echo $((6 * 7))\n", "bare")
    program.chmod(0o755)
    assert seen(run([*QUIET, program])) == (0, "42\n", "")


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("no-such-command", 127, "command not found"),
        ("./no/such/file", 127, "there is no such file"),
        ("{folder}/plain.py", 126, "Permission denied"),
        ("{folder}", 126, "Permission denied"),
    ],
)
def test_what_cannot_be_started(tmp_path: Path, command: str, code: int, words: str) -> None:
    script(tmp_path, "print(1)", "plain.py")
    argv = [command.format(folder=tmp_path)]
    done = run([*QUIET, *argv])
    shell = run(["/bin/sh", "-c", argv[0]])
    assert done.returncode == code == shell.returncode
    assert words in done.stderr


def test_a_signal_to_us_reaches_the_program(tmp_path: Path) -> None:
    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1]
    program = script(
        tmp_path,
        "import os, signal, time\n"
        "def told(number, frame):\n"
        "    os.write(1, b'told %d\\n' % number)\n"
        f"    if number == {int(numbers[-1])}: os._exit(40 + number)\n"
        f"for number in {[int(number) for number in numbers]}: signal.signal(number, told)\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(30)\n",
    )
    process = subprocess.Popen(
        [*QUIET, PYTHON, str(program)], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for number in numbers:
        process.send_signal(number)
        assert process.stdout.readline() == f"told {int(number)}\n", number
    assert process.stdout.read() == ""
    assert process.wait(PATIENCE) == 40 + numbers[-1]


def test_a_program_that_minds_no_signal_is_not_ended_by_us(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('ready', flush=True)\ntime.sleep(0.4)\nprint('done')\n",
    )
    process = subprocess.Popen(
        [*QUIET, PYTHON, str(program)], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    assert process.stdout.read() == "done\n"
    assert process.wait(PATIENCE) == 0


def test_killing_us_kills_the_program(tmp_path: Path) -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    env = environment(TMPDIR=str(tmp_path))
    process = subprocess.Popen(
        [*QUIET, PYTHON, "-c", code], stdout=subprocess.PIPE, text=True, env=env
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.kill()
    process.wait(PATIENCE)
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in _state(pid))


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except FileNotFoundError:
        return "Z"


def test_a_process_that_outlives_the_program_goes_on_writing(tmp_path: Path) -> None:
    go = tmp_path / "go"
    program = script(
        tmp_path,
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    end = time.time() + 600\n"
        f"    while time.time() < end and not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        "    print('late', file=sys.stderr)\n"
        "    os._exit(0)\n"
        "print('early', file=sys.stderr)\n",
    )
    process = subprocess.Popen(
        [*QUIET, PYTHON, str(program)], stderr=subprocess.PIPE, env=environment()
    )
    # It does not wait for what is not its own.
    assert process.wait(PATIENCE) == 0
    go.touch()
    assert process.stderr is not None
    assert process.stderr.read() == b"early\nlate\n"


def test_a_terminal_stays_a_terminal() -> None:
    code = (
        "import os, sys, shutil; print([os.isatty(n) for n in (0, 1, 2)], "
        "shutil.get_terminal_size(), os.get_terminal_size(2)); "
        "print('\\x1b[31mred\\x1b[0m 50%|###   |\\r100%|######|', file=sys.stderr)"
    )
    bare = Terminal([PYTHON, "-c", code], rows=30, columns=101).end()
    ours = Terminal([*QUIET, PYTHON, "-c", code], rows=30, columns=101).end()
    assert ours == bare
    assert b"[True, True, True]" in ours[1]
    assert b"columns=101" in ours[1]


def test_a_terminal_that_changes_its_size() -> None:
    code = (
        "import os, signal, time\n"
        "def told(*_): os.write(1, str(os.get_terminal_size(2)).encode())\n"
        "signal.signal(signal.SIGWINCH, told)\n"
        "os.write(1, b'ready')\n"
        "end = time.time() + 20\n"
        "while time.time() < end and os.get_terminal_size(2).columns != 77: time.sleep(0.02)\n"
        "time.sleep(0.2)\n"
    )
    terminal = Terminal([*QUIET, PYTHON, "-c", code])
    terminal.wait_for(b"ready")
    terminal.resize(50, 77)
    exit_code, output = terminal.end()
    assert exit_code == 0
    assert b"columns=77, lines=50" in output


def test_ctrl_c_on_a_terminal_is_one_ctrl_c(tmp_path: Path) -> None:
    code = (
        "import time\n"
        "try:\n    print('ready', flush=True)\n    time.sleep(30)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n    time.sleep(0.2)\n"
        "    print('cleared up')\n"
    )
    terminal = Terminal([*QUIET, PYTHON, "-c", code])
    terminal.wait_for(b"ready")
    terminal.type(b"\x03")
    exit_code, output = terminal.end()
    assert exit_code == 0
    assert output.count(b"interrupted") == 1
    assert b"cleared up" in output


def test_ctrl_c_that_ends_the_program_ends_us_likewise() -> None:
    terminal = Terminal([*QUIET, PYTHON, "-c", "import time; print(1, flush=True); time.sleep(30)"])
    terminal.wait_for(b"1")
    terminal.type(b"\x03")
    _, output = terminal.end()
    assert b"KeyboardInterrupt" in output


def test_a_shell_loop_stops_at_ctrl_c() -> None:
    program = "import time; print(1, flush=True); time.sleep(60)"
    command = in_shell(*QUIET, PYTHON, "-c", program)
    terminal = Terminal(["/bin/bash", "-c", f"for i in 1 2; do {command}; done; echo after"])
    terminal.wait_for(b"1")
    terminal.type(b"\x03")
    code, output = terminal.end()
    assert b"after" not in output
    assert code == 130


def test_questions_on_a_terminal() -> None:
    terminal = Terminal([*QUIET, PYTHON, "-c", "print('hello ' + input('name? '))"])
    terminal.wait_for(b"name\\? ")
    terminal.type(b"Ada\r")
    assert b"hello Ada" in terminal.end()[1]


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    env = environment(TMPDIR=str(temporary), HOME=str(home))
    package = Path(__file__).parents[2] / "src" / "whygpu" / "launch" / "bootstrap"
    before = sorted(package.rglob("*"))
    for code in ("print(1)", "raise SystemExit(3)", "import os; os.kill(os.getpid(), 9)"):
        run([*QUIET, PYTHON, "-c", code], env=env)
    assert list(temporary.iterdir()) == []
    assert list(home.iterdir()) == []
    assert sorted(package.rglob("*")) == before


def test_a_killed_run_is_tidied_up_by_what_it_started(tmp_path: Path) -> None:
    """The program dies with us; a process it has started ends later, and clears up."""
    go, temporary = tmp_path / "go", tmp_path / "temporary"
    temporary.mkdir()
    child = (
        "import os, time\n"
        "end = time.time() + 40\n"
        f"while time.time() < end and not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
    )
    code = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "print('ready', flush=True)\ntime.sleep(30)\n"
    )
    env = environment(TMPDIR=str(temporary))
    process = subprocess.Popen(
        [*QUIET, PYTHON, "-c", code], stdout=subprocess.PIPE, text=True, env=env
    )
    assert process.stdout is not None
    process.stdout.readline()
    assert len(list(temporary.iterdir())) == 1
    process.kill()
    process.wait(PATIENCE)
    go.touch()
    wait_until(lambda: not list(temporary.iterdir()))


def test_a_read_only_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o500)
    env = environment(HOME=str(home))
    assert same_as_bare([PYTHON, "-c", "print('fine')"], env=env)[0] == 0


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.12", "3.13"])
def test_another_python_is_as_well_served(version: str) -> None:
    other = find_interpreter((version,))
    if other is None:
        pytest.skip(f"there is no Python {version} here")
    assert same_as_bare([other, "-c", "import sys; print(sys.version)"])[0] == 0


def test_words_after_the_command_are_the_programs() -> None:
    code = "import sys; print(sys.argv[1:])"
    for argv in ([PYTHON, "-c", code, "--device", "gpu", "--", "--quiet"],):
        assert run([*QUIET, *argv]).stdout == "['--device', 'gpu', '--', '--quiet']\n"
        bare = [*WHYGPU, "--device", "cpu", "--quiet", *argv]
        assert run(bare).stdout == "['--device', 'gpu', '--', '--quiet']\n"


def test_modules_with_names_of_the_standard_library(tmp_path: Path) -> None:
    script(tmp_path, "mine = True\n", "json.py")
    program = script(tmp_path, "import json; print(json.mine)\n")
    assert same_as_bare([PYTHON, program])[1] == "True\n"


@pytest.mark.parametrize(
    "code",
    [
        "import nothing.there",
        "raise ImportError('broken')",
        "1 / 0",
        "import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\n",
        "def f(",
    ],
)
def test_a_framework_that_fails_to_import_fails_in_the_same_words(
    tmp_path: Path, code: str
) -> None:
    script(tmp_path, f"from torch import inner\n{code}\n", "torch/__init__.py")
    script(tmp_path, "", "torch/inner.py")
    program = script(tmp_path, "import torch\n")
    env = environment(PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="always")
    assert same_as_bare([PYTHON, program], env=env)[2]


def test_a_framework_that_is_not_there() -> None:
    assert "No module named 'torch'" in same_as_bare([PYTHON, "-c", "import torch.nn"])[2]
