"""The CUDA driver does not start.

## Why it happens

Every CUDA program first calls cuInit in the driver, and does not use the GPU if that fails. The
code that cuInit returns is the only information about the reason. If whygpu knows the reason behind
the code (no permission, another library version, a hidden GPU, ...), it shows that cause and this
finding below it. These codes remain:

- 999: no reason given; often the module nvidia_uvm after the machine was suspended.
- 804: the forward-compatibility libcuda of a container image, on a GPU that is not a data-centre
  model.
- 803: libcuda and the kernel module have different versions.
- 304: the operating system refused a request.
- 100: the driver offers no GPU to this process; also if MIG is on and no instance was created.

## What it looks like

- TensorFlow: `failed call to cuInit: ... CUDA_ERROR_UNKNOWN`, then everything on the CPU.
- JAX: `operation cuInit(0) failed: CUDA_ERROR_...`, then "Falling back to cpu".
- PyTorch: `torch.cuda.is_available()` is False, with a warning that names the code.

## Fix

It depends on the code; the finding gives the fix.

## Fires on (machine)

After a laptop was suspended.

```toml
[probes.cuda]
devices = {unknown = "cuInit: 999 CUDA_ERROR_UNKNOWN"}
facts = [["libcuda.so.1", "loaded"], ["cuInit", "999 CUDA_ERROR_UNKNOWN"]]
```

A container image with NVIDIA's compat package, on a GeForce card.

```toml
[driver.cuda_library]
path = "/usr/local/cuda/compat/libcuda.so.1"
version = "590.44.01"
kind = "compat"
[probes.cuda]
devices = {unknown = "cuInit: 804 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"}
facts = [["cuInit", "804 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"]]
```

NVML fails, and CUDA was not tried.

```toml
probes_left_out = "--no-probe"
[driver]
state = "failed"
detail = "Unknown Error"
gpus = {unknown = "NVML could not tell: Unknown Error"}
```

## Quiet on (machine)

A login node of a cluster has the driver's libraries but no GPU.

```toml
start = "no-gpu"
[driver]
state = "failed"
[driver.cuda_library]
path = "/usr/lib64/libcuda.so.1"
version = "580.65.06"
kind = "driver"
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
```

## Fires on (log)

```
2022-08-01 12:00:00.000001: E tensorflow/stream_executor/cuda/cuda_driver.cc:265] failed call to cuInit: CUDA_ERROR_INVALID_VALUE: invalid argument
```

```
numba.cuda.cudadrv.error.CudaSupportError: Error at driver init: Call to cuInit results in CUDA_ERROR_NOT_FOUND (500)
```

## Quiet on (log)

If other lines give the reason, that is the cause.

```
failed call to cuInit: CUDA_ERROR_INVALID_VALUE
kernel version 352.63.0 does not match DSO version 361.93.2 -- cannot find working devices in this configuration
```

## Sources

- <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html>
- <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__INITIALIZE.html>
- <https://docs.nvidia.com/deploy/cuda-compatibility/>
- <https://docs.nvidia.com/datacenter/tesla/mig-user-guide/>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.cuda_start_suspects import mismatch_lines, suspects
from whygpu.causes.evidence.driver_state import (
    CuInit,
    cu_init,
    on_tegra,
    probed,
    real_library,
)
from whygpu.causes.evidence.log_cuda_start import (
    COMPAT,
    STUB,
    failed_at,
    lines_of,
    story_of,
    weight,
)
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.driver import Gpu
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.probe import Probe
from whygpu.model.remedy import a_path, command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.tables.cuda_errors import cuda_error

CAUSE = cause(
    "WG108",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused", "keras-backend-without-gpu"),
)

_RENEW_WSL = Remedy(
    "Update NVIDIA's driver in Windows and restart WSL; in PowerShell:",
    shell_script("wsl --update; wsl --shutdown", everywhere=True),
)

_NO_DEVICE = 100
_COMPAT_NOT_SUPPORTED = 804


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    state = machine.driver.state
    nvml_fails = isinstance(state, Known) and state.value == "failed"
    probe = machine.probe("cuda")
    answer = cu_init(machine)
    if isinstance(answer, Known) and answer.value.code != 0:
        yield _refused(machine, answer)
    elif isinstance(probe, Known) and (trouble := _trouble(machine, probe.value)):
        yield _failed(machine, trouble, probe.source)
    elif isinstance(probe, Known) and probe.value.ended in ("exception", "exit", "not-started"):
        yield Gap(f"whether CUDA starts: the probe failed ({probe.value.how})")
    elif isinstance(probe, Known) and isinstance(answer, Unknown):
        yield Gap(f"whether CUDA starts: {answer.reason}")
    elif nvml_fails:
        yield _only_nvml(machine, starts=isinstance(answer, Known))
    else:
        need(probe)


def _refused(machine: Snapshot, answer: Known[CuInit]) -> Finding:
    code = answer.value.code
    row = cuda_error(code)
    meaning = f": {row.meaning}" if row else ""
    library = real_library(machine.driver.cuda_library)
    evidence = [probed(answer)]
    if library is not None:
        evidence.append(seen(library, f"libcuda.so.1 is {library.value.path}"))
    remedies = [Remedy(row.advice, row.action)] if row else []
    if isinstance(machine.system.wsl, Known):
        # Under WSL, Linux has no kernel module that could be reloaded.
        remedies = [_RENEW_WSL]
    if on_tegra(machine):
        # Its kernel driver is nvgpu, and there is no nvidia_uvm.
        remedies = [_JETSON_GROUPS, _LOOK]
    split = _split_by_mig(machine) if code == _NO_DEVICE else ()
    if split:
        evidence += split
        meaning += "; MIG is on, so CUDA sees only instances that were created"
        # In a container, NVML lists the instances that were passed in.
        none = isinstance(machine.system.container, Absent) and _has_no_instance(machine)
        meaning += ", and there is none" if none else ", and whether there are any is not known"
        first = "Create an instance" if none else "If nvidia-smi -L lists no instance, create one"
        remedies.insert(
            0,
            Remedy(
                f"{first} (nvidia-smi mig -lgip lists the profiles), or turn MIG off with "
                "nvidia-smi -mig 0.",
                command_line("sudo nvidia-smi mig -cgi 0 -C"),
            ),
        )
    told = _told_by_nvml(machine)
    if told is not None:
        evidence.append(seen(machine.driver.state, told))
        meaning = f"; NVML, which looks at the GPU as well, says: {told}"
        remedies = [*(advice for words, advice in _BY_NVML if words in told.lower()), *remedies]
    if code == _COMPAT_NOT_SUPPORTED and library is not None and library.value.kind == "compat":
        remedies = [_leave_out_compat(library.value.path)]
    return CAUSE.finding(
        subject=MACHINE,
        message=f"the CUDA driver does not start: cuInit returned {answer.value.text}{meaning}",
        evidence=tuple(evidence),
        remedies=tuple(remedies) or (_LOOK,),
    )


_JETSON_GROUPS = Remedy(
    "On a Jetson, a user has to be in the groups video and render. Join them, and log in again.",
    shell_script('sudo usermod -aG video,render "$USER"'),
)


def _told_by_nvml(machine: Snapshot) -> str | None:
    """The reason that NVML gives, if it fails, too. It often knows more than cuInit."""
    state = machine.driver.state
    failed = isinstance(state, Known) and state.value == "failed"
    detail = machine.driver.detail.strip()
    return detail if failed and detail and "unknown error" not in detail.lower() else None


_BY_NVML = (
    (
        "requires reset",
        Remedy(
            "End all programs on the GPU and reset it. If that does not help, restart.",
            command_line("sudo nvidia-smi --gpu-reset"),
        ),
    ),
    (
        "external power",
        Remedy("Switch the machine off and connect all power cables of the card."),
    ),
)
"""Words in NVML's own messages (nvmlErrorString), in small letters, and what to do first."""


