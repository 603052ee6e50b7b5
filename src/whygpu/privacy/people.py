"""People and their machines: home folders, e-mail, prompts, lines that name a user or a host."""

from __future__ import annotations

import re

from whygpu.model.lazy_regex import late
from whygpu.privacy.rules import BOUNDARY, CONTAINER, Rule, pattern_rule

_SEPARATOR = r"(?:/|\\{1,4}|%2[Ff]|%5[Cc])"
_IN_A_NAME = r"[^/\\\s:;,'\"`<>()\[\]{}|&$#*?!=%]"
_WITH_BLANKS = r"(?:[^/\\\s:;,'\"`<>()|*?]{1,40}[ ]){0,3}[^/\\\s:;,'\"`<>()|*?]{1,40}"
_NO_HOME = frozenset(("linuxbrew", "shared", "public", "default"))
_IN_A_URL = late(r"(?i)(?<!file)://\S{0,200}$")
_REACH = 200


def _home(match: re.Match[str]) -> str:
    """/home/somebody becomes ~, unless it is inside another folder.

    For other systems the folder stays, because it distinguishes macOS and Windows from Linux.
    """
    before = match.string[max(0, match.start() - _REACH) : match.start()]
    if match["name"].lower() in _NO_HOME or _IN_A_URL.search(before):
        return match[0]
    is_inside = before[-1:].isalnum() and _IN_A_PATH.search(before)
    if is_inside or "home" not in match["folder"].lower():
        return f"{match['folder']}<user>"
    return "~"


_IN_A_PATH = late(r"(?<![\w-])/[\w./-]{0,200}$")

COMMON_FOLDERS = frozenset(
    """
    users user home homes scratch share shared public default group groups project projects data
    dataset datasets model models weights checkpoint checkpoints ckpt cache caches tmp temp log logs
    run runs output outputs result results env envs venv virtualenv conda miniconda miniconda3
    anaconda anaconda3 miniforge miniforge3 mambaforge code src source sources repo repos git app
    apps application software modules module spack tools bin lib lib64 opt etc local global build
    dist container containers images image singularity apptainer docker jobs job slurm main test
    tests train training experiments experiment notebooks workspace torch pytorch tensorflow jax
    keras cuda nvidia python python3 pip wheels admin root system staff students people gpfs lustre
    nfs work archive backup downloads documents desktop list login me all
    """.split()  # noqa: SIM905
)
"""Folders that are named after their contents."""


def _folder_of_somebody(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - _REACH) : match.start()]
    name = match["name"]
    if name.lower() in COMMON_FOLDERS or _FILE.fullmatch(name) or _IN_A_URL.search(before):
        return match[0]
    return match[0] if "site-packages" in match["folder"] else f"{match['folder']}<user>"


HOMES = (
    pattern_rule(
        "users",
        rf"(?P<folder>{_SEPARATOR}Users{_SEPARATOR})"
        rf"(?P<name>{_WITH_BLANKS}(?={_SEPARATOR})|{_IN_A_NAME}{{1,64}})",
        _home,
    ),
    pattern_rule(
        "home",
        rf"(?P<folder>(?:/|%2[Ff])home(?:/|%2[Ff]))(?P<name>{_IN_A_NAME}{{1,64}})",
        _home,
    ),
    pattern_rule("/root", r"(?<![\w./-])/root(?=/|\b(?![\w.-]))", "~"),
    pattern_rule("~", r"(?<![\w/~.])~[a-z_][a-z0-9_-]{1,31}(?=/)", "~"),
    # disks of clusters, where every user has a folder
    pattern_rule(
        "/users/ /user/ /home /scratch /gscratch /lscratch /work /u/ /people/ /staff/ /students/",
        r"(?<![\w.~/-])(?!/(?:usr|var|sys|proc|etc|dev|run)/)(?P<folder>(?:/[\w.-]{1,32}){0,4}/(?:users?|home[-_]?\w{1,8}|"
        r"[gl]?scratch[-_]?\w{0,8}|people|staff|students)/(?:[a-z]/)?|/(?:work\d{0,2}|u\d{0,2})/(?:[a-z]/)?)"
        r"(?P<name>[A-Za-z_][\w.@-]{2,31})(?=[/:;,'\"`)\]}>\s\\]|$)",
        _folder_of_somebody,
    ),
    pattern_rule(
        "/media/",
        r"(?<![\w.])((?:/run)?/media/)(?!cdrom|floppy|usb|data|disk|hdd|ssd|nvme|storage)"
        r"[A-Za-z_][\w-]{1,31}(?=/)",
        r"\1<user>",
    ),
    pattern_rule(
        "torchinductor_ pytest-of-",
        r"(?<=[/\\])(torchinductor_|pytest-of-)(?!root\b)[A-Za-z][\w.-]{0,31}(?=[/\\\s'\"]|$)",
        r"\1<user>",
    ),
)

