"""The installed CUDA has another major version than the one the framework was built for.

## Why it happens

A framework build is tied to one major CUDA release: it asks for `libcudart.so.12` by that name. A
toolkit of another major release cannot replace it, whether older or newer.

## What it looks like

`Could not load dynamic library 'libcudart.so.10.0'` on a machine with CUDA 11, an ImportError, or
no message and no GPU.

When an extension is compiled: `The detected CUDA version (11.8) mismatches the version that was
used to compile PyTorch (12.1)`, or `unsupported GNU version! gcc versions later than 11 are not
supported!`, if the toolkit is older than the compiler of the machine.

## Fix

Install the CUDA libraries of the framework's release in addition to the installed ones (as wheels
or in a conda environment they do not affect other programs), or install a release of the framework
that was built for the installed CUDA. Do not link the old name to the new file: the file loads, but
then crashes or computes wrong results, because the functions behind the names have changed.

## Fires on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudart.so.12"]
outcome = "not-found"
path = ""
chain = ["libcudart.so.12"]
detail = "libcudart.so.12: cannot open shared object file: No such file or directory"
[cuda.copies.cudart]
soname = "libcudart.so.11.0"
path = "/usr/local/cuda-11.8/lib64/libcudart.so.11.0"
version = "11.8.89"
origin = "toolkit"
```

## Quiet on (machine)

A second version in addition to the right one does no harm.

```toml
only = ["tensorflow"]
[cuda.copies.cudart]
soname = "libcudart.so.11.0"
path = "/usr/local/cuda-11.8/lib64/libcudart.so.11.0"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow]
libraries = {unknown = "the CUDA version of tensorflow 2.30.0 is not on record"}
```

## Fires on (log)

CUDA 11.1 is installed completely, but TensorFlow 2.4 was built for 11.0, whose cuSOLVER is number
10:

```
2021-01-05 09:00:00.100000: I tensorflow/stream_executor/platform/default/dso_loader.cc:49] Successfully opened dynamic library cudart64_110.dll
2021-01-05 09:00:01.100000: I tensorflow/stream_executor/platform/default/dso_loader.cc:49] Successfully opened dynamic library cublas64_11.dll
2021-01-05 09:00:01.200000: W tensorflow/stream_executor/platform/default/dso_loader.cc:60] Could not load dynamic library 'cusolver64_10.dll'; dlerror: cusolver64_10.dll not found
2021-01-05 09:00:01.300000: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1757] Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed properly if you would like to use GPU.
```

The search path contains another release than the one the library belongs to:

```
2020-02-11 08:00:00.100000: W tensorflow/stream_executor/platform/default/dso_loader.cc:55] Could not load dynamic library 'libcudart.so.10.1'; dlerror: libcudart.so.10.1: cannot open shared object file: No such file or directory; LD_LIBRARY_PATH: /usr/local/cuda-10.2/lib64
2020-02-11 08:00:01.100000: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1592] Cannot dlopen some GPU libraries. Skipping registering GPU devices...
```

```
RuntimeError: The detected CUDA version (10.1) mismatches the version that was used to compile
PyTorch (11.3). Please make sure to use the same CUDA versions.
```

Libraries of two installations of PyTorch are mixed:

```
ImportError: /opt/env/lib/python3.10/site-packages/torch/lib/libtorch_python.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
```

A report that contains only versions, and they do not match:

```
- OS Platform and Distribution: Ubuntu 18.04
- TensorFlow version: 2.0.0
- CUDA/cuDNN version: 10.2/7.6
>>> tf.config.list_physical_devices()
[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
```

A TensorRT engine of another release.

```
[TRT] [E] 1: [stdArchiveReader.cpp::StdArchiveReader::40] Error Code 1: Serialization (Serialization assertion stdVersionRead == serializationVersion failed.Version tag does not match. Note: Current Version: 213, Serialized Engine Version: 205)
AttributeError: 'NoneType' object has no attribute 'create_execution_context'
```

## Quiet on (log)

```
2020-02-11 08:00:00.100000: I tensorflow/stream_executor/platform/default/dso_loader.cc:44] Successfully opened dynamic library libcudart.so.10.1
2020-02-11 08:00:01.100000: W tensorflow/stream_executor/platform/default/dso_loader.cc:55] Could not load dynamic library 'libcudnn.so.7'; dlerror: libcudnn.so.7: cannot open shared object file: No such file or directory; LD_LIBRARY_PATH: /usr/local/cuda-10.1/lib64
2020-02-11 08:00:01.200000: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1592] Cannot dlopen some GPU libraries. Skipping registering GPU devices...
```

```
ImportError: /opt/env/lib/python3.8/site-packages/cv2/cv2.abi3.so: undefined symbol: _ZN2cv3MatC1Ev
```

An extension that was built for another PyTorch has its own page:

```
OSError: /opt/env/lib/python3.9/site-packages/torchtext/lib/libtorchtext.so: undefined symbol: _ZN3c107WarningC1ERKS0_
```

## Sources

- <https://www.tensorflow.org/install/source#gpu>
- <https://docs.nvidia.com/deploy/cuda-compatibility/>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.framework_installs import pytorch_index
from whygpu.causes.evidence.library_faults import (
    NO_LIBRARY_CONSEQUENCES,
    consequence,
    copies_or_none,
    effect_on,
    failures,
    other_versions,
    to_install,
)
from whygpu.causes.evidence.library_installs import install_remedies
from whygpu.causes.evidence.library_search import dlopen_warning, listed, requests_seen
from whygpu.causes.evidence.log_extensions import lines_about_extensions
from whygpu.causes.evidence.log_libraries import (
    Missing,
    asked_release,
    cuda_remedies,
    foreign_releases,
    judged,
    loss,
    missing_libraries,
    names,
    needed_release,
    other_release_opened,
    which_question,
)
from whygpu.causes.evidence.log_subjects import ended_after, excerpt, subject_of
from whygpu.causes.evidence.log_unmet_requirements import Unmet, unmet_requirement
from whygpu.model.cause import cause
from whygpu.model.derived import and_list
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.libraries import LibraryCopy
from whygpu.model.log import Log, Match
from whygpu.model.observed import Known
from whygpu.model.remedy import (
    PYTHON,
    Action,
    Install,
    InstallFramework,
    UnsetVariable,
    a_number,
    command_line,
    shell_script,
)
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.tensorflow_builds import build_of
from whygpu.tables.torch_indexes import index_exists
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG204",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(*NO_LIBRARY_CONSEQUENCES, "device-placement-no-gpu-kernel", "cudnn-missing"),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    copies = copies_or_none(machine)
    for item in failures(machine, "cuda-version-mismatch"):
        if isinstance(item, Gap):
            yield item
            continue
        framework, failing = item
        there = [copy for failure in failing for copy in other_versions(failure.library, copies)]
        paths = and_list(list(dict.fromkeys(copy.path for copy in there)))
        yield CAUSE.finding(
            subject=framework.name,
            effect=effect_on(framework),
            message=(
                f"{titled(framework)} needs {listed(failing)}{_release(framework)}; this machine "
                f"has another CUDA release ({paths}), which cannot replace it; "
                f"{consequence(framework, failing)}"
            ),
            evidence=(
                *requests_seen(failing),
                *(_seen(copy) for copy in dict.fromkeys(there)),
                *dlopen_warning(machine, framework),
            ),
            remedies=install_remedies(machine, framework, to_install(machine, framework)),
        )


def _release(framework: Framework) -> str:
    cuda = framework.build.cuda
    return f" of CUDA {cuda.value}" if isinstance(cuda, Known) else ""


def _seen(copy: LibraryCopy) -> Evidence:
    version = f", version {copy.version.value}" if isinstance(copy.version, Known) else ""
    return Evidence("machine", copy.path, f"{copy.soname}{version}")


_STATEMENTS = late(
    r"The detected CUDA version(?: \((?P<there>[\d.]+)\))? mismatches the version that was used to "
    r"compile\b(?:\s{0,8}PyTorch(?: \((?P<wanted>[\d.]+)\))?)?"
    r"|Installed CUDA version (?P<there2>[\d.]+) does not match the version torch was compiled with "
    r"(?P<wanted2>[\d.]*\d)"
    r"|\blib(?:torch(?:_(?:cpu|cuda|python))?|c10(?:_cuda)?)\.so: undefined symbol: "
    r"_ZNK?(?:2at|3c10|5torch|6caffe2)\d"
    r"|Triton only support CUDA [\d.]{1,5} or higher, but got CUDA version"
    r"|Cuda extensions are being compiled with a version of Cuda that does not match"
    r"|Outdated (?:CUDA|cu(?!DNN)[A-Za-z]{2,8}) installation found"
    r"|Found (?:CUDA|cu(?!DNN)[A-Za-z]{2,8}) version \d{3,6}, but JAX was built against version \d{3,6}"
    r"|CUDA (?:runtime )?version mismatch|libcudart version mismatch"
    r"|[Cc]uda version [\d.]{1,8} does not match|is only supported on CUDA [\d.]{2,5} and above"
    r"|find CUDA\w{0,12}: Found unsuitable version \"(?P<there3>[\d.]+)\", but required is (?:at least|exact"
    r" version) \"(?P<wanted3>[\d.]+)\""
    # nvcc works with a range of releases of the host's compiler.
    r"|unsupported (?P<compiler>GNU|clang|Microsoft Visual Studio|ICC configuration!? ?) ?version!"
    r"(?: gcc versions later than (?P<newest>\d{1,2}) )?"
    # Headers of one release and a compiler of another.
    r"|\b(?:cooperative_groups|cuda_fp16|cuda_bf16|crt|cuda/std)[\w./]{0,80}\.h\w{0,4}\(\d{1,6}\): error: "
    r"identifier \"\w{1,80}\" is undefined"
)


_MIXED_PYTORCH = late(r"undefined symbol")
"""Libraries of two installations of PyTorch. The error does not name the CUDA of either."""
_STATED = late(r"CUDA/cuDNN version[*: \n]{0,8}(?:CUDA )?v?(?P<release>\d{1,2}\.\d)")
"""The form field of a bug report. The "CUDA Version" of nvidia-smi is the driver's: not this."""
_FILLED_IN = late(
    r"(?i:tensorflow version)(?: \([^)\n]{1,40}\))?[*: ]{1,6}v?(?P<version>\d\.\d{1,2})"
)
_NO_GPU_LISTED = late(
    r"\[PhysicalDevice\(name='/physical_device:CPU:0', device_type='CPU'\)\]"
    r"|Num GPUs(?: Available)?: {1,4}0\b"
)
_LIBRARIES_FROM_WHEELS = (2, 11)
"""From this release on, TensorFlow installs its CUDA libraries, or cannot use any (Windows)."""
_MINORS_FIT = 11
"""From this CUDA release on, a library works with every release of its major version."""


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statement = log.first(_STATEMENTS)
    if statement is not None:
        yield _stated_mismatch(log, statement)
        return
    engine = log.first(_ENGINE)
    if engine is not None:
        yield _other_engine(log, engine)
        return
    unmet = unmet_requirement(log)
    if unmet is not None and unmet.line in lines_about_extensions(log):
        unmet = None
    if unmet is not None and (unmet.of == "cuda" or (unmet.of == "driver" and not unmet.too_old)):
        yield _unmet(log, unmet)
        return
    missing = missing_libraries(log)
    if missing is None:
        yield from _by_reported_versions(log)
        return
    if not missing.toolkit:
        return
    foreign = foreign_releases(missing)
    if foreign or other_release_opened(missing):
        yield _another_release(log, missing, foreign)
    elif missing.severity != "info":
        yield _perhaps(log, missing)