def _split_by_mig(machine: Snapshot) -> tuple[Evidence, ...]:
    """Evidence that MIG is on for every GPU, unless one is known to have an instance."""
    gpus = machine.driver.gpus
    if not isinstance(gpus, Known) or not gpus.value or any(map(_instances, gpus.value)):
        return ()
    modes = [gpu.mig for gpu in gpus.value]
    if not all(isinstance(mode, Known) and mode.value for mode in modes):
        return ()
    return tuple(
        seen(gpu.mig, f"MIG is on for GPU {gpu.number} ({gpu.name})") for gpu in gpus.value
    )


def _instances(gpu: Gpu) -> tuple[str, ...] | None:
    layout = gpu.health.value.mig_layout if isinstance(gpu.health, Known) else gpu.health
    return layout.value if isinstance(layout, Known) else None


def _has_no_instance(machine: Snapshot) -> bool:
    return all(_instances(gpu) == () for gpu in need(machine.driver.gpus))


def _leave_out_compat(path: str) -> Remedy:
    folder = path.rpartition("/")[0]
    return Remedy(
        f"Remove {folder} from LD_LIBRARY_PATH and from the loader's cache, so that the driver's "
        "own libcuda.so.1 is found. In a container, choose an image whose CUDA version the "
        "host's driver supports without it.",
        shell_script(
            "export LD_LIBRARY_PATH=$(printf %s \"$LD_LIBRARY_PATH\" | tr : '\\n' | grep -vxF ",
            a_path(folder),
            " | paste -sd:)",
        ),
    )