_NOBODYS_USER = r"(?:root|ubuntu|user|admin|git|ec2-user|centos|debian|jovyan|docker)"
_HOST = r"[A-Za-z0-9][\w-]{0,62}(?:\.[A-Za-z0-9][\w-]{0,62}){0,6}"
_USER = r"(?:[A-Za-z_][\w.+-]{0,63}|<user>)"


_CONTAINER = late(CONTAINER)


def _login(match: re.Match[str]) -> str:
    if _CONTAINER.fullmatch(match["host"]) and match["user"] == "root":
        return match[0]
    if match["host"].lower() in ("localhost", "github.com", "gitlab.com", "bitbucket.org"):
        return match[0] if match["user"] == "git" else f"<user>@{match['host']}"
    user = match["user"] if re.fullmatch(_NOBODYS_USER, match["user"]) else "<user>"
    return f"{user}@<host>"


_REVISION = late(
    r"main|master|latest|develop|dev|devel|stable|nightly|next|head|trunk|alpha|beta|rc\d{0,3}|"
    r"release[\w-]{0,40}|v\d[\w-]{0,40}|[0-9a-f]{7,40}|sha\d{3}|top-?\d{1,4}|iou\d{0,3}|gpu|cpu|device"
)
_CODE = late(r"(?:[=+*(-]|\breturn) {0,4}$|\b(?:pip|uv|npm|npx|yarn|spack|brew|uses)\b")


def _login_alone(match: re.Match[str]) -> str:
    """user@host in a sentence; package@revision and matrix products look the same."""
    before = match.string[max(0, match.start() - 60) : match.start()].rpartition("\n")[2]
    is_code = _REVISION.fullmatch(match["host"]) or _CODE.search(before)
    return match[0] if is_code else _login(match)


_FILE = late(
    r"(?i)[\w-]{1,80}\.(?:py|so|cc|cuh?|cpp|hpp|h|c|json|txt|log|ya?ml|whl|sh|md|dev|html|pkl|pth?|"
    r"ckpt|onnx|h5|np[yz]|bin|zip|gz|tar|cfg|toml|ini|js|ts|java|rs|go|rb|proto|ll|ptx|cubin|keras)"
)


def _mail(match: re.Match[str]) -> str:
    """name@host.domain, but neither package@version nor symbol@file."""
    if match["user"] == "git" or _FILE.fullmatch(match["host"]):
        return match[0]
    return "<e-mail removed>"


