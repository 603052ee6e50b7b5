"""Queries CUDA libraries for their versions, in a separate process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from whygpu.host.base import Host
from whygpu.model.observed import Absent, Known, Observed, Unknown

Style = Literal["property", "pair", "number"]
"""How a library reports it: three calls for three parts, one call for two, or one number."""

QUESTIONS: Mapping[str, tuple[str, Style]] = {
    "cublas": ("cublasGetProperty", "property"),
    "cublasLt": ("cublasLtGetProperty", "property"),
    "cudart": ("cudaRuntimeGetVersion", "number"),
    "cudnn": ("cudnnGetProperty", "property"),
    "cufft": ("cufftGetProperty", "property"),
    "curand": ("curandGetProperty", "property"),
    "cusolver": ("cusolverGetProperty", "property"),
    "cusparse": ("cusparseGetProperty", "property"),
    "cusparseLt": ("cusparseLtGetProperty", "property"),
    "nccl": ("ncclGetVersion", "number"),
    "nvJitLink": ("nvJitLinkVersion", "pair"),
    "nvrtc": ("nvrtcVersion", "pair"),
}

TIME_LIMIT = 5.0

# Each library is opened in a fork, so that a crash on loading does not affect the others.
_SCRIPT = """
import ctypes, os, sys

def ask(path, function, style):
    call = getattr(ctypes.CDLL(path), function)
    first, second = ctypes.c_int(), ctypes.c_int()
    if style == "property":
        parts = []
        for part in range(3):
            failed = call(part, ctypes.byref(first))
            parts.append(first.value)
    elif style == "pair":
        failed = call(ctypes.byref(first), ctypes.byref(second))
        parts = [first.value, second.value]
    else:
        failed = call(ctypes.byref(first))
        parts = [first.value]
    if failed:
        raise OSError("%s returned %d" % (function, failed))
    return ".".join(map(str, parts))

for question in sys.argv[1:]:
    path, function, style = question.split("|")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            print(path, "=", ask(path, function, style), sep="|")
        except (OSError, AttributeError) as error:
            print(path, "!", str(error).replace("\\n", " "), sep="|")
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        print(path, "!", "signal %d ended it" % os.WTERMSIG(status), sep="|")
"""


def ask(host: Host, libraries: Mapping[str, str]) -> dict[str, Observed[str]]:
    """The version of each library, given as path to name (cudart); only names in QUESTIONS."""
    questions = [f"{path}|{'|'.join(QUESTIONS[name])}" for path, name in libraries.items()]
    command = (host.platform.python, "-I", "-S", "-c", _SCRIPT, *questions)
    answer = host.run(command, timeout=TIME_LIMIT)
    if not isinstance(answer, Known):
        reason = answer.source if isinstance(answer, Absent) else answer.reason
        return {path: Unknown(f"{path} cannot be queried: {reason}") for path in libraries}
    versions: dict[str, Observed[str]] = {
        path: Unknown(f"{path} did not answer within {TIME_LIMIT:.0f} s") for path in libraries
    }
    for line in answer.value.stdout.splitlines():
        path, _, rest = line.partition("|")
        sign, _, text = rest.partition("|")
        if path in libraries and sign == "=":
            function = QUESTIONS[libraries[path]][0]
            versions[path] = Known(spell(libraries[path], text), f"{function}() of {path}")
        elif path in libraries and sign == "!":
            versions[path] = Unknown(f"{path} cannot be queried for its version: {text}")
    return versions


def spell(name: str, answer: str) -> str:
    """Version numbers as people write them: 12090 of cudart is 12.9, 23203 of nccl is 2.32.3."""
    if "." in answer:
        return answer
    number = int(answer)
    if name == "cudart":
        return f"{number // 1000}.{number % 1000 // 10}"
    # NCCL had one digit for the minor version before 2.9.
    major = 10000 if number >= 10000 else 1000
    return f"{number // major}.{number % major // 100}.{number % 100}"
