"""The framework was built for GPUs of another vendor than this machine's.

## Why it happens

A build with CUDA computes only on NVIDIA GPUs, a build with ROCm only on AMD GPUs. On Linux `pip
install torch` or `tensorflow` installs the CUDA build, whatever GPU the machine has. On a Mac,
TensorFlow uses the GPU only with an additional package, and JAX only computes on the CPU: Apple's
plug-in for it, `jax-metal`, does not work with current releases.

Graphics inside a processor (Intel's, most of AMD's) are only for the display. A machine without
another GPU counts as a machine without a GPU.

## What it looks like

Nothing fails: the list of GPUs is empty and everything runs on the CPU.

## Fix

Install the build for this machine's GPU: ROCm for AMD, XPU for Intel, Metal on a Mac.

## Fires on (machine)

An AMD card with PyTorch's CUDA build.

```toml
start = "no-gpu"
only = ["torch"]
[[graphics]]
vendor = "amd"
address = "0000:03:00.0"
device_id = "744c"
kernel_driver = "amdgpu"
```

A ROCm build on a machine with an NVIDIA card.

```toml
only = ["torch"]
[target.frameworks.torch.build]
kind = "rocm"
```

A CPU build beside an Intel GPU. It may be intended, so this is a warning.

```toml
start = "no-gpu"
only = ["torch"]
[target.frameworks.torch.build]
kind = "cpu"
[[graphics]]
vendor = "intel"
address = "0000:03:00.0"
device_id = "56a0"
kernel_driver = "i915"
```

## Quiet on (machine)

Integrated graphics of an Intel processor and of an AMD processor.

```toml
start = "no-gpu"
[[graphics]]
vendor = "intel"
address = "0000:00:02.0"
device_id = "9a49"
kernel_driver = "i915"
```

```toml
start = "no-gpu"
[[graphics]]
vendor = "amd"
address = "0000:05:00.0"
device_id = "1638"
kernel_driver = "amdgpu"
```

Windows does not show where a GPU is, and Intel's are mostly inside a processor.

```toml
start = "no-gpu"
only = ["torch"]
[system]
os = "windows"
[[graphics]]
vendor = "intel"
address = ""
device_id = "9a49"
kernel_driver = {unknown = "kernel drivers are not read on Windows"}
```

## Cannot tell on (machine)

```toml
start = "no-gpu"
only = ["torch"]
[[graphics]]
vendor = "amd"
address = "0000:03:00.0"
device_id = "744c"
kernel_driver = "amdgpu"
[target.frameworks.torch.build]
kind = {unknown = "torch/version.py: permission denied"}
```

## Fires on (log)

```
rocBLAS error: Cannot read /opt/venv/lib/python3.10/site-packages/torch/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : gfx1032
Aborted (core dumped)
```

```
NotImplementedError: The operator 'aten::_linalg_solve_ex.result' is not currently implemented for the MPS device. If you want this op to be added in priority during the prototype phase of this feature, please comment on the issue.
```

A Mac has no CUDA.

```
  File "/Users/kim/miniforge3/envs/ml/lib/python3.9/site-packages/torch/cuda/__init__.py", line 211, in _lazy_init
AssertionError: Torch not compiled with CUDA enabled
```

```
ImportError: libamdhip64.so.6: cannot open shared object file: No such file or directory
```

TensorFlow with Apple's plug-in, whose platform XLA does not know. Reports name the optimizers that
Keras has since TensorFlow 2.11, which it compiles with XLA.

```
2023-01-05 10:00:00.100000: W tensorflow/core/framework/op_kernel.cc:1830] OP_REQUIRES failed at xla_ops.cc:418 : NOT_FOUND: could not find registered platform with id: 0x1051fc880
```

## Quiet on (log)

JAX tries one backend after the other.

```
I0105 12:00:00.000001 140210 xla_bridge.py:353] Unable to initialize backend 'rocm': NOT_FOUND: Could not find registered platform with name: "rocm". Available platform names are: Interpreter CUDA Host
```

The plugin works.

```
Metal device set to: Apple M1 Pro
Epoch 1/5 - loss: 0.41
```

## Sources

- <https://pytorch.org/get-started/locally/>
- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/>
- <https://docs.jax.dev/en/latest/installation.html>
- <https://developer.apple.com/metal/tensorflow-plugin/>
- <https://github.com/tensorflow/tensorflow/issues/58988>
- <https://developer.apple.com/forums/thread/723610>
- <https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.backend_remedies import backend_remedies
from whygpu.causes.evidence.framework_installs import gpu_build_of, pytorch_index
from whygpu.causes.evidence.log_out_of_memory import metal_without_memory
from whygpu.causes.evidence.log_subjects import ended_by, framework_title, subject_of
from whygpu.causes.evidence.mac_gpus import remedy_on_a_mac
from whygpu.causes.evidence.other_cards import FOR_AMD, FOR_INTEL, OTHER_CARD, only_card
from whygpu.causes.evidence.own_words import complaints
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.driver import GraphicsDevice
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Failure, Log, Match
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.remedy import (
    PYTHON,
    Action,
    Install,
    InstallFramework,
    command_line,
)
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import BuildKind, Framework
from whygpu.tables.graphics_devices import can_compute
from whygpu.tables.metal_builds import has_metal_build
from whygpu.tables.topics_told import SEES_NONE

CAUSE = cause(
    "WG803",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        "gpu-unused",
        "keras-backend-without-gpu",
        "cpu-only-build",
        "device-placement-no-gpu-kernel",
    ),
)

_JUDGED = ("tensorflow", "jax", "torch")
"""Other frameworks are often installed for other purposes."""

_MAKERS = {"amd": "an AMD GPU", "intel": "an Intel GPU", "apple": "Apple's GPU"}

_UNFIT: dict[str, tuple[BuildKind, ...]] = {
    "nvidia": ("rocm", "xpu"),
    "amd": ("cuda", "xpu"),
    "intel": ("cuda", "rocm"),
    "apple": ("cpu", "cuda"),
}
"""Builds that cannot use a vendor's GPUs, and that another build could replace."""