_MAILS = (
    # the person's name is before the address
    pattern_rule(
        "@",
        r"(?:(?<![\w.])[^\W\d_][\w.'’-]{0,40},?[ ]){1,4}<(?P<user>[\w.+-]{1,64})@"
        r"(?P<host>[A-Za-z][\w.-]{0,120})>",
        "<e-mail removed>",
    ),
    pattern_rule(
        "@",
        r"(?<![\w.+@/-])(?P<user>[\w+-][\w.+-]{0,63})@"
        r"(?P<host>(?!v?\d)(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,6}[A-Za-z]{2,24})(?![\w@-])",
        _mail,
    ),
)
_LOGINS = (
    # a prompt, and the source or target of a copy
    pattern_rule(
        "@",
        rf"{BOUNDARY}(?P<user>{_USER})@(?P<host>{_HOST})"
        r"(?=:[~/.]|[ ][^\s\]]{1,80}\][$#%]|:?[$#%][ ])",
        _login,
    ),
    pattern_rule(
        "ssh scp rsync sftp mosh",
        rf"(?P<command>{BOUNDARY}(?:auto)?(?:ssh|scp|rsync|sftp|mosh|sshfs)\b[^\n@]{{0,200}}[ ])"
        rf"(?P<user>{_USER})@(?P<host>{_HOST})(?![\w@.]|://)",
        lambda match: match["command"] + _login(match),
    ),
    pattern_rule(
        "@",
        r"(?<![^\s'\"`(\[<,;:|])(?P<user>[a-z_][a-z0-9_.-]{1,31})@(?P<host>[a-z][a-z0-9-]{2,62})"
        r"(?=[\s'\"`)\]>,;:|\\]|[.!?](?:\s|$)|$)",
        _login_alone,
    ),
    pattern_rule("ssh- ecdsa-", rf"(?<=> )(?P<user>{_USER})@(?P<host>{_HOST})", _login),
)

_NO_HOST = (
    rf"(?!{CONTAINER}(?![\w.-]))"
    r"(?!(?:localhost|host|device|memory|cpu|gpu|platform|the|a|to|is|and|for|name|<)\b)"
)
_SOME_HOST = rf"{_NO_HOST}[A-Za-z0-9][\w.-]{{1,120}}"
_LISTED_HOST = late(rf"(?<![\w.:-]){_SOME_HOST}(?:\[[\d,-]{{1,120}}\])?")


def _listed_hosts(match: re.Match[str]) -> str:
    return match["command"] + _LISTED_HOST.sub("<host>", match["hosts"])


