"""The catalogue: one file per cause, found by walking this package."""

from __future__ import annotations

import gc
import os
from functools import lru_cache
from importlib import import_module

from whygpu.model.cause import Cause

UNSEEN_ON_MACHINES = frozenset(("noise", "programs"))
"""Families that only logs and source can show: they are not loaded to examine a machine."""

NEVER_SEEN_ON_MACHINES = frozenset(
    {
        *("device_placement_no_gpu_kernel", "device_placement_nonexistent", "gpu_package_missing"),
        *("invalid_device_ordinal", "kernel_bug_illegal_access", "kubernetes_no_gpu"),
        *("mig_without_instances", "vgpu_unlicensed"),
        *("nccl_failure", "oom_leak_or_fragmentation", "oom_model_too_big", "server_memory_share"),
        *("triton_ptxas_too_old", "wheel_not_available", "windows_dll_load_failed"),
        *("base_image_not_fixed", "driver_files_in_image", "gpu_needed_in_image_build"),
        *("gpu_not_requested", "hosted_runtime_without_gpu", "image_lacks_framework_libraries"),
        "library_path_replaced",
        *("shared_memory_too_small", "xla_finds_no_algorithm"),
    }
)
"""Causes of the other families without a machine detector, left out for the same reason. A test
keeps the list right."""

NO_FAMILY = "evidence"
"""The package of what several causes share."""


@lru_cache(maxsize=1)
def catalogue() -> tuple[Cause, ...]:
    """Every cause, by code. A file that does not import or declares no CAUSE is a loud error."""
    return _load(frozenset())


@lru_cache(maxsize=1)
def machine_catalogue() -> tuple[Cause, ...]:
    """The causes that can be seen on a machine."""
    return _load(UNSEEN_ON_MACHINES | NEVER_SEEN_ON_MACHINES)


def _load(left_out: frozenset[str]) -> tuple[Cause, ...]:
    """Every cause, except those of these families and these modules."""
    collecting = gc.isenabled()
    # What an import makes stays; looking for garbage among it takes a twentieth of the time.
    gc.disable()
    try:
        return _imported(left_out)
    finally:
        if collecting:
            gc.enable()


def _imported(left_out: frozenset[str]) -> tuple[Cause, ...]:
    found: list[Cause] = []
    for family in sorted(os.listdir(__path__[0])):
        if "." in family or family.startswith("_") or family in left_out or family == NO_FAMILY:
            continue
        # pkgutil would do, but it imports inspect.
        for file in sorted(os.listdir(os.path.join(__path__[0], family))):
            module, _, ending = file.rpartition(".")
            if ending == "py" and module != "__init__" and module not in left_out:
                found.append(import_module(f"{__name__}.{family}.{module}").CAUSE)
    return tuple(sorted(found, key=lambda cause: cause.code))


def find_cause(name: str) -> Cause | None:
    """The cause with this code, its number (203 for WG203) or its slug, in any case."""
    wanted = name.strip().lower()
    for entry in catalogue():
        code = entry.code.lower()
        if wanted in (code, code.removeprefix("wg"), entry.slug):
            return entry
    return None
