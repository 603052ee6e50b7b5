"""Failures that look related to the GPU but are not, and what to do about them."""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.remedy import Action, command_line


class Elsewhere(NamedTuple):
    words: re.Pattern[str]
    happened: str
    """As a sentence without a full stop."""
    advice: str
    action: Action | None


ADDRESS_IN_USE = late(
    r"[Aa]ddress already in use|EADDRINUSE|\[WinError 10048\]|Only one usage of each socket address"
    r"|on port \W?\d{2,5}\W{1,3}but another process is utilizing it|port is already allocated"
)
"""A process wants to listen on a port that another process already uses."""

_TIME_IS_OVER = r"CANCELLED AT \S{8,30} DUE TO TIME LIMIT|job killed: walltime|\bTERM_RUNLIMIT: "
ENDED_BY_SCHEDULER = rf"{_TIME_IS_OVER}|CANCELLED AT \S{{8,30}} DUE TO (?:PREEMPTION|NODE FAILURE)"
TIME_IS_OVER = late(_TIME_IS_OVER)
"""A job may reach its time limit because it works without the GPU."""

FAILURES: tuple[Elsewhere, ...] = (
    Elsewhere(
        ADDRESS_IN_USE,
        "another process listens on the port that this one wants: an earlier run that has not "
        "ended, or a second job with the same port",
        "End the earlier run, or give this one a port of its own.",
        command_line("ss -ltnp"),
    ),
    Elsewhere(
        late(
            r"Max retries exceeded with url|Temporary failure in name resolution"
            r"|NameResolutionError|ConnectTimeoutError|Network is unreachable"
            r"|Could not resolve host|couldn't connect to 'https://"
        ),
        "a server could not be reached over the network, for example to download a model",
        "Check the connection, the proxy and the name server of that machine or container; a "
        "container needs its own. With the files on disk, switch downloads off "
        "(HF_HUB_OFFLINE=1 for models of Hugging Face).",
        None,
    ),
    Elsewhere(
        late(
            r"[Aa]ccess(?:ing)? (?:a |to )?gated repo|\bGatedRepoError\b|RepositoryNotFoundError"
            r"|\b40[134] Client Error[^\n]{0,80}https?://huggingface\.co/"
            r"|is not a valid model identifier listed on|[Cc]an't load (?:the )?(?:tokenizer"
            r"|feature "
            r"extractor|image processor|configuration|config|model) (?:of|for) '"
        ),
        "the files of a model could not be had: its name is wrong, or this account may not read it",
        "Check the name on the page of the model, accept its licence there, and log in on the "
        "machine of the program.",
        command_line("huggingface-cli login"),
    ),
    Elsewhere(
        TIME_IS_OVER,
        "the scheduler ended the job, because its time was over",
        "Ask for more time (#SBATCH --time), and save checkpoints from which the next job goes on.",
        None,
    ),
    Elsewhere(
        late(ENDED_BY_SCHEDULER),
        "the scheduler ended the job: another job took its place, or the node failed",
        "Submit it again, and save checkpoints from which the next job goes on.",
        None,
    ),
    Elsewhere(
        late(
            r"\b(?:sbatch|srun|salloc): error: (?:Batch job submission failed|Unable to allocate "
            r"resources): "
        ),
        "the scheduler refuses the job: it has no node or no right that the job asks for",
        "Compare what the job asks for with what the nodes have.",
        command_line("sinfo -o '%P %G %l'"),
    ),
    Elsewhere(
        late(r"Cannot connect to GPU backend|connect to a GPU due to usage limits in Colab"),
        "Colab gives this account no machine with a GPU now: its limit of use is reached, or no "
        "GPU is free",
        "Wait (limits end after some hours), end other sessions (Runtime, Manage sessions), use a "
        "paid plan, or continue without a GPU.",
        None,
    ),
    Elsewhere(
        late(
            r"[Pp]ull access denied|manifest (?:for \S{1,200} )?(?:not found|unknown)"
            r"|ImagePullBackOff|ErrImagePull|Failed to pull image"
        ),
        "the container's image could not be fetched: its name or tag does not exist, or the "
        "registry asks for a login",
        "Check the name and the tag of the image on the page of its registry.",
        None,
    ),
    Elsewhere(
        late(r"Cannot connect to the Docker daemon"),
        "Docker's service does not run, or this user may not talk to it",
        "Start the service, and check that the user is in the group docker.",
        command_line("systemctl status docker"),
    ),
    Elsewhere(
        late(
            r"device type at start of device string(?!: (?:mps|xpu|dml|privateuseone|hpu|npu)\b)"
            r"|Invalid device string: "
        ),
        "the program names a device in a way that PyTorch does not know",
        "Write the kind of the device first: cuda:0 and not 0, or cpu.",
        None,
    ),
    Elsewhere(
        late(
            r"inline_container\.cc|PytorchStream(?:Reader|Writer)|No space left|[Qq]uota exceeded"
        ),
        "a file could not be written or read completely",
        "Check the space and the quota of the disk; delete what was written in part, such as the "
        "last checkpoint or download.",
        command_line("df -h"),
    ),
    Elsewhere(
        late(
            r"invalid literal for int\(\)"
            r"|: error: (?:unrecognized arguments|the following arguments are required|argument )"
        ),
        "the program was given a value that it does not accept",
        "Compare the command with the help of the program (--help), and its configuration with an "
        "example.",
        None,
    ),
    Elsewhere(
        late(r"Failed to find C compiler|Compiler: cl is not found|'\['where', 'cl'\]'"),
        "PyTorch needs a C++ compiler on that machine, for torch.compile or an extension, and "
        "found none",
        "Install a compiler (gcc, or Visual Studio's C++ tools, whose command prompt has it on "
        "PATH), or run without torch.compile.",
        None,
    ),
    Elsewhere(
        late(
            r"ModuleNotFoundError: No module named '(?:triton|flash_attn|xformers|bitsandbytes"
            r"|deepspeed|apex|pycuda|cupy|pynvml|tensorrt)'$"
            r"|Cannot find a working triton installation"
        ),
        "a Python package that the program needs is not installed",
        "Install the package that the message names, in the environment of the program.",
        None,
    ),
    Elsewhere(
        late(r"No session factory registered for the given session options"),
        "the target that tf.Session was given names no kind of session that TensorFlow knows",
        "Leave the target out, or write it as grpc://host:port.",
        None,
    ),
    Elsewhere(
        late(r"CreateSession still waiting for response from worker"),
        "the session waits for a worker of the cluster that does not answer",
        "Start every worker and parameter server of the cluster, with the same addresses, and "
        "check that this machine reaches their ports. With device_filters in ConfigProto, a worker "
        "does not wait for the others.",
        None,
    ),
)


_REASONS = late(
    r"(?:[Ff]ile|[Dd]irectory|[Pp]ath|[Mm]odel|[Cc]onfig\w{0,12}|[Mm]anifest)[^\n]{0,80}"
    r"(?:does(?:n't| not) exist|not found)|[Nn]o such file or directory|[Pp]ermission denied"
    r"|[Cc]onnection (?:refused|reset|timed out)|[Uu]nauthori[sz]ed|[Aa]ccess denied|\b40[134]\b"
    r"|(?:[Uu]nknown|[Uu]nsupported) model (?:architecture|type|format)|invalid magic"
    r"|unknown \(magic, version\)"
    r"|corrupt(?:ed)?\b|incomplete|truncated|not within the file bounds|[Pp]arse error"
    r"|[Ss]yntax error|[Aa]ddress already in use"
)
"""Files, networks, rights and formats. Libraries and device nodes of the GPU are files as well, so
such a reason counts only in a message without a word about the GPU."""


def reason_elsewhere(text: str) -> bool:
    """Whether a message gives a reason that has nothing to do with a GPU."""
    return _REASONS.search(text) is not None


def elsewhere(text: str) -> Elsewhere | None:
    return next((row for row in FAILURES if row.words.search(text)), None)