HOST_LINES = (
    # mpirun -H node1:8,node2:8
    pattern_rule(
        "mpirun mpiexec horovodrun prterun",
        r"(?P<command>\b(?:mpirun|mpiexec|horovodrun|prterun)\b[^\n|;]{0,200}?[ \t]"
        r"(?:-H|--?hosts?)[ \t=]{1,4})"
        r"(?P<hosts>[A-Za-z0-9][\w.:,-]{1,400})",
        _listed_hosts,
    ),
    # srun -w node[1-4]
    pattern_rule(
        "srun sbatch salloc",
        r"(?P<command>\b(?:srun|sbatch|salloc)\b[^\n|;]{0,200}?[ \t]-w[ \t]{0,4})"
        r"(?P<hosts>[A-Za-z0-9](?:[\w.-]|\[[\d,-]{1,120}\]|,(?=[A-Za-z])){1,400})",
        _listed_hosts,
    ),
    # Open MPI puts [host:process] before its own lines
    pattern_rule(
        ":",
        rf"(?<!\w)\[(?P<host>{_SOME_HOST})(?=:\d{{2,7}}\] "
        r"(?i:\*\*\*|\[ ?\d{1,2}\] [\w/]|\[\[|mca|pmix|prte|opal|orte|ompi|ucx|btl|signal|"
        r"failing at|mcw |\d{1,6} more process|set mca|read -?\d))",
        lambda match: match[0] if _FILE.fullmatch(match["host"]) else "[<host>",
    ),
    # TensorFlow without a driver
    pattern_rule(("this host (",), rf"(on this host \(){_SOME_HOST}(?=\))", r"\1<host>"),
    pattern_rule(
        ("information for host",), rf"(diagnostic information for host: ){_SOME_HOST}", r"\1<host>"
    ),
    # torch.distributed.elastic, in its table
    pattern_rule(("host  ",), rf"((?<![\w.])host[ ]{{2,12}}: ){_SOME_HOST}", r"\1<host>"),
    # ssh and others that cannot connect
    pattern_rule(
        ("hostname ",), rf"(?i)((?:resolve|for|of) hostname[ ]\\?[\"']?){_SOME_HOST}", r"\1<host>"
    ),
    pattern_rule(
        (" host ",),
        r"(?i)(\b(?:to|on|from|at|for) host[ ]\\?[\"']?)"
        rf"(?=[\w.-]{{0,60}}\d|\S{{1,60}} port ){_SOME_HOST}",
        r"\1<host>",
    ),
    pattern_rule(
        ("host ",),
        r"(?i)(\bhost )(?!(?:cpu|gpu|dev|mem|cuda|x86|i[36]86|amd64|aarch|arm|sm_)[\w.-]{0,20}\b)"
        r"[a-z]{2}[a-z.-]{0,40}\d[\w.-]{0,60}",
        r"\1<host>",
    ),
    # uname -a
    pattern_rule(
        ("linux ",),
        rf"(\bLinux )(?!<){_SOME_HOST}(?= \d{{1,2}}\.\d{{1,3}}[\w.+-]{{0,60}} #)",
        r"\1<host>",
    ),
    # syslog and journalctl
    pattern_rule(
        "kernel: nvrm: systemd[ sshd[",
        rf"(\b[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d (?!<)){_SOME_HOST}"
        r"(?= [\w./-]{1,40}(?:\[\d{1,9}\])?:)",
        r"\1<host>",
    ),
    # NCCL: host:process:thread [rank]
    pattern_rule(
        "nccl", rf"{BOUNDARY}{_SOME_HOST}(?=:\d{{1,9}}:\d{{1,9}} \[\d{{1,4}}\])", "<host>"
    ),
    # Slurm and torch.distributed
    pattern_rule(
        "srun slurm",
        rf"((?:srun|slurmstepd|slurmd|sbatch)(?:-[\w.-]{{1,60}})?: (?:error: )?)"
        # levels and names of functions are there too; no host has _ in its name
        r"(?!(?:error|fatal|warning|info|verbose|debug\d?)\b|[A-Za-z0-9]{0,60}_)(?!Warning\b)"
        rf"{_SOME_HOST}(?=: )",
        r"\1<host>",
    ),
    pattern_rule("slurmstepd-", r"(slurmstepd-)[A-Za-z0-9][\w.-]{1,60}(?=:)", r"\1<host>"),
    pattern_rule(
        ("step ", "job "), rf"(?i)(\b(?:STEP|JOB) [\d.]{{1,20}} ON ){_SOME_HOST}", r"\1<host>"
    ),
    pattern_rule("]:", r"(\[)[A-Za-z][\w.-]{1,120}(?=\]:\d{2,5})", r"\1<host>"),
    # id
    pattern_rule(
        "uid= gid= groups=",
        r"(\b(?:[ug]id|groups)=\d{1,10}\()(?!root\b)[A-Za-z_][\w.-]{0,63}",
        r"\1<user>",
    ),
    pattern_rule(("logged in as",), r"(logged in as:? )[A-Za-z_][\w.-]{0,63}", r"\1<user>"),
    pattern_rule("publickey", r"((?:publickey|password) for )[A-Za-z_][\w.-]{0,63}", r"\1<user>"),
)

_OWNER = r"(?!root\b|nobody\b|<)[A-Za-z_][\w.+-]{0,31}"
_PS = late(
    rf"(?<![\w.])(?P<owner>{_OWNER})(?P<rest>[ ]{{1,16}}\d{{1,9}}[ ]{{1,8}}\d{{1,4}}\.\d[ ]{{1,8}}"
    r"\d{1,3}\.\d[ ]{1,12}\d{1,16}[ ]{1,12}\d{1,16}[ ])"
)
"""A line of ps aux."""

LISTINGS = (
    # ls -l
    pattern_rule(
        "r-- rw- r-x --- rwx",
        r"((?<!\w)[-dlcbps][rwxsStT-]{9}[.+@]?[ ]{1,4}\d{1,6}[ ]{1,8})"
        r"(?P<owner>[A-Za-z_<][\w.+>-]{0,31})(?P<blanks>[ ]{1,16})[A-Za-z_<][\w.+>-]{0,31}",
        lambda match: (
            match[0]
            if match["owner"] in ("root", "<user>")
            else f"{match[1]}<user>{match['blanks']}<user>"
        ),
    ),
    Rule((":",), lambda text: _PS.sub(r"<user>\g<rest>", text) if text.count(" ") > 7 else text),
)

PEOPLE = (*_MAILS, *_LOGINS, *HOST_LINES, *LISTINGS)
