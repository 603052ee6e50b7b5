r"""A native library of the framework cannot be loaded on Windows.

## Why it happens

Windows reports only that "a module" was not found, and not which one. The file that it names
exists, but a file that this one needs is missing. Most often that is Microsoft's Visual C++ runtime
(msvcp140_1.dll since TensorFlow 2.1). For builds with CUDA it can be a CUDA or cuDNN library, for
others a DLL of an environment that is not activated. "Initialization routine failed" means that the
file was found but could not start: the processor has no AVX, or the runtime is too old.

## What it looks like

`ImportError: DLL load failed while importing _pywrap_tensorflow_internal: The specified module
could not be found.`, in the language of the system, followed by `Failed to load the native
TensorFlow runtime.`; for PyTorch `OSError: [WinError 126] ... Error loading
"...\torch\lib\c10.dll" or one of its dependencies.`

## Fix

Install the current Visual C++ redistributable (x64) and restart. If the error remains, find the
missing dependency. Check that Python is a 64-bit build, that the processor has AVX, and that no
other environment contains a second copy of the framework.

## Fires on (log)

```
  File "C:\Users\me\miniconda3\envs\tf\lib\site-packages\tensorflow\python\pywrap_tensorflow.py", line 64, in <module>
    from tensorflow.python._pywrap_tensorflow_internal import *
ImportError: DLL load failed while importing _pywrap_tensorflow_internal: The specified module could not be found.

Failed to load the native TensorFlow runtime.
```

```
OSError: [WinError 126] Das angegebene Modul wurde nicht gefunden. Error loading "C:\Python38\lib\site-packages\torch\lib\caffe2_detectron_ops.dll" or one of its dependencies.
```

```
ImportError: Could not find the DLL(s) 'msvcp140_1.dll'. TensorFlow requires that these DLLs be installed in a directory that is named in your %PATH% environment variable.
```

```
ImportError: DLL load failed: %1 is not a valid Win32 application.
Failed to load the native TensorFlow runtime.
```

Only the last line was kept:

```
ImportError: DLL load failed: The specified module could not be found.
```

## Quiet on (log)

A module that belongs to no framework:

```
ImportError: DLL load failed while importing win32api: The specified module could not be found.
```

The paging file is too small, which is a lack of memory:

```
OSError: [WinError 1455] The paging file is too small for this operation to complete. Error loading "C:\Python38\lib\site-packages\torch\lib\cublas64_11.dll" or one of its dependencies.
```

## Sources

- <https://www.tensorflow.org/install/errors>
- <https://learn.microsoft.com/cpp/windows/latest-supported-vc-redist>
- <https://pytorch.org/docs/stable/notes/windows.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.log_extensions import lines_about_extensions
from whygpu.causes.evidence.log_libraries import missing_libraries
from whygpu.causes.evidence.log_subjects import ended_after, framework_title, subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import LOGS_OF_TENSORFLOW, Log, Match
from whygpu.model.remedy import PYTHON, command_line, shell_script
from whygpu.tables.out_of_memory import PAGING_FILE
from whygpu.tables.platform_builds import build_without_cuda

CAUSE = cause("WG319", __name__, __doc__, severity="error", effect="broken")

STATEMENTS = late(
    r"DLL load failed(?: while importing (?P<module>[\w.]{1,80}))?:? ?(?P<why>[^\n]{0,160})"
    r"|\[?WinError (?:126|127|182|193|1114)\b\]?[^\n]{0,300}"
    r"|Could not find (?:the DLL\(s\) )?'(?P<runtime>(?:msvcp|vcruntime|concrt)[\w. '-]{1,120})'"
    # 126 is a library that is missing; ONNX Runtime then lacks CUDA or cuDNN.
    r"|LoadLibrary failed with error (?:127|182|193|998|1114)\b[^\n]{0,300}"
    r"|Could not (?:locate|load library) zlibwapi\.dll"
    r"|Could not find module '[^'\n]{1,300}\.dll' \(or one of its dependencies\)"
    r"|No module named '?_pywrap_tensorflow(?:_internal)?'?"
)
_OF_THE_TOOLKIT = late(
    r"module '(?:[^'\n]{0,300}[/\\])?(?:nvvm|nvrtc|cudart|cublas|cufft|curand|cusparse|cusolver)\w{0,20}"
    r"\.dll'"
)
_ABOVE = 3
_INNERMOST = 8
_PAGING = late(PAGING_FILE)
FRAMEWORKS = late(
    r"tensorflow|torch|jaxlib|\bjax\b|onnxruntime|\bcupy|\bkeras\b|mxnet|paddle|\bdlib\b|xgboost|lightgbm"
    r"|caffe|c10\.dll|fbgemm|zlibwapi|msvcp140|_pywrap|xla_extension|cntk|theano|numba",
    re.I,
)
_PROCEDURE = late(r"(?:WinError|error) (?:127|182)\b")
"""A DLL lacks a function that another one imports from it."""
_NOT_VALID = late(r"(?:WinError|with error) 193\b|DLL load failed[^\n]{0,90}: %1 ")
_NATIVE_RUNTIME = late(r"Failed to load the native TensorFlow runtime")
_INITIALISATION = late(
    r"initializ|initialis|\u521d\u59cb\u5316|Initialisierung|inicializ|WinError 1114|\u0438\u043d\u0438\u0446\u0438\u0430\u043b\u0438\u0437\u0430\u0446",
    re.I,
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    missing = missing_libraries(log)
    if missing is not None and missing.stops:
        # The log names the missing CUDA library, which is more specific.
        return
    elsewhere = lines_about_extensions(log)
    for statement in log.find(STATEMENTS):
        if statement.line in elsewhere:
            continue
        if _PAGING.search(statement.text) or not _of_a_framework(log, statement):
            continue
        if _OF_THE_TOOLKIT.search(statement.text):
            # A part of CUDA, which the cause of that name reports.
            continue
        yield _finding(log, statement)
        return


def _of_a_framework(log: Log, statement: Match) -> bool:
    if "No module named" in statement.text and log.platform != "windows":
        return False
    if FRAMEWORKS.search(statement.text):
        return True
    if log.says(_NATIVE_RUNTIME):
        return True
    if statement.groups["module"]:
        return False
    raised = next((item for item in log.raised if item.line == statement.line), None)
    if raised is not None and not raised.frames and "DLL load failed" in statement.text:
        # Only the last line was kept, without a name: usually it is a framework's.
        return True
    if raised is None:
        # A warning that the program printed before it failed: the line above names the module.
        above = [line.text for line in log.lines if 0 < statement.line - line.number <= _ABOVE]
        return bool(log.failures) and any(FRAMEWORKS.search(text) for text in above)
    frames = raised.frames[-_INNERMOST:]
    return any(FRAMEWORKS.search(frame) for frame in frames)


def _finding(log: Log, statement: Match) -> Finding:
    starts = _INITIALISATION.search(statement.text) is not None
    module = statement.groups["module"]
    which = (
        f"the native module {module} of {framework_title(log)}" if module else framework_title(log)
    )
    runtime = statement.groups["runtime"]
    if runtime:
        what = f"{framework_title(log)} needs {runtime}, a part of Microsoft's Visual C++ runtime"
    elif "zlibwapi" in statement.text:
        what = "cuDNN needs zlibwapi.dll, which is not on PATH"
    elif starts:
        what = f"{which} was found but failed to start"
    elif _PROCEDURE.search(statement.text):
        what = (
            f"{which} cannot be loaded: a DLL that Windows found for it is of another release and "
            "lacks a function"
        )
    elif _NOT_VALID.search(statement.text):
        what = (
            f"{which} cannot be loaded: its file, or a DLL that it needs, is damaged or not for "
            "64-bit Windows"
        )
    else:
        what = f"{which} cannot be loaded: Windows does not find a DLL that it needs"
    return CAUSE.finding(
        subject=subject_of(log),
        message=what,
        evidence=log.evidence(
            *(match.line for match in log.find(STATEMENTS) if _of_a_framework(log, match)),
            *ended_after(log, statement.line),
        ),
        remedies=_remedies(statement, starts, with_cuda=not _has_no_cuda(log)),
        confidence="certain" if runtime else "likely" if log.says(FRAMEWORKS) else "possible",
        ask=None
        if runtime
        else "Which DLL is missing? Open the module that the error names in the program "
        "Dependencies (github.com/lucasg/Dependencies).",
    )


def _has_no_cuda(log: Log) -> bool:
    """Whether the release of the log has no build with CUDA for Windows."""
    version = log.version_of("tensorflow")
    if version is None or log.framework not in LOGS_OF_TENSORFLOW:
        return False
    return build_without_cuda("tensorflow", version, "win_amd64") is not None


def _remedies(statement: Match, starts: bool, *, with_cuda: bool) -> tuple[Remedy, ...]:
    if "zlibwapi" in statement.text:
        return (
            Remedy(
                "Put zlibwapi.dll (see cuDNN's installation guide) into a folder on PATH.",
                command_line("where.exe zlibwapi.dll"),
            ),
        )
    if _NOT_VALID.search(statement.text):
        return (
            Remedy(
                "Check that Python itself is for 64 bits: this has to print 64.",
                command_line(PYTHON, "-c \"import struct; print(struct.calcsize('P') * 8)\""),
            ),
            Remedy(
                "Install the framework again, in the same release, with pip's options "
                "--force-reinstall and --no-cache-dir: a full disk cuts files off."
            ),
        )
    redistributable = Remedy(
        "Install the current Visual C++ redistributable (x64), then restart.",
        command_line("winget install Microsoft.VCRedist.2015+.x64"),
    )
    processor = Remedy("Check whether the processor has AVX, which TensorFlow needs from 1.6 on.")
    rest = Remedy(
        "For a build with CUDA, check that the CUDA and cuDNN of this release are installed and on "
        "PATH.",
        shell_script("where.exe cudart64_*.dll cudnn64_*.dll", everywhere=True),
    )
    of_cuda = (rest,) if with_cuda else ()
    if starts:
        return (processor, redistributable, *of_cuda)
    return (redistributable, *of_cuda, processor)