_ENGINE = late(
    r"Serialization [^\n]{0,100}Version tag does not match"
    r"|The engine plan file is not compatible with this version of TensorRT"
    r"|The engine plan file is generated on an incompatible device"
)


def _other_engine(log: Log, statement: Match) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        effect="broken",
        message="the TensorRT engine was built by another TensorRT release, or for another GPU, than "
        "the one that loads it; an engine works only with the release and the kind of GPU that it "
        "was built for",
        evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
        remedies=(
            Remedy("Build the engine again, from the ONNX model, with the installed TensorRT."),
            Remedy(
                "Or install the TensorRT release that built it; this one is installed.",
                command_line(PYTHON, "-c 'import tensorrt; print(tensorrt.__version__)'"),
            ),
        ),
    )


def _unmet(log: Log, unmet: Unmet) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        effect="broken",
        message=f"another CUDA release is needed than the one that is there: {excerpt(unmet.text)}",
        evidence=log.evidence(unmet.line, *ended_after(log, unmet.line)),
        remedies=(
            Remedy("Install the release that the message asks for, of either of the two parts."),
        ),
        confidence="likely",
        ask="Which CUDA does the program need, and which one does `nvidia-smi` or `nvcc "
        "--version` show?",
    )


_TOO_OLD_FOR_JAX = late(
    r"Outdated (?:CUDA|cu[A-Za-z]{2,8}) installation found|but JAX was built against version"
)


