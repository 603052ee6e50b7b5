"""Triton's compiler in a log: a ptxas or LLVM that is older than the GPU, or than the code."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.causes.evidence.log_gpu_generations import judged_by_list
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

Refusal = Literal["gpu", "code", "unstated"]
"""It does not know the GPU, does not know the version of the PTX code, or the log does not say."""


class OutdatedCompiler(NamedTuple):
    line: int
    refuses: Refusal
    tool: Literal["ptxas", "llvm"]
    target: str = ""
    """The GPU as the message names it: sm_120, sm_121a."""
    path: str = ""
    """The ptxas that was run; empty if the log does not say."""
    wanted: str = ""
    there: str = ""
    """Versions of PTX."""

    @property
    def capability(self) -> tuple[int, int] | None:
        return _capability(self.target)


_BY_TRITON = late(
    r"PTXASError|Internal Triton PTX codegen|TRITON_PTXAS_PATH|torch[./\\]_inductor|torch\._dynamo"
    r"|InductorError|ptxas-blackwell|[/\\]triton[/\\](?:runtime|compiler|backends|common)\b"
    r"|\btriton\.(?:runtime|compiler|backends|jit)\b"
)
"""Names that only Triton and PyTorch's compiler write. XLA, which has a copy of Triton, does not."""
_REFUSED = late(
    r"Value '(?P<name>sm_\d{2,3}\w?)' is not defined for option 'gpu-name'"
    r"|Unsupported \.target '?(?P<target>sm_\d{2,3}\w?)"
    r"|'(?P<processor>sm_\d{2,3}\w?)' is not a recognized processor"
    r"|Unsupported \.version (?P<wanted>\d{1,2}\.\d); current version is '(?P<there>\d{1,2}\.\d)'"
)
_FAILED = late(r"PTXASError|Internal Triton PTX codegen error")
_REASON = late(r"\bptxas\b[^\n]{0,200}(?:fatal|error) {0,4}:")
_PATH = late(r"(?P<path>/[^\s'\"`]{1,300}/ptxas(?:-blackwell)?)(?=[\s'\"`]|$)")
_NO_CODE = ("cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU")
_RECORDS = (".cc", ".cpp", ".cu")
_NEW = (8, 0)
"""A GPU below this is not too new: a newer ptxas does not know it any more."""


def outdated_compiler(log: Log) -> OutdatedCompiler | None:
    """What Triton's compiler refused; None if the log shows no such thing, or XLA ran it.

    Also None if PyTorch itself has no code for the GPU: then Triton's compiler is a detail.
    """
    if not log.says(_BY_TRITON) or judged_by_list(log) or log.status_named(*_NO_CODE):
        return None
    for match in log.find(_REFUSED):
        if log.line(match.line).source.endswith(_RECORDS) or "application ptx" in match.text:
            # A record of XLA, or the compiler in the driver.
            continue
        groups = match.groups
        target = groups["name"] or groups["target"] or groups["processor"] or ""
        known = _capability(target)
        if known is not None and known < _NEW:
            continue
        return OutdatedCompiler(
            match.line,
            "gpu" if target else "code",
            "llvm" if groups["processor"] else "ptxas",
            target,
            _path(log),
            groups["wanted"] or "",
            groups["there"] or "",
        )
    failed = log.first(_FAILED)
    if failed is not None and not log.says(_REASON):
        return OutdatedCompiler(failed.line, "unstated", "ptxas", path=_path(log))
    return None


def _capability(target: str) -> tuple[int, int] | None:
    digits = "".join(character for character in target if character.isdecimal())
    return (int(digits[:-1]), int(digits[-1])) if digits else None


def _path(log: Log) -> str:
    match = log.first(_PATH)
    return (match.groups["path"] or "") if match else ""
