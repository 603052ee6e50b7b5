"""The installer finds no build of the framework for this Python, this platform or this CUDA.

## Why it happens

A release of a framework is a set of files, each for one Python version and one platform. If none of
them matches, the installer finds "no matching distribution" although the release exists. Reasons:

- Python is newer or older than the release, or it is a 32-bit build, a free-threaded build or PyPy.
- The platform has no builds: macOS for anything with CUDA, Windows for some CUDA packages, Alpine
  Linux (musl), 32-bit ARM.
- The CUDA builds are on another index than the one that was searched, or there is no build of this
  release for this CUDA: PyTorch publishes each release for two to four CUDA releases only.
- The name is wrong or was given up: `pytorch` is `torch` for pip, and `tensorflow-gpu` ended with
  2.11.
- pip is too old to accept the file.

conda, mamba and pixi know the driver as the virtual package `__cuda`. If it is missing, they see no
NVIDIA driver on the machine, and refuse CUDA builds.

## What it looks like

`ERROR: Could not find a version that satisfies the requirement tensorflow==1.15 (from versions:
2.16.1, ...)`, `No matching distribution found for torch==1.7.1+cu110`, `jaxlib-...whl is not a
supported wheel on this platform`, `requires a different Python: 3.12.1 not in '<3.12,>=3.9'`,
`nothing provides __cuda needed by ...`.

The list after "from versions" is a fact about the environment: pip lists every release that has a
build for its Python and platform.

## Fix

Create an environment with a Python that the release was built for (`uv venv --python 3.11`), or
install a release that supports this Python. For CUDA builds of PyTorch, name the index of a CUDA
release that it was built for. `whygpu plan` lists the releases that work on a machine. To create a
conda environment for a GPU on a machine without one, set `CONDA_OVERRIDE_CUDA`.

## Fires on (log)

Python is too new for the release:

```
$ python3.12 -m pip install tensorflow==2.12.0
ERROR: Could not find a version that satisfies the requirement tensorflow==2.12.0 (from versions: 2.16.0rc0, 2.16.1, 2.17.0)
ERROR: No matching distribution found for tensorflow==2.12.0
```

```
  x No solution found when resolving dependencies:
  Because all versions of tensorflow have no wheels with a matching Python ABI tag (e.g., `cp314`), we can conclude that your requirements are unsatisfiable.
```

The CUDA builds are on a separate index:

```
ERROR: Could not find a version that satisfies the requirement torch==1.8.1+cu111 (from versions: 1.7.1, 1.8.0, 1.8.1, 1.9.0)
ERROR: No matching distribution found for torch==1.8.1+cu111
```

PyTorch has no builds for CUDA 12.5:

```
Looking in indexes: https://download.pytorch.org/whl/cu125
ERROR: Could not find a version that satisfies the requirement torch (from versions: none)
ERROR: No matching distribution found for torch
```

There are no CUDA builds for macOS:

```
lee@Lees-MacBook-Air ~ % pip install tensorflow-gpu
ERROR: Could not find a version that satisfies the requirement tensorflow-gpu (from versions: none)
ERROR: No matching distribution found for tensorflow-gpu
```

The file is for another Python or platform:

```
ERROR: jaxlib-0.3.14+cuda11.cudnn82-cp38-none-manylinux2014_x86_64.whl is not a supported wheel on this platform.
```

The requested packages exclude each other:

```
UnsatisfiableError: The following specifications were found to be in conflict:
  - cudatoolkit 10.1*
  - pytorch 1.1.0* -> cudatoolkit >=10.0.130,<10.1.0a0
```

The release is too old for this extra, so pip leaves it out:

```
WARNING: tensorflow 2.13.0 does not provide the extra 'and-cuda'
Successfully installed tensorflow-2.13.0
```

## Quiet on (log)

A package that is unrelated to a GPU:

```
ERROR: Could not find a version that satisfies the requirement pywin32==300 (from versions: none)
ERROR: No matching distribution found for pywin32==300
```

The index could not be reached:

```
WARNING: Retrying (Retry(total=0, connect=None, read=None)) after connection broken by 'NewConnectionError': Temporary failure in name resolution
ERROR: Could not find a version that satisfies the requirement torch (from versions: none)
ERROR: No matching distribution found for torch
```

```
UnsatisfiableError: The following specifications were found to be incompatible with each other:

Package zlib conflicts for:
r-base=3.6 -> zlib
```

## Fires on (setup)

```
==> requirements.txt <==
numpy
tensorflow-gpu
```

```
==> Dockerfile <==
FROM python:3.11-slim
COPY . /app
RUN pip install -r /app/requirements.txt
==> requirements.txt <==
tensorflow==1.15.0
```

```
==> requirements.txt <==
pytorch==1.4
```

## Quiet on (setup)

```
==> requirements.txt <==
tensorflow-gpu==2.4.1
torch==2.1.0
```

```
==> Dockerfile <==
FROM python:3.7-slim
COPY . /app
RUN pip install -r /app/requirements.txt
==> requirements.txt <==
tensorflow==1.15.0
```

The Dockerfile installs another Python.

```
==> Dockerfile <==
FROM ubuntu:22.04
RUN apt-get update && apt-get install -y python3.7 python3.7-dev
RUN pip install tensorflow==1.15.0
```

## Sources

- <https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/>
- <https://www.tensorflow.org/install/pip>
- <https://pytorch.org/get-started/previous-versions/>
- <https://docs.jax.dev/en/latest/installation.html>
- <https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-virtual.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_cpu_builds import NO_SUCH_EXTRA
from whygpu.causes.evidence.log_installs import Attempt, failed_install
from whygpu.causes.evidence.log_subjects import ended_after
from whygpu.causes.evidence.setup_requirements import has_removed_package, wanted_instead
from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.finding import MACHINE, Evidence, Finding
from whygpu.model.log import Log
from whygpu.model.requirement_file import RequirementVerdict

CAUSE = cause("WG318", __name__, __doc__, severity="error", effect="broken")

_BROADER = {
    "no-driver": "no-nvidia-driver",
    "driver-too-old": "driver-too-old-for-cuda",
    "glibc": "glibc-too-old",
}
_ASK = "the Python version and the platform: python -VV; python -m pip debug --verbose"


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    attempt = failed_install(log)
    if attempt is None:
        return
    if attempt.refusal == "extra" and log.says(NO_SUCH_EXTRA):
        # Without this extra, the package is the build for the CPU: cpu-only-build.
        return
    evidence = log.evidence(*attempt.lines, *ended_after(log, attempt.line))
    if attempt.installer in ("conda", "pixi"):
        yield _unsolved(log, attempt, evidence)
    else:
        yield _not_found(attempt, evidence)


def _unsolved(log: Log, attempt: Attempt, evidence: tuple[Evidence, ...]) -> Finding:
    # Only such logs need these modules, and a check of a machine loads this file.
    from whygpu.causes.evidence.conda_advice import advice_on
    from whygpu.causes.evidence.conda_solves import conda_reason

    reason = conda_reason(log, attempt)
    message, remedies = advice_on(attempt, reason)
    return CAUSE.finding(
        subject=MACHINE,
        message=message,
        evidence=evidence,
        remedies=remedies,
        confidence=reason.confidence,
        kind_of=_BROADER.get(reason.kind),
    )


def _not_found(attempt: Attempt, evidence: tuple[Evidence, ...]) -> Finding:
    from whygpu.causes.evidence.missing_build_advice import advice_on
    from whygpu.causes.evidence.missing_builds import reason_of

    reason = reason_of(attempt)
    message, remedies = advice_on(attempt, reason)
    # An unknown extra is only a warning: the package is installed without it.
    goes_on = reason.kind == "no-extra"
    return CAUSE.finding(
        subject=MACHINE,
        message=message,
        evidence=evidence,
        remedies=remedies,
        confidence=reason.confidence,
        severity="warning" if goes_on else None,
        effect="cpu" if goes_on else None,
        ask=_ASK if reason.kind == "undecided" else None,
    )


_CANNOT_INSTALL = ("removed", "wrong-name")


@CAUSE.on_setup
def detect_in_setup(setup: Setup) -> Iterator[SetupFinding]:
    for verdict in setup.verdicts:
        requirement = verdict.requirement
        # Without the Python of the image, nobody can tell which wheels fit.
        known = verdict.kind in _CANNOT_INSTALL or (
            setup.kind == "image" and verdict.kind == "no-release-fits"
        )
        if not known or verdict.is_alternative or requirement.manager != "pip":
            continue
        if not setup.python and has_removed_package(verdict, setup.base):
            continue
        wanted = wanted_instead(verdict)
        yield CAUSE.in_setup(
            requirement.place,
            subject=requirement.name,
            message=f"{requirement.name} {verdict.reason}",
            fix=_instead(verdict, wanted, setup),
            # What an earlier step has installed satisfies a requirement without a release.
            rests_on=("arguments", "installer")
            if requirement.specifier
            else ("packages", "arguments", "installer"),
        )


def _instead(verdict: RequirementVerdict, wanted: str, setup: Setup) -> str:
    from whygpu.causes.evidence.agreeing_tensorflow import advice, around, pinned

    requirement, base = verdict.requirement, setup.base
    if requirement.name in ("tensorflow", "tensorflow-gpu"):
        if verdict.kind == "removed" and base is not None and base.framework == "tensorflow":
            return f"Remove {requirement.name}: {base.reference} has TensorFlow."
        return advice(pinned(requirement.specifier), around(setup))
    if verdict.kind == "no-release-fits" and wanted:
        # Nothing says whether the program runs with another release than the one that it pins.
        return (
            "Use a Python that it has wheels for. Or, if the program runs with another release, "
            f"write {wanted}."
        )
    return f"Write {wanted}." if wanted else verdict.advice or "Choose another release."
