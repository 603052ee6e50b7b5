"""Whether a container computes with the image that it runs, or only uses other tools in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.model.deployment import BaseImage
from whygpu.tables.base_images import starts_a_server

_COMPUTES = re.compile(
    r"(?:^|[\s/;&|(])(?:(?:vllm|sglang|torchrun|deepspeed|accelerate|nvidia-smi|tritonserver|trtllm-\w+|jupyter[\w-]*"
    r"|text-generation-launcher|llamafactory-cli|axolotl|lm_eval|horovodrun|whisper|yolo)(?=\s|$)"
    r"|-m (?:vllm|sglang|torch\.distributed)[\w.]*"
    r"|[\w-]*(?:train|tun(?:e|ing)|infer|serv|predict|generat|gpu|cuda)[\w-]*\.py(?=\s|$)"
    r"|-m [\w.]*(?:train|tun(?:e|ing)|infer|serv|predict|generat)[\w.]*)"
    # Python code in the command itself.
    r"|torch\.cuda\.\w|\.cuda\(|device=['\"]cuda|\.to\(['\"]cuda|list_physical_devices\(['\"]GPU",
    re.IGNORECASE,
)


def computes(base: BaseImage | None, command: Sequence[str], *, replaces_program: bool) -> bool:
    """False if the command shows none of the programs that need the GPU of the image.

    A pod may run curl or a test of an API in the image of a model server, because it is there. If
    the command only adds arguments, the image starts its own program.
    """
    if not command or (base is not None and starts_a_server(base) and not replaces_program):
        return True
    if command[0].startswith("-") and not replaces_program:
        return True
    flat = re.sub(r"\becho\s[^\n;&|]{0,400}", "", " ".join(command))
    return _COMPUTES.search(flat) is not None