def _stated_mismatch(log: Log, statement: Match) -> Finding:
    groups = statement.groups
    if groups["compiler"]:
        return _other_host_compiler(log, statement)
    there = groups["there"] or groups["there2"] or groups["there3"]
    wanted = groups["wanted"] or groups["wanted2"] or groups["wanted3"]
    versions = f": CUDA {there} is installed, CUDA {wanted} is needed" if there and wanted else ""
    what = "CUDA" if _MIXED_PYTORCH.search(statement.text) is None else "PyTorch or CUDA"
    too_old_for_jax = _TOO_OLD_FOR_JAX.search(statement.text) is not None
    return CAUSE.finding(
        subject=subject_of(log),
        effect="broken",
        confidence="certain" if what == "CUDA" else "likely",
        message="JAX finds a CUDA library that is older than the one that it was built against"
        if too_old_for_jax
        else f"two components were built for different releases of {what}{versions}",
        evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
        remedies=_NEWER_FOR_JAX if too_old_for_jax else tuple(_one_release(log, there, wanted)),
    )


_NEWER_FOR_JAX = (
    Remedy(
        "If LD_LIBRARY_PATH names a CUDA toolkit, JAX takes the library from there: start it "
        "without.",
        UnsetVariable(("LD_LIBRARY_PATH",)),
    ),
    Remedy(
        "Install JAX again together with the CUDA libraries that its plugin needs.",
        InstallFramework("jax", options=("upgrade",)),
    ),
)