_MAY_BE_ON_PURPOSE: dict[str, tuple[BuildKind, ...]] = {"amd": ("cpu",), "intel": ("cpu",)}
"""The same for builds that somebody may have chosen: these makers have GPUs that no build supports.
Beside an NVIDIA GPU, a CPU build is WG301."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    nvidia = nvidia_gpu(machine)
    others = _computing_devices(machine)
    if isinstance(nvidia, Known):
        if others:
            # With cards of two vendors, a build for the other one may be intended.
            return
        yield from _judge(machine, "nvidia", seen(nvidia))
        return
    if not isinstance(machine.graphics, Known):
        need(machine.graphics)
    for device in others[:1]:
        where = f" at {device.address}" if device.address else ""
        text = f"{_MAKERS[device.vendor]} ({device.device_id}){where}"
        yield from _judge(machine, device.vendor, seen(machine.graphics, text))


def _computing_devices(machine: Snapshot) -> tuple[GraphicsDevice, ...]:
    """GPUs of other vendors that frameworks can compute on."""
    if not isinstance(machine.graphics, Known):
        return ()
    return tuple(device for device in machine.graphics.value if can_compute(device))


def _judge(machine: Snapshot, vendor: str, gpu: Evidence) -> Iterator[Finding | Gap]:
    for framework in need(machine.target.frameworks):
        kind = framework.build.kind
        if framework.name not in _JUDGED or isinstance(kind, Absent):
            continue
        name = f"{display_name(framework.name)} {framework.version}"
        if isinstance(kind, Unknown):
            yield Gap(f"which GPUs {name} was built for: {kind.reason}")
        elif kind.value in _MAY_BE_ON_PURPOSE.get(vendor, ()):
            yield _unused(framework, vendor, seen(kind, f"built for {kind.value}"), gpu)
        elif kind.value in _UNFIT[vendor]:
            built = "without GPU support" if kind.value == "cpu" else f"for {_WORDS[kind.value]}"
            no_build = vendor == "apple" and not has_metal_build(framework.name)
            yield CAUSE.finding(
                subject=framework.name,
                message=f"{name} is built {built} and cannot use the GPU of this machine, "
                f"{gpu.text}",
                evidence=(seen(kind, f"built for {kind.value}"), gpu),
                remedies=(_remedy(framework, vendor),),
                confidence="certain" if vendor == "nvidia" else "likely",
                severity="info" if no_build else None,
            )


def _unused(framework: Framework, vendor: str, build: Evidence, gpu: Evidence) -> Finding:
    return CAUSE.finding(
        subject=framework.name,
        severity="warning",
        message=f"{display_name(framework.name)} {framework.version} is built without GPU support; "
        f"another build may be able to use the GPU of this machine, {gpu.text}",
        evidence=(build, gpu),
        remedies=(
            Remedy(
                "See whether the GPU is on the list of supported ones. If so, this could use it: "
                f"{_HINTS[framework.name, vendor]}."
            ),
        ),
        confidence="possible",
    )


_WORDS = {"cuda": "CUDA (NVIDIA GPUs)", "rocm": "ROCm (AMD GPUs)", "xpu": "XPU (Intel GPUs)"}

_INSTALLS = {
    ("torch", "intel"): Install(("torch",), index_url=pytorch_index("xpu"), removes=("torch",)),
}

_HINTS = {
    ("torch", "amd"): "PyTorch's ROCm build; https://pytorch.org/get-started/locally/ has the "
    "command for the current one",
    ("torch", "intel"): "PyTorch's build for XPU (Intel GPUs); "
    "https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html lists the GPUs that it supports",
    ("tensorflow", "amd"): "AMD's build of TensorFlow (tensorflow-rocm); see AMD's ROCm guide",
    ("jax", "amd"): "JAX's ROCm plugin; see AMD's ROCm guide",
    ("tensorflow", "intel"): "Intel's extension for TensorFlow",
    ("jax", "intel"): "Intel's extension for OpenXLA",
}


def _remedy(framework: Framework, vendor: str) -> Remedy:
    if vendor == "apple":
        return remedy_on_a_mac(framework)
    key = (framework.name, vendor)
    fallback = f"the build of {display_name(framework.name)} for this GPU"
    action: Action | None = _INSTALLS.get(key)
    if vendor == "nvidia":
        removes = () if framework.name == "jax" else (framework.distribution,)
        action = gpu_build_of(framework, removes=removes)
    return Remedy(f"Install {_HINTS.get(key, fallback)}.", action)


_ROCM = late(
    r"with AMDGPU version ?: gfx|rocBLAS error|ROCm error|HIP error: (?!out of memory|device-side assert)|hipError(?!OutOfMemory"
    r"|InvalidDevice\b)[A-Z]\w{4,40}"
    r"|HIP_ERROR_NO_DEVICE|No HIP GPUs are available|ROCk module is NOT loaded"
    r"|[Nn]o ROCm-capable device|[Uu]nable to open /dev/kfd|HSA_STATUS_ERROR"
    r"|adding custom device \"/dev/(?:kfd|dri)\b[^\n]{0,12}: no such file"
    r"|hsa_init[^\n]{0,30}[Ff]ailed|MIOpen\(HIP\): Error|MIOpen Error|miopenStatus[A-Z]\w{4,40}"
    r"|^:[01]:(?:hip_\w{2,30}|roc\w{2,20})\.cpp\b[^\n]{0,80}: (?:[^\n]{0,80}\] )?[Cc]annot"
    r"|Memory access fault by GPU node|amdgpu[^\n]{0,60}(?:ring \w{2,20} timeout|GPU reset)",
    re.MULTILINE,
)
_OF_AMD = (
    r"(?:\bamdgpu\b|\bgfx\d{3,4}[a-f]?\b|\bROCm\b|\brocm\b|\bHIP\b|\bhip[A-Z]\w{3,40}|\bMIO[Pp]en"
    r"|\b(?:roc|hip)(?:blas|BLAS|fft|FFT|solver|sparse|rand)\w{0,30}|\b(?:HIPBLAS|MIOPEN)_STATUS_\w{3,40})"
)
_TROUBLE = (
    r"(?:[Nn]ot (?:supported|found|available)|[Uu]nsupported|[Ff]ailed|[Ff]ailure|[Ee]rror|[Cc]annot"
    r"|[Uu]nable|too old|[Cc]an't|does(?:n't| not) support|suspended)"
)
_AMD_TROUBLE = late(rf"{_OF_AMD}[^\n]{{0,120}}?{_TROUBLE}|{_TROUBLE}[^\n]{{0,80}}?{_OF_AMD}")
"""AMD's software and a word of failure in one sentence, for messages without a known form."""
_OF_OTHERS = (
    (
        "Metal (Apple GPUs)",
        r"(?:\bMPS\b(?! (?:client|server|control|daemon))|\bMTL[A-Z]\w{3,30}|ggml_metal)",
    ),
    (
        "DirectML (Windows)",
        r"(?:[Dd]irect[Mm][Ll]|\bDml[A-Z]\w{3,30}|\bDXGI_\w{3,40}|\b887A000\d\b)",
    ),
    (
        "oneAPI (Intel GPUs)",
        r"(?:\bSYCL\b|\bsycl::|[Ll]evel[ -][Zz]ero|Intel GPU|\bXPU\b|\boneAPI\b)",
    ),
    ("OpenCL", r"(?:OpenCL|\bcl[A-Z][A-Za-z]{4,30}\b|\bCL_[A-Z_]{6,40})"),
    ("Vulkan", r"(?:ggml_vulkan|\bVulkan\d?\b|\bVK_ERROR_[A-Z_]{4,40}|\bvk::[A-Z])"),
)
_IN_OTHER_WORDS = tuple(
    (backend, late(rf"{words}[^\n]{{0,120}}?{_TROUBLE}|{_TROUBLE}[^\n]{{0,120}}?{words}"))
    for backend, words in _OF_OTHERS
)
"""The same for other interfaces. It counts in what ended the program."""
_ROCM_LIBRARIES = (
    "amdhip64",
    "hipblas",
    "hipblaslt",
    "hipfft",
    "hiprand",
    "hipsolver",
    "hipsparse",
    "rocblas",
    "rocfft",
    "rocrand",
    "rocsolver",
    "rocm_smi64",
    "MIOpen",
    "migraphx",
    "rccl",
    "hsa-runtime64",
    "onnxruntime_providers_rocm",
)
_METAL = late(
    r"ggml_metal\w{0,30}: (?:error|[^\n]{0,60}\bfailed)|kIOGPUCommandBuffer\w{4,40}"
    r"|MTLLibraryErrorDomain|MTLCommandBufferErrorDomain|command buffer exited with error status"
    r"|not (?:current(?:ly)? )?implemented for the MPS device|not supported (?:on|for"
    r"|by) (?:the )?MPS(?! backend and)"
    r"|(?:MPS|mps) (?:framework|backend|device)[^\n]{0,30}(?:doesn't|does not|is not) support"
    r"|(?:does not|doesn't) support[^\n]{0,40} in (?:the )?MPS backend|on (?:MPS|mps) works only"
    r"|MPSNDArray|MPSGraph\w{0,20}[^\n]{0,40}(?:[Ff]ailed|error|assert)"
    r"|not linked with support for mps"
    r"|MetalPerformanceShaders\w{0,20}[^\n]{0,80}failed assertion|libmetal_plugin\.dylib"
    r"|ATen/native/mps/"
    r"|[Cc]ould not find registered platform with id: 0x|for platform METAL|platform 'METAL'"
    r"|default_memory_space is not supported|MPS: [A-Z][^\n]{0,60}(?:not|unsupported|Unsupported)"
    r"|at start of device string: mps\b|for MPS currently|float64 dtype as the MPS|MPS backend is (?:not )?supported on MacOS"
)
_DIRECTML = late(
    r"\b(?:tfdml|dml_\w{2,30}|DML_\w{2,30}|DML|[Dd]irect[Mm][Ll])\b[^\n]{0,120}"
    r"(?:[Ff]ailed|[Ee]rror|not (?:supported|implemented)|HRESULT|887[aA]00)"
    r"|(?:not (?:supported|implemented)|[Ff]ailed|HRESULT)[^\n]{0,120}"
    r"\b(?:dml_\w|[Dd]irect[Mm][Ll]|DML_|tfdml|privateuseone)|PrivateUse1[^\n]{0,60}(?:not|[Ff]ail)"
    r"|\bDXCore\w{0,40}\(|at start of device string: (?:dml|privateuseone)\b"
    r"|GetDeviceRemovedReason|DXGI_ERROR_DEVICE_(?:REMOVED|HUNG)"
    r"|lib(?:d3d12|directml)\w{0,12}\.so[\w.]{0,12}: cannot open shared object"
    r"|(?:Could not find|Failed to load|could not load)[^\n]{0,40}\b(?:DirectML|d3d12)\w{0,12}\.dll"
)
_ONEAPI = late(
    r"PI_ERROR_[A-Z_]{4,40}|UR_RESULT_ERROR_[A-Z_]{4,40}|No XPU devices are available"
    r"|Native API failed"
    r"|ZE_RESULT_ERROR_[A-Z_]{4,40}|libze_loader[^\n]{0,40}cannot open"
    r"|libsycl[^\n]{0,40}cannot open"
    r"|at start of device string: xpu\b|not linked with support for xpu devices"
    r"|not compiled with XPU|[Nn]o SYCL|XPU is not available"
)
_ROCM_BUILD = late(r"\d\+rocm\d")
_CUDA_ASKED = late(
    r"Torch not compiled with CUDA enabled|Found no NVIDIA driver on your system"
    r"|Attempting to deserialize object on a CUDA device"
)
_PROBED_BY_JAX = late(r"Unable to initialize backend '")
_MAKERS_BY_WORDS = (
    ("ROCm (AMD GPUs)", _ROCM),
    ("Metal (Apple GPUs)", _METAL),
    ("DirectML (Windows)", _DIRECTML),
    ("oneAPI (Intel GPUs)", _ONEAPI),
)


