"""Runs pasted commands in a shell without their programs, and reports what it would have run."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Iterable
from typing import NamedTuple

BASH = shutil.which("bash") or "bash"
SH = shutil.which("sh") or "sh"

EXPECTED = (
    *("python", "python3", "uv", "conda", "whygpu", "tf_upgrade_v2", "strace"),
    *("sudo", "apt-get", "ln", "mv", "sed", "kill", "ls", "id", "file", "find", "env", "df"),
    *(
        "nvidia-smi",
        "nvidia-modprobe",
        "nvidia-cuda-mps-control",
        "dcgmi",
        "rocminfo",
        "rocm-smi",
        "sycl-ls",
    ),
    *("compute-sanitizer", "ip", "nc", "ss", "dirname", "ps", "head"),
    *("docker", "podman", "nerdctl", "apptainer", "incus", "kubectl", "srun", "systemd-nspawn"),
    *("grep", "tr", "paste", "tail", "cat", "stat", "dmesg", "ldd", "ldconfig", "mokutil"),
    *("findmnt", "systemctl", "journalctl", "wsl", "where.exe", "winget"),
)
"""The programs that remedies name. If the shell runs any other command, that is a defect."""

_SHELL = r"""
log() { printf '%s\0' "$#" "$@" >&3; }
command_not_found_handle() { log unexpected "$@"; return 127; }
for name in $EXPECTED; do eval "function $name { log ran $name \"\$@\"; }"; done
# A program that is named by its path is not started: it may be this machine's own interpreter.
shopt -s extdebug
by_name() { case ${BASH_COMMAND%%[[:space:]]*} in *=*) ;; */*) return 1 ;; esac; }
while IFS= read -r -d '' command; do
    log pasted "$command"
    ( trap by_name DEBUG; eval "$command" ) 2>&1 >/dev/null </dev/null |
        while IFS= read -r line; do
            case $line in *"syntax error"* | *"unexpected EOF"*) log broken "$line" ;; esac
        done
done
"""


class Pasted(NamedTuple):
    command: str
    ran: tuple[tuple[str, ...], ...]
    """Expected programs, with their arguments."""
    unexpected: tuple[tuple[str, ...], ...]
    broken: bool
    """The shell could not parse it."""


def paste(commands: Iterable[str], folder: pathlib.Path) -> list[Pasted]:
    """Each command in a separate bash, in `folder`, without any program on PATH."""
    commands = list(commands)
    records = folder.parent / "records"
    with open(records, "wb") as file:
        done = subprocess.run(
            [BASH, "--norc", "-c", f"exec 3>&{file.fileno()}\n{_SHELL}"],
            input="".join(f"{command}\0" for command in commands).encode(),
            cwd=folder,
            env={"PATH": "/nonexistent", "HOME": str(folder), "EXPECTED": " ".join(EXPECTED)},
            pass_fds=(file.fileno(),),
            capture_output=True,
            check=True,
        )
    assert not done.stdout
    return _read(records.read_bytes().decode(), commands)


def parses_in_posix_shell(commands: Iterable[str]) -> bool:
    text = "\n".join(commands).encode()
    return subprocess.run([SH, "-n"], input=text, capture_output=True).returncode == 0


def _read(records: str, commands: list[str]) -> list[Pasted]:
    pasted: list[Pasted] = []
    fields = iter(records.split("\0")[:-1])
    for count in fields:
        kind, *words = (next(fields) for _ in range(int(count)))
        if kind == "pasted":
            pasted.append(Pasted(words[0], (), (), False))
        else:
            pasted[-1] = _with(pasted[-1], kind, tuple(words))
    assert [item.command for item in pasted] == commands
    return pasted


def _with(pasted: Pasted, kind: str, words: tuple[str, ...]) -> Pasted:
    if kind == "ran":
        return pasted._replace(ran=(*pasted.ran, words))
    if kind == "unexpected":
        return pasted._replace(unexpected=(*pasted.unexpected, words))
    assert kind == "broken"
    return pasted._replace(broken=True)