_LOOK = Remedy(
    "Look for the reason in the kernel log.",
    shell_script("sudo dmesg | grep -i -E 'nvrm|nvidia' | tail -20"),
)


def _trouble(machine: Snapshot, probe: Probe) -> str | None:
    """The failure if cuInit returned no code; None if nothing failed."""
    if probe.ended == "signal":
        return f"the process was ended by {probe.how} (at: {probe.stage})"
    loaded = probe.fact("libcuda.so.1")
    if loaded not in (None, "loaded"):
        # If there is no such library at all, another cause reports that.
        absent = isinstance(machine.driver.cuda_library, Absent)
        return None if absent else f"libcuda.so.1 cannot be loaded: {loaded}"
    if isinstance(probe.devices, Unknown):
        return probe.devices.reason if probe.ended == "finished" else None
    if isinstance(probe.devices, Known) and probe.fact("cuInit") and not probe.devices.value:
        return "cuInit succeeded, but the driver counts no GPU"
    return None


def _failed(machine: Snapshot, trouble: str, source: str) -> Finding:
    return CAUSE.finding(
        subject=MACHINE,
        message=f"the CUDA driver does not start: {trouble}",
        evidence=(Evidence("probe", source, trouble), seen(machine.driver.cuda_library)),
        remedies=(
            Remedy(
                "Check which copy of the library is found.",
                shell_script('ldconfig -p | grep libcuda; echo "$LD_LIBRARY_PATH"'),
            ),
            _LOOK,
        ),
    )


def _only_nvml(machine: Snapshot, *, starts: bool) -> Finding:
    detail = machine.driver.detail or "no reason given"
    then = (
        "; CUDA itself starts, but programs that use NVML first, such as TensorFlow, see no GPU"
        if starts
        else ""
    )
    return CAUSE.finding(
        subject=MACHINE,
        message=f"the NVIDIA driver fails when NVML asks for its GPUs: {detail}{then}",
        evidence=(seen(machine.driver.state, detail), seen(nvidia_gpu(machine))),
        remedies=(
            Remedy("Check whether nvidia-smi reports more.", command_line("nvidia-smi")),
            _LOOK,
        ),
        confidence="likely",
    )


_MEMORY = ("CUDA_ERROR_OUT_OF_MEMORY",)
_CODES = {
    "CUDA_ERROR_INVALID_VALUE": 1,
    "CUDA_ERROR_NOT_INITIALIZED": 3,
    "CUDA_ERROR_INVALID_DEVICE": 101,
    "CUDA_ERROR_NOT_FOUND": 500,
}


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    if suspects(log) or mismatch_lines(log):
        return
    refused = [
        status
        for status in log.statuses
        if status.call == "cuInit"
        and status.api == "driver"
        and status.name not in (*_MEMORY, *STUB, *COMPAT)
    ]
    if any(device.event == "ready" for device in log.devices):
        return
    unread = log.first(_NO_RELEASE) if log.devices else None
    if not refused and unread is not None and not log.progress and not log.reports_gpu_at_work():
        yield _without_release(log, unread)
    if not refused:
        return
    name = refused[0].name
    row = cuda_error(_CODES[name]) if name in _CODES else None
    lines = (*lines_of(refused), *story_of(log).wanted)
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"the CUDA driver does not start: cuInit returned {name}"
        + (f": {row.meaning}" if row else ""),
        evidence=log.evidence(*lines),
        remedies=(Remedy(row.advice, row.action),) if row else (_LOOK,),
        confidence="likely",
        severity=weight(log, lines, "error"),
        effect="broken" if failed_at(log, lines) else "cpu",
    )


_NO_RELEASE = late(r"NVIDIA-SMI \d[^\n]{0,80}CUDA Version: (?:ERR!|N/A)")


def _without_release(log: Log, unread: Match) -> Finding:
    """nvidia-smi itself needs only NVML; it asks libcuda for the release of CUDA."""
    return CAUSE.finding(
        subject=subject_of(log),
        message="nvidia-smi lists the GPU, but cannot read the CUDA release of the driver: "
        "libcuda.so.1 is missing, damaged, or not the driver's",
        evidence=log.evidence(unread.line),
        remedies=(
            Remedy(
                "Check which copies the loader finds, and where they lead.",
                shell_script("ls -l $(ldconfig -p | grep -o '/.*libcuda.so.1$')"),
            ),
            Remedy(
                "In a container, let the engine pass in the libraries for computing as well "
                "(NVIDIA_DRIVER_CAPABILITIES=compute,utility)."
            ),
        ),
        confidence="likely",
        effect="cpu",
        ask="Did it run in a container, or are two drivers installed?",
    )