_PYTHON_WARNS = late(r"\b(?:User|Runtime)Warning: ")


def _without_warnings(log: Log, lines: list[int]) -> list[int]:
    """PyTorch warns about what Metal does differently, such as pinned memory, and continues."""
    return [line for line in lines if line in log.failed_lines() or not _warns(log, line)]


def _warns(log: Log, line: int) -> bool:
    return _PYTHON_WARNS.search(log.line(line).text) is not None


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    for backend, pattern in _MAKERS_BY_WORDS:
        lines = [m.line for m in log.find(pattern) if not _PROBED_BY_JAX.search(m.text)]
        if pattern is _METAL:
            lines = _without_warnings(log, lines)
        if backend.startswith("ROCm"):
            lines += [event.line for event in log.library_events("not-found", _ROCM_LIBRARIES)]
            lines = lines or _trouble_of_amd(log)
        if lines:
            yield _in_log(log, backend, tuple(lines[:8]))
            return
    for backend, pattern in _IN_OTHER_WORDS:
        ended = ended_by(log, pattern)
        if ended is not None and not (log.allocations or log.devices or log.statuses):
            yield _in_log(log, backend, (ended.line,))._replace(confidence="likely")
            return
    unable = next((a.line for a in log.allocations if metal_without_memory(log, a)), None)
    if unable is not None:
        yield _virtual_mac(log, unable)
        return
    rocm_build = log.first(_ROCM_BUILD)
    if rocm_build is not None and log.devices and log.without_gpu():
        yield CAUSE.finding(
            subject=subject_of(log),
            message="the installed PyTorch is built for ROCm (AMD GPUs), and the log lists "
            f"{log.devices[0].name or 'an NVIDIA GPU'}",
            evidence=log.evidence(rocm_build.line, log.devices[0].line),
            remedies=(Remedy("Install PyTorch's build for CUDA.", InstallFramework("torch")),),
            effect="cpu",
        )
        return
    asked = log.first(_CUDA_ASKED)
    card = log.first(OTHER_CARD)
    if asked is None or (card is None and log.platform != "macos"):
        yield from _of_own_card(log)
        return
    where = f"a machine with {_name_of(card)}" if card else "a Mac"
    lines_of_both = (asked.line, card.line) if card else (asked.line,)
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"the program selects CUDA, which needs an NVIDIA GPU, on {where}",
        evidence=log.evidence(*lines_of_both),
        remedies=(
            Remedy(
                "Select a device that exists: mps on a Mac with an Apple chip, a ROCm build "
                "for AMD cards, xpu for Intel, or cpu on any machine.",
                command_line(PYTHON, "-c 'import torch; print(torch.backends.mps.is_available())'")
                if log.platform == "macos"
                else None,
            ),
        ),
        confidence="likely",
        effect="broken",
    )