def _other_host_compiler(log: Log, statement: Match) -> Finding:
    newest = statement.groups["newest"]
    older = (
        Remedy(
            f"Compile with gcc {newest}, which can be installed beside the newer one.",
            shell_script("export NVCC_PREPEND_FLAGS='-ccbin g++-", a_number(newest), "'"),
        )
        if newest
        else Remedy("Compile with a compiler that this CUDA toolkit supports (nvcc -ccbin).")
    )
    return CAUSE.finding(
        subject=subject_of(log),
        effect="broken",
        message="the compiler of this machine is not one that the CUDA toolkit (nvcc) supports"
        + (f": it supports gcc up to {newest}" if newest else ""),
        evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
        remedies=(older, Remedy("Or install a newer CUDA toolkit, which supports this compiler.")),
    )


def _one_release(log: Log, there: str | None, wanted: str | None) -> Iterator[Remedy]:
    if wanted:
        yield Remedy(
            f"Use CUDA {wanted}: install that toolkit and set CUDA_HOME to its folder.",
            shell_script("export CUDA_HOME=/usr/local/cuda-", a_number(wanted)),
        )
    else:
        yield Remedy("Install all components for one CUDA release.")
    action = _pytorch_for(there) if log.framework == "torch" else None
    if there:
        yield Remedy(f"Or install the framework's build for CUDA {there}.", action)
    elif log.framework in ("torch", ""):
        yield Remedy("Or install PyTorch again, then the packages that depend on it.", action)


