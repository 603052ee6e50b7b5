"""A compiled extension of PyTorch was built for another PyTorch or CUDA, or without GPU code.

## Why it happens

Packages such as torchvision, xFormers, FlashAttention, mmcv or detectron2 contain native code that
is compiled against one release of PyTorch and one CUDA release. PyTorch does not keep its binary
interface stable between minor releases. If PyTorch is installed again in another release, or from
another index, the extension stays as it was.

An extension that was compiled where `nvcc` or a GPU was not found has no code for the GPU, or no
native code at all.

## What it looks like

PyTorch itself works. Importing the extension fails: `undefined symbol: _ZN3c10...`, `DLL load
failed while importing _C`, `No module named 'flash_attn_2_cuda'`, `operator torchvision::nms does
not exist`. Or it imports, and fails at its first use: `Could not run 'torchvision::nms' with
arguments from the 'CUDA' backend`, `Not compiled with GPU support`.

## Fix

Install the extension again, for the installed PyTorch. Do not let pip replace PyTorch meanwhile
(`--no-deps`), and let the build see the installed PyTorch (`--no-build-isolation`). Building needs
the CUDA toolkit of the release that PyTorch was built for.

## Fires on (machine)

torchvision was installed from the index for another CUDA:

```toml
only = ["torch"]
[[target.packages]]
name = "torchvision"
version = "0.23.0+cu118"
```

torchvision has no GPU code:

```toml
only = ["torch"]
[[target.packages]]
name = "torchvision"
version = "0.23.0+cpu"
```

A wheel that was built for another PyTorch:

```toml
only = ["torch"]
[[target.packages]]
name = "torch-scatter"
version = "2.1.2+pt25cu128"
```

## Quiet on (machine)

Code for an older CUDA of the same major release works.

```toml
only = ["torch"]
[[target.packages]]
name = "torchvision"
version = "0.23.0+cu126"
```

A version without such a label does not say what it was built for.

```toml
only = ["torch"]
[[target.packages]]
name = "flash-attn"
version = "2.8.3"
```

A build without CUDA fits a PyTorch without CUDA.

```toml
only = ["torch"]
[target.frameworks.torch.build]
kind = "cpu"
[[target.packages]]
name = "torchvision"
version = "0.23.0+cpu"
```

## Cannot tell on (machine)

```toml
[target.packages]
unknown = "~/venv/lib/python3.11/site-packages: permission denied"
```

```toml
only = ["torch"]
[target.frameworks.torch.build]
cuda = {unknown = "version.py: permission denied"}
[[target.packages]]
name = "torchvision"
version = "0.23.0+cu126"
```

## Fires on (log)

```
Traceback (most recent call last):
  File "/opt/env/lib/python3.10/site-packages/flash_attn/flash_attn_interface.py", line 10, in <module>
    import flash_attn_2_cuda as flash_attn_cuda
ImportError: /opt/env/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
```

The extension states what it was built for:

```
WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
    PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.2.0+cu118)
    Python  3.10.13 (you have 3.10.12)
```

```
RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions. PyTorch has CUDA Version=12.1 and torchvision has CUDA Version=11.8. Please reinstall the torchvision that matches your PyTorch install.
```

PyTorch does not know an operator, because the library that registers it was not loaded:

```
RuntimeError: operator torchvision::nms does not exist
```

The extension was compiled without GPU code:

```
NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend. This could be because the operator doesn't exist for this backend
```

```
Traceback (most recent call last):
  File "/opt/env/lib/python3.8/site-packages/detectron2/layers/roi_align.py", line 58, in forward
    return roi_align(
  File "/opt/env/lib/python3.8/site-packages/torch/autograd/function.py", line 200, in apply
    return super().apply(*args)
RuntimeError: Not compiled with GPU support
```

```
RuntimeError: modulated_deform_conv_forward_impl: implementation for device cuda:0 not found.
```

It was not compiled:

```
ModuleNotFoundError: No module named 'mmcv._ext'
```

On Windows, the name of the module says nothing, but the traceback does:

```
  File "C:\\Users\\me\\env\\lib\\site-packages\\torchvision\\ops\\__init__.py", line 1, in <module>
    from torchvision import _C
ImportError: DLL load failed while importing _C: The specified procedure could not be found.
```

A companion of PyTorch that belongs to another release:

```
OSError: /opt/env/lib/python3.9/site-packages/torchaudio/lib/libtorchaudio.so: undefined symbol: _ZNK3c104Type14isSubtypeOfExtERKSt10shared_ptrIS0_EPSo
```

PyTorch was loaded, with the libraries of its CUDA, and the extension needs another one:

```
Traceback (most recent call last):
  File "/opt/env/lib/python3.10/site-packages/flash_attn/flash_attn_interface.py", line 10, in <module>
    import flash_attn_2_cuda as flash_attn_cuda
ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory
```

It needs another CUDA than the one the installed PyTorch was built for:

```
>>> torch.__version__
'1.8.1+cu111'
>>> import torch_cluster
OSError: libcudart.so.10.1: cannot open shared object file: No such file or directory
```

The library for the CUDA of the installed PyTorch is not in this release:

```
RuntimeError: Could not find the bitsandbytes CUDA binary at PosixPath('/opt/env/lib/python3.11/site-packages/bitsandbytes/libbitsandbytes_cuda128.so')
```

## Quiet on (log)

Libraries of CUDA are mixed, not an extension and PyTorch:

```
ImportError: /opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: cublasLtGetEnvironmentMode, version libcublasLt.so.12
```

An extension that is not PyTorch's:

```
ImportError: /opt/env/lib/python3.8/site-packages/cv2/cv2.abi3.so: undefined symbol: _ZN2cv3MatC1Ev
```

The package is not installed, which is unrelated to its build:

```
ModuleNotFoundError: No module named 'flash_attn'
```

The installed PyTorch cannot use a GPU, whichever xFormers is installed:

```
WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
    PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.2.0+cpu)
```

## Sources

- <https://github.com/pytorch/vision#installation>
- <https://pytorch.org/docs/stable/cpp_extension.html>
- <https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-no-build-isolation>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.extension_labels import difference_of, label_of
from whygpu.causes.evidence.extension_remedies import (
    InstalledTorch,
    fitting_builds,
    without_installing,
)
from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.log_extensions import (
    BEFORE_WINDOWS,
    SELECTS_LIBRARY,
    BrokenExtension,
    broken_extensions,
    ends_with,
)
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Gap, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, Package, active
from whygpu.tables.torch_extensions import (
    MOSTLY_FOR_THE_CPU,
    extension_named,
)

CAUSE = cause("WG322", __name__, __doc__, severity="error", effect="broken")

_COUNTED_AS = {
    "other-build": "cuda-version-mismatch",
    "not-loaded": "cuda-version-mismatch",
    "other-cuda": "cuda-version-mismatch",
    "without-cuda": "cpu-only-build",
    "not-built": "cpu-only-build",
}
"""Faults that are special cases of a broader cause: a binary that was built for other libraries
than the installed ones, or without GPU code."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    packages = need(machine.target.packages)
    torch = need(machine.framework("torch"))
    for package in active(packages):
        built = label_of(package)
        if built is None:
            continue
        difference = difference_of(torch, built)
        if isinstance(difference, Gap):
            yield difference
        elif difference:
            yield _installed_beside(machine, torch, package, difference)