_REST_OF_NAME = late(r"(?: (?:[A-Z\d][\w.-]{0,12}|\([A-Z]{1,4}\))){0,3}")


def _name_of(card: Match) -> str:
    """The name of a card within its line, which may be a whole sentence."""
    named = OTHER_CARD.search(card.text)
    if named is None:
        return card.text.strip()[:60]
    rest = _REST_OF_NAME.match(card.text, named.end())
    return named[0] + (rest[0] if rest else "")


def _virtual_mac(log: Log, line: int) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        message="Metal gives this process no memory at all, as in a virtual Mac (the runners of a "
        "CI service): it holds nothing, and its first small request is refused",
        evidence=log.evidence(line),
        remedies=(
            Remedy(
                "Run it on the CPU there (device='cpu'), although "
                "torch.backends.mps.is_available() is True; use the GPU on a Mac itself."
            ),
        ),
        confidence="likely",
        effect="broken",
        ask="Is it a virtual machine? `sysctl -n kern.hv_vmm_present` prints 1 in one.",
    )


def _of_own_card(log: Log) -> Iterator[Finding]:
    """Somebody whose framework sees no GPU names a card that is not NVIDIA's."""
    card = only_card(log)
    sees_none = [report.line for report in log.without_gpu() if report.says == "no-gpu"]
    sees_none += complaints(log, SEES_NONE)
    if card is None or not sees_none or log.failures:
        return
    amd = card.groups["amd"]
    name = amd or card.groups["intel"] or ""
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"the GPU is one of {'AMD' if amd else 'Intel'} ({name}), and the usual builds of "
        f"{framework_title(log)} use GPUs of NVIDIA only",
        evidence=log.evidence(card.line, *sees_none),
        remedies=(FOR_AMD if amd else FOR_INTEL,),
        confidence="likely",
        effect="cpu",
        ask="Does that computer have an NVIDIA GPU as well?",
    )


def _trouble_of_amd(log: Log) -> list[int]:
    """Warnings, errors and failures about AMD's software where no GPU of NVIDIA is seen."""
    if log.devices or log.reports_gpu():
        return []
    ends = log.failed_lines()
    return [
        match.line
        for match in log.find(_AMD_TROUBLE)
        if not _PROBED_BY_JAX.search(match.text)
        and (match.line in ends or log.line(match.line).level in ("warning", "error"))
    ]


def _in_log(log: Log, backend: str, lines: tuple[int, ...]) -> Finding:
    text = log.line(lines[0]).text.strip()
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"a backend for non-NVIDIA GPUs failed, {backend}: {text[:140]}",
        evidence=log.evidence(*lines, *(f.line for f in log.failures if _near(f, lines))),
        remedies=backend_remedies(log, backend),
        confidence="certain",
        effect="broken" if log.failures else "cpu",
    )


def _near(failure: Failure, lines: tuple[int, ...]) -> bool:
    """The abort that directly follows such a message."""
    return any(0 <= failure.line - line <= _LINES_TO_THE_END for line in lines)


_LINES_TO_THE_END = 3
