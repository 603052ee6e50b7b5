"""The compiler that Triton uses is older than this GPU, and does not know it.

## Why it happens

Triton compiles kernels while the program runs: for `torch.compile`, and for libraries with kernels
of their own. It translates them to PTX with its copy of LLVM, and PTX to machine code with
NVIDIA's assembler `ptxas`. A copy of `ptxas` is in Triton's package. The variable
`TRITON_PTXAS_PATH` selects another one. Both must be at least as new as the GPU.

PyTorch's own kernels can work on the same GPU, because they were compiled before.

## What it looks like

The program works until the first compiled kernel. Then it fails with `PTXASError: PTXAS error:
Internal Triton PTX codegen error` and `ptxas fatal : Value 'sm_120' is not defined for option
'gpu-name'`, or with `'sm_121a' is not a recognized processor for this target`.

## Fix

Install a newer PyTorch, which requires the Triton that belongs to it. If only `ptxas` is too old
and a newer CUDA toolkit is installed, set `TRITON_PTXAS_PATH` to its `bin/ptxas`. To continue
without compiled kernels, set `TORCHDYNAMO_DISABLE=1`; this does not help with kernels that a
library launches directly.

## Fires on (log)

```
triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error
`ptxas` stderr:
ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'

Repro command: /opt/env/lib/python3.11/site-packages/triton/backends/nvidia/bin/ptxas -lineinfo -v --gpu-name=sm_120 /tmp/tmpa.ptx -o /tmp/tmpa.ptx.o
```

```
  File "/opt/env/lib/python3.12/site-packages/triton/backends/nvidia/compiler.py", line 350, in make_llir
'sm_121a' is not a recognized processor for this target (ignoring processor)
LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32
```

The variable selects an old `ptxas`:

```
TRITON_PTXAS_PATH=/usr/local/cuda-12.0/bin/ptxas
RuntimeError: Internal Triton PTX codegen error:
ptxas /tmp/compile-ptx-src-1, line 9; fatal   : Unsupported .version 8.4; current version is '8.0'
```

## Quiet on (log)

XLA ran `ptxas`:

```
jaxlib.xla_extension.XlaRuntimeError: INTERNAL: ptxas exited with non-zero error code 65280, output: ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'
```

The GPU is too old for a data type, not too new:

```
triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error
ptxas /tmp/tmpa.ptx, line 61; error   : Feature '.bf16' requires .target sm_80 or higher
```

PyTorch itself has no code for this GPU, so a newer one is needed anyway:

```
UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.
triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error
ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'
```

## Sources

- <https://github.com/triton-lang/triton/blob/main/python/triton/knobs.py>
- <https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#release-notes>
- <https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_subjects import ended_after
from whygpu.causes.evidence.log_triton import OutdatedCompiler, outdated_compiler
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import InstallFramework, SetVariable, UnsetVariable
from whygpu.tables.cuda_architectures import ROWS

CAUSE = cause("WG212", __name__, __doc__, severity="error", effect="broken")

_VARIABLE = "TRITON_PTXAS_PATH"
_SET = late(rf"\b{_VARIABLE}\b")
_COMPILED = late(r"torch[./\\]_inductor|torch\._dynamo|InductorError|torch\.compile\b")
_COUNTED_AS = {"gpu": "compute-capability-too-new", "code": "ptxas-libdevice-missing"}
_ASK = "What does ptxas itself print? Its message follows the line `ptxas` stderr:"


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    compiler = outdated_compiler(log)
    if compiler is None:
        return
    ended = ended_after(log, compiler.line)
    yield CAUSE.finding(
        subject="torch",
        severity="error" if ended or not log.progress else "warning",
        effect="broken" if ended else "none",
        message=_message(compiler),
        evidence=log.evidence(compiler.line, *ended),
        remedies=_remedies(log, compiler),
        confidence="possible" if compiler.refuses == "unstated" else "certain",
        ask=_ASK,
        kind_of=_COUNTED_AS.get(compiler.refuses),
    )


def _message(compiler: OutdatedCompiler) -> str:
    if compiler.tool == "llvm":
        return f"Triton's compiler is older than this GPU: its LLVM does not know {compiler.target}"
    tool = f"the ptxas that Triton runs{f' ({compiler.path})' if compiler.path else ''}"
    if compiler.refuses == "unstated":
        return f"{tool} failed, and the log does not say why; it may be older than the GPU"
    if compiler.refuses == "code":
        return (
            f"{tool} is older than Triton: it supports PTX {compiler.there}, but the code is PTX "
            f"{compiler.wanted}"
        )
    first = _first_release(compiler)
    return f"{tool} is older than this GPU: it does not know {compiler.target}" + (
        f", which ptxas of CUDA {first} and newer knows" if first else ""
    )


def _first_release(compiler: OutdatedCompiler) -> str:
    """The first CUDA release that can build for this GPU; "" if that is not on record."""
    row = next((row for row in ROWS if row.newest == compiler.capability), None)
    return ".".join(map(str, row.first)) if row is not None else ""


def _remedies(log: Log, compiler: OutdatedCompiler) -> tuple[Remedy, ...]:
    installed = log.version_of("torch") or ""
    newer = InstallFramework("torch", installed, options=("upgrade",), newer=bool(installed))
    remedies = [Remedy("Install a newer PyTorch, with the Triton that it requires.", newer)]
    if compiler.tool == "ptxas":
        first = _first_release(compiler)
        remedies.append(
            Remedy(
                f"Or let Triton use the ptxas of a CUDA toolkit (release {first} or newer), if one "
                "is installed."
                if first
                else "Or let Triton use the ptxas of a newer CUDA toolkit, if one is installed.",
                SetVariable(_VARIABLE, "/usr/local/cuda/bin/ptxas")
                if log.platform != "windows"
                else None,
            )
        )
        if log.says(_SET):
            own = "Let Triton use its own ptxas, which may be newer than the selected one."
            remedies.insert(0, Remedy(own, UnsetVariable((_VARIABLE,))))
    if log.says(_COMPILED):
        remedies.append(
            Remedy("Or run without torch.compile.", SetVariable("TORCHDYNAMO_DISABLE", "1"))
        )
    return tuple(remedies)
