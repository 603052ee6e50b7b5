"""The GPUs that a log mentions: found, skipped, or ready for use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.model.log import Device, Line
from whygpu.model.units import logged_size

_READY = re.compile(
    r"Creat(?:ed|ing) (?:TensorFlow )?device \(?(?:\S{0,80}(?:device:|/)?(?i:gpu):\d+)\)?"
    r"(?: with (?P<memory>\d{1,9}) ?MB memory\)?)?:? {0,4}-> "
    r"(?:physical GPU )?\(?device: \d+, name: (?P<name>[^,\n]{1,80})"
    r"(?:[^\n]{0,80}compute capability: (?P<capability>\d+\.\d))?"
)
_CUT_SHORT = re.compile(r"Created TensorFlow device \(/job\S{0,80}GPU:\d+")
"""A console that truncates lines may lose the name; it is enough that the device was created."""
_IGNORED = re.compile(
    r"Ignoring (?:visible )?gpu device \(device: \d+, name: (?P<name>[^,\n]{1,80})"
    r"[^\n]{0,120}compute capability:? (?P<capability>\d+\.\d)"
)
_FOUND = re.compile(
    # TensorFlow, on one line or over several
    r"name: (?P<name>[^\n]{1,60}?)(?: major: (?P<major>\d+) minor: (?P<minor>\d+)"
    r"| computeCapability: (?P<capability>\d+\.\d))"
    # XLA: StreamExecutor device (0): GeForce RTX 2080 Ti, Compute Capability 7.5
    r"|StreamExecutor device \(\d+\): (?P<xla>[^,\n]{3,60}), Compute Capability (?P<xla_cc>\d+\.\d)"
    # llama.cpp and similar: Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6
    r"|Device \d+: (?P<ggml>[^,\n]{3,60}), compute capability (?P<ggml_cc>\d+\.\d)"
    # PyTorch's warning about a card: Found GPU0 GeForce GT 750M which is of cuda capability 3.0
    r"|Found GPU\d+ (?P<torch>[^\n]{3,60}?) which is of cuda capability (?P<torch_cc>\d+\.\d)"
    # nvidia-smi -L, and PyTorch's report on its environment
    r"|GPU \d+: (?P<listed>(?:NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID|A\d{2,3}|[HLTVP]\d{1,3}\b)"
    r"[^(\n]{0,60})"
    # YOLO: CUDA:0 (Tesla T4, 15102MiB)
    r"|CUDA:\d+ \((?P<yolo>[^,\n]{3,60}), \d+(?:\.\d+)?Mi?B\)"
    r"|_CudaDeviceProperties\(name='(?P<properties>[^'\n]{3,60})'"
    # CuPy: Device 0 Name                : NVIDIA A100-SXM4-40GB
    r"|Device \d+ Name\s{1,40}: (?P<cupy>\S[^\n]{2,60})"
    # Kohya: Torch detected GPU: NVIDIA A10 VRAM 22000 Arch (8, 6)
    r"|Torch detected GPU: (?P<kohya>\S[^\n]{2,60}?)(?: VRAM |$)"
    # numba -s: id 0    b'GeForce GTX 960M'    [SUPPORTED]
    r"|\bid \d{1,2} {1,12}b?'(?P<numba>[^'\n]{3,60})' {1,80}\[SUPPORTED"
    # ComfyUI: Device: cuda:0 NVIDIA GeForce RTX 4090 : cudaMallocAsync
    r"|Device: cuda:\d+ (?P<comfy>\S[^:\n]{2,60}?)(?: : |$)"
)
_CAPABILITIES = ("capability", "xla_cc", "ggml_cc", "torch_cc")
_NAMES = (
    *("name", "xla", "ggml", "torch", "listed", "yolo", "properties"),
    *("cupy", "kohya", "comfy", "numba"),
)
_ALONE = re.compile(r"name: (?P<name>[^\n]{3,60})")
_NEXT = re.compile(r"major: (?P<major>\d+) minor: (?P<minor>\d+)")
_SMI_ROW = re.compile(
    r"[|\s]{0,6}\d{1,2}\s{1,6}(?P<name>\S[^|\n]{2,60}?)\s{1,30}(?:On|Off|N/A|WDDM|TCC)\s{0,4}\|"
    r"\s{0,4}[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d"
)
_SMI_MEMORY = re.compile(r"(?P<used>\d{1,7})MiB\s{0,4}/\s{0,4}(?P<total>\d{1,7})MiB")
_FREE = re.compile(
    r"total ?Memory: (?P<total>[\d.,]{1,20} ?[KMG]iB)"
    r" free ?Memory: (?P<free>[\d.,]{1,20} ?[KMG]iB)",
    re.I,
)
_SIZE = re.compile(r"(?P<number>[\d.,]{1,20}) ?(?P<unit>[KMG]iB)")


def devices(lines: Sequence[Line]) -> tuple[Device, ...]:
    found: list[Device] = []
    before = ""
    for line in lines:
        text = line.text
        device = next(_of_line(line, before), None)
        if device is not None:
            found.append(device)
        elif found and (match := _FREE.search(text)) is not None:
            found[-1] = found[-1]._replace(
                memory=_bytes(match["free"]), total=_bytes(match["total"])
            )
        elif found and found[-1].total is None and (match := _SMI_MEMORY.search(text)) is not None:
            total, used = int(match["total"]) << 20, int(match["used"]) << 20
            if line.number == found[-1].line + 1:
                found[-1] = found[-1]._replace(memory=total - used, total=total)
        before = text
    return tuple(found)


def _of_line(line: Line, before: str) -> Iterator[Device]:
    """The devices in one line; TensorFlow 1 uses two lines for a device."""
    text = line.text
    if (match := _READY.search(text)) is not None:
        memory = int(match["memory"]) << 20 if match["memory"] else None
        yield Device(
            line.number, "ready", match["name"].strip(), _of(match, "capability"), memory, None
        )
    elif _CUT_SHORT.search(text):
        yield Device(line.number, "ready", "", "", None, None)
    elif (match := _IGNORED.search(text)) is not None:
        yield Device(line.number, "ignored", match["name"].strip(), match["capability"], None, None)
    elif (match := _FOUND.search(text)) is not None:
        capability = _of(match, *_CAPABILITIES)
        if match["major"]:
            capability = f"{match['major']}.{match['minor']}"
        yield Device(line.number, "found", _of(match, *_NAMES).strip(), capability, None, None)
    elif (match := _NEXT.search(text)) is not None and (name := _ALONE.fullmatch(before.strip())):
        capability = f"{match['major']}.{match['minor']}"
        yield Device(line.number, "found", name["name"].strip(), capability, None, None)
    elif (match := _SMI_ROW.match(text)) is not None:
        yield Device(line.number, "found", match["name"].strip(), "", None, None)


def _of(match: re.Match[str], *names: str) -> str:
    return next((match[name] for name in names if match[name]), "")


def _bytes(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    return logged_size(match["number"], match["unit"]) if match else None