def _installed_beside(
    machine: Snapshot, torch: Framework, package: Package, difference: str
) -> Finding:
    row = extension_named(package.name)
    cuda = torch.build.cuda
    release = cuda.value if isinstance(cuda, Known) else ""
    return CAUSE.finding(
        subject="torch",
        severity="warning",
        effect="none",
        message=f"{package.name} {package.version} {difference}, but {titled(torch)}"
        + (f" for CUDA {release}" if release else "")
        + " is installed; importing it, or its functions for the GPU, will fail",
        evidence=(
            seen(machine.target.packages, f"{package.name} {package.version}"),
            seen(machine.target.packages, titled(torch)),
        ),
        remedies=fitting_builds(
            row,
            package.name,
            InstalledTorch(
                torch.version.partition("+")[0], f"cu{release.replace('.', '')}" if release else ""
            ),
            without_cuda=difference.endswith("GPU code"),
        ),
        confidence="likely",
    )


_INSTALLED = late(
    r"\b(?:torch|[Pp]y[Tt]orch)(?: version|\.__version__)?[=:\s'\"()-]{1,6}(?P<release>\d\.\d{1,2}\.\d)"
    r"(?:\+(?P<build>cu\d{2,3}))?\b"
)
_IN_TEXT = late(r"PyTorch (?P<release>\d+\.\d+\.\d+)(?:\+(?P<build>cu\d{2,3}))?")
_FOR_CUDA = late(r"PyTorch for CUDA (?P<cuda>[\d.]+)")
_ASK = (
    "Which PyTorch is installed? `python -c 'import torch; print(torch.__version__, "
    "torch.version.cuda)'`; and which release of the extension? `python -m pip list`"
)
_ASK_BITSANDBYTES = (
    "Does PyTorch find the GPU? `python -c 'import torch; print(torch.cuda.is_available())'`. If "
    "not, bitsandbytes uses its library for the CPU for that reason."
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    faults = broken_extensions(log)
    if not faults:
        return
    fault = faults[0]
    ended = ends_with(log, fault)
    torch = _torch_in(log, fault)
    for_linux = fault.detail == BEFORE_WINDOWS
    sees_gpu = any(report.says in ("gpu", "on-gpu") for report in log.reports)
    may_lack_gpu = fault.name == "bitsandbytes" and not for_linux and not sees_gpu
    doubtful = fault.fault == "without-cuda" and may_lack_gpu
    # Without the installed PyTorch, a missing library only suggests that its CUDA is another one.
    stated = fault.fault == "other-cuda" and not fault.library
    proven = stated or bool(fault.built_for and fault.installed)
    yield CAUSE.finding(
        subject="torch",
        severity="error" if ended else "info" if _failed_otherwise(log) else "warning",
        effect="broken" if ended else "none",
        message=_message(fault, torch),
        evidence=log.evidence(
            *(line for other in faults if other.name == fault.name for line in _lines(other)),
            *ended,
        ),
        remedies=(
            *without_installing(fault),
            *fitting_builds(
                fault.row,
                fault.name,
                torch,
                without_cuda=fault.fault == "without-cuda",
                cache=fault.cache,
            ),
        ),
        confidence="certain" if proven else "possible" if doubtful else "likely",
        ask=_ASK_BITSANDBYTES if doubtful else _question(fault),
        kind_of=_kind_of(fault),
    )


def _failed_otherwise(log: Log) -> bool:
    """The program went on without the extension: it works, or another message says why it ended."""
    return any(failure.says_why for failure in log.failures) or _works(log)


def _works(log: Log) -> bool:
    """A program that only reports its devices has not worked."""
    reports = {report.line for report in log.reports}
    return not reports.issuperset(log.progress)


def _kind_of(fault: BrokenExtension) -> str | None:
    """The broader cause. A companion without GPU code has nothing to do with CUDA."""
    other_symbols = fault.fault == "other-build" and "4cuda" not in fault.detail
    if fault.name in MOSTLY_FOR_THE_CPU and other_symbols:
        return None
    return _COUNTED_AS[fault.fault]


def _question(fault: BrokenExtension) -> str:
    if fault.fault != "other-cuda" or not fault.library:
        return _ASK
    return (
        "Which CUDA was the installed PyTorch built for? `python -c 'import torch; "
        f"print(torch.version.cuda)'`. If it is also {fault.built_for}, {fault.library} is "
        "missing, or in a folder that the loader does not search."
    )


def _lines(fault: BrokenExtension) -> tuple[int, ...]:
    return (fault.line, fault.library_line) if fault.library else (fault.line,)


def _torch_in(log: Log, fault: BrokenExtension) -> InstalledTorch:
    stated = _IN_TEXT.search(fault.installed)
    if stated:
        return InstalledTorch(stated["release"], stated["build"] or "")
    release, build = "", ""
    for match in log.find(_INSTALLED):
        if match.line != fault.line:
            release, build = match.groups["release"] or "", match.groups["build"] or ""
            break
    cuda = _FOR_CUDA.search(fault.installed)
    return InstalledTorch(release, f"cu{cuda['cuda'].replace('.', '')}" if cuda else build)


def _message(fault: BrokenExtension, torch: InstalledTorch) -> str:
    name = fault.row.distribution if fault.row else fault.name or "a compiled extension of PyTorch"
    installed = fault.installed or (
        f"PyTorch {torch.release}{'+' if torch.build else ''}{torch.build}" if torch.release else ""
    )
    with_it = f" ({installed})" if installed else ""
    built = f": it was built for {fault.built_for}" if fault.built_for else ""
    if fault.fault == "other-build":
        missing = f"; it needs the symbol {fault.detail}" if fault.detail else ""
        return f"{name} was compiled for another PyTorch than the installed one{with_it}{built}{missing}"
    if fault.fault == "other-cuda":
        if fault.name == "bitsandbytes":
            if fault.detail == SELECTS_LIBRARY:
                return f"{name} has no library for {installed}, which {SELECTS_LIBRARY} selects"
            return f"{name} has no library for the installed {installed or 'CUDA'}"
        missing = f"; it needs {fault.library}, which is not found" if fault.library else ""
        return (
            f"{name} was compiled for another CUDA than the installed PyTorch{with_it}{built}"
            f"{missing}"
        )
    if fault.fault == "without-cuda":
        what = f" ({fault.detail})" if fault.detail else ""
        return f"{name} has no code for the GPU{what}: it was compiled without CUDA"
    if fault.fault == "not-built":
        what = f": the module {fault.detail} is missing" if fault.detail else ""
        return f"the native code of {name} was not compiled{what}"
    what = f" ({fault.detail} is missing)" if fault.detail else ""
    if fault.library:
        return f"the native code of {name} was not loaded: it needs {fault.library}, which is not found"
    return (
        f"the native code of {name} was not loaded{what}; most often it was compiled for another "
        f"PyTorch than the installed one{with_it}"
    )
