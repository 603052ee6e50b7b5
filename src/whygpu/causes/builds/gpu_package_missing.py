"""A library computes on the GPU only with a second package, which is not installed.

## Why it happens

spaCy and Thinc compute with NumPy. On a GPU they use CuPy, which is a package of its own with one
build for each CUDA release: cupy-cuda12x, cupy-cuda13x. `pip install spacy` does not install it.
With `prefer_gpu()` the program then runs on the CPU; with `require_gpu()` it fails.

## What it looks like

- `ValueError: Cannot use GPU, CuPy is not installed`
- `ValueError: GPU is not accessible. Was the library installed correctly?` (spaCy 2 and 3.0)

## Fix

Install CuPy for the driver's CUDA release, together with the CUDA libraries that it loads:
`pip install 'cupy-cuda12x[ctk]'`. `nvidia-smi` prints the newest CUDA release that the driver
supports.

## Fires on (log)

```
  File "train.py", line 4, in <module>
    spacy.require_gpu()
  File "/opt/venv/lib/python3.10/site-packages/thinc/util.py", line 199, in require_gpu
    raise ValueError("Cannot use GPU, CuPy is not installed")
ValueError: Cannot use GPU, CuPy is not installed
```

```
  File "/opt/venv/lib/python3.8/site-packages/thinc/util.py", line 87, in require_gpu
    raise ValueError("GPU is not accessible. Was the library installed correctly?")
ValueError: GPU is not accessible. Was the library installed correctly?
```

## Quiet on (log)

CuPy is there, and sees no GPU.

```
ValueError: Cannot use GPU, no GPU detected
cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version
```

```
ModuleNotFoundError: No module named 'spacy'
```

## Sources

- <https://spacy.io/usage#gpu>
- <https://docs.cupy.dev/en/stable/install.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_subjects import ended_after, subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import command_line

CAUSE = cause("WG323", __name__, __doc__, severity="error", effect="cpu")

_NOT_INSTALLED = late(r"Cannot use GPU, CuPy is not installed")
_NOT_ACCESSIBLE = late(r"GPU is not accessible\. Was the library installed correctly\?")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    missing = log.first(_NOT_INSTALLED)
    statement = missing or log.first(_NOT_ACCESSIBLE)
    if statement is None or log.statuses:
        return
    ended = ended_after(log, statement.line)
    yield CAUSE.finding(
        subject=subject_of(log),
        message="spaCy needs CuPy to compute on the GPU, and CuPy is not installed"
        if missing
        else "spaCy cannot use the GPU: CuPy, which it needs for that, is not installed, or sees "
        "no GPU",
        evidence=log.evidence(statement.line, *ended),
        remedies=(
            Remedy(
                "Install CuPy with its CUDA libraries: cupy-cuda12x[ctk], or another number for "
                "another CUDA. This command prints the package that fits the machine.",
                command_line("whygpu plan cupy"),
            ),
            Remedy(
                "Check that CuPy then sees the GPU.",
                command_line("python -c 'import cupy; print(cupy.cuda.runtime.getDeviceCount())'"),
            ),
        ),
        confidence="certain" if missing else "likely",
        effect="broken" if ended else "cpu",
        ask="Does `python -c 'import cupy'` work in that environment?",
        kind_of="cpu-only-build",
    )