def _pytorch_for(cuda: str | None) -> Action | None:
    """PyTorch's builds for the installed CUDA; without a number the planner chooses."""
    if not cuda:
        return InstallFramework("torch", options=("force-reinstall",))
    index = "cu" + "".join(cuda.split(".")[:2])
    if not index_exists(index):
        return None
    return Install(
        ("torch", "torchvision", "torchaudio"),
        index_url=pytorch_index(index),
        options=("force-reinstall",),
    )


def _by_reported_versions(log: Log) -> Iterator[Finding]:
    """A report with versions and an empty list of GPUs, but without the loader's messages."""
    stated, empty = log.first(_STATED), log.first(_NO_GPU_LISTED)
    filled_in = log.first(_FILLED_IN)
    version = filled_in.groups["version"] if filled_in else log.version_of("tensorflow")
    if stated is None or empty is None or version is None or log.devices or log.failures:
        return
    build = build_of(version)
    if build is None or release_numbers(version)[:2] >= _LIBRARIES_FROM_WHEELS:
        return
    there = stated.groups["release"] or ""
    if there == build.cuda or (
        release_numbers(there)[0] == release_numbers(build.cuda)[0] >= _MINORS_FIT
    ):
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        effect="cpu",
        confidence="likely",
        message=f"TensorFlow {version} was built for CUDA {build.cuda} and lists no GPU; the "
        f"report names CUDA {there}, whose libraries have other names",
        evidence=log.evidence(stated.line, empty.line),
        remedies=(
            Remedy(f"Install CUDA {build.cuda} as well; a machine can have several releases."),
            Remedy(f"Or install a release of TensorFlow that was built for CUDA {there}."),
        ),
        ask="What does `import tensorflow` print before the list? A line that begins with "
        '"Could not load dynamic library" names the library that it needs, and its release.',
    )


def _another_release(log: Log, missing: Missing, foreign: tuple[str, ...]) -> Finding:
    wanted = needed_release(log, missing)
    if foreign:
        there = f"the log names CUDA {and_list(list(foreign))} instead"
    else:
        there = f"{names(missing.opened[:3])} opened, so a neighbouring release is installed"
    return CAUSE.finding(
        subject=subject_of(log),
        effect=missing.effect,
        severity=missing.severity,
        message=(
            f"{missing.needed_by} needs {names(missing.toolkit)}"
            + (f" of CUDA {wanted}" if wanted else "")
            + f", which the loader does not find; {there}; {loss(missing)}"
        ),
        evidence=log.evidence(*missing.lines, *(event.line for event in missing.opened)),
        remedies=_install_that_release(log, missing, wanted),
        confidence=judged(missing, proven=bool(foreign) or not missing.stops),
    )


def _install_that_release(log: Log, missing: Missing, wanted: str) -> tuple[Remedy, ...]:
    first = Remedy(
        f"Install CUDA {wanted or 'of the release that the build was made for'} as well; a "
        "machine can have several releases."
    )
    other = Remedy(
        "Or install a release of the framework that was built for the installed CUDA.",
    )
    return (*cuda_remedies(log, missing)[:1], first, other)


def _perhaps(log: Log, missing: Missing) -> Finding:
    release = asked_release(missing.toolkit)
    return CAUSE.finding(
        subject=subject_of(log),
        effect=missing.effect,
        severity=missing.severity,
        message=(
            f"{names(missing.toolkit)} may be missing because another CUDA release than "
            f"{release or 'the needed one'} is installed"
        ),
        evidence=log.evidence(*missing.lines),
        remedies=cuda_remedies(log, missing),
        confidence="possible",
        ask=which_question(log, missing),
    )
