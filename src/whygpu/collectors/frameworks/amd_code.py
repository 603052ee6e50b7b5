"""Which AMD GPUs a ROCm build of a framework has code for, from its files."""

from __future__ import annotations

import os.path
import re

from whygpu.collectors.frameworks.shared import architectures
from whygpu.host.base import Host
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.target import Framework

_TORCH_BINARY = "lib/libtorch_hip.so"
_TORCH_BLAS = "lib/rocblas/library"
"""PyTorch's wheels have the kernels of rocBLAS for the GPUs that they are built for."""
_TENSORFLOW_BINARIES = (
    "libtensorflow_cc.so.2",
    "libtensorflow_framework.so.2",
    "python/_pywrap_tensorflow_internal.so",
)
_BLAS_TARGET = re.compile(r"gfx\d{1,2}[0-9a-f]{2}(?![0-9a-f])")


def with_amd_targets(host: Host, framework: Framework) -> Framework:
    targets = _targets(host, framework)
    return framework._replace(build=framework.build._replace(amd_targets=targets))


def _targets(host: Host, framework: Framework) -> Observed[tuple[str, ...]]:
    kind = framework.build.kind
    if isinstance(kind, Unknown):
        return kind
    if not isinstance(kind, Known) or kind.value != "rocm":
        return Absent(f"a build without ROCm, by {kind.source}")
    if framework.name == "torch":
        return _torch(host, framework.location)
    if framework.name == "tensorflow":
        return _in(host, framework.location, *_TENSORFLOW_BINARIES)
    return Unknown(f"for which AMD GPUs {framework.name} has code is not read")


def _in(host: Host, folder: str, *names: str) -> Observed[tuple[str, ...]]:
    found = architectures(host, (os.path.join(folder, name) for name in names))
    return Unknown(f"no {found.source}") if isinstance(found, Absent) else found


def _torch(host: Host, folder: str) -> Observed[tuple[str, ...]]:
    own = _in(host, folder, _TORCH_BINARY)
    if isinstance(own, Known):
        return own
    # New releases compress the code in their binary.
    path = os.path.join(folder, _TORCH_BLAS)
    names = host.list(path)
    listed = names.value if isinstance(names, Known) else ()
    found = sorted({match[0] for name in listed if (match := _BLAS_TARGET.search(name))})
    return Known(tuple(found), path) if found else own
