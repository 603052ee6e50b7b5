"""Which GPUs a policy means on this machine, and the variables that give a program just those."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from whygpu.errors import PolicyError
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.policy import Action, DeviceChoice
from whygpu.model.units import size_text

if TYPE_CHECKING:
    from whygpu.collectors.driver_answer import GpuIds
    from whygpu.model.driver import Gpu
    from whygpu.model.environment import GpuSelection
    from whygpu.model.snapshot import Snapshot

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
PCI_ORDER = "PCI_BUS_ID"
_SHORTEST_UUID = len("GPU-") + 4
_SHORTEST_NAME = len("L4")
_UUID = re.compile(r"(?:GPU|MIG)-[0-9a-f/-]*", re.IGNORECASE)


def hide_gpus(environ: Mapping[str, str]) -> list[Action]:
    """No framework touches a GPU, even one that a program asks for by name."""
    replaced = _replacing(environ, VISIBLE, "-1")
    jax = _replacing(environ, "JAX_PLATFORMS", "cpu")
    return [
        Action("set", VISIBLE, "-1", f"--device cpu: CUDA shows no GPU to any framework{replaced}"),
        Action("set", "JAX_PLATFORMS", "cpu", f"--device cpu: JAX does not even ask CUDA{jax}"),
    ]


def _replacing(environ: Mapping[str, str], name: str, value: str) -> str:
    given = environ.get(name)
    return f" (instead of {given!r})" if given is not None and given != value else ""


def gpus_of(machine: Snapshot) -> tuple[Gpu, ...]:
    """The GPUs in PCI bus order. Raises PolicyError if the driver does not list them."""
    gpus = machine.driver.gpus
    if isinstance(gpus, Known) and gpus.value:
        return gpus.value
    if isinstance(gpus, Unknown):
        raise PolicyError(f"the GPUs of this machine are not known: {gpus.reason}")
    if isinstance(gpus, Absent):
        raise PolicyError("no NVIDIA driver was found on this machine")
    detail = f" ({machine.driver.detail})" if machine.driver.detail else ""
    raise PolicyError(f"the NVIDIA driver shows no GPU on this machine{detail}")


def listing(gpus: Sequence[Gpu], ids: Sequence[GpuIds]) -> str:
    """The GPUs of this machine, one line each."""
    lines = []
    for gpu in gpus:
        uuid = ids[gpu.number].uuid if gpu.number < len(ids) else ""
        memory = gpu.memory_total_bytes
        size = f", {size_text(memory.value)}" if isinstance(memory, Known) else ""
        short = f", {uuid[: _SHORTEST_UUID + 4]}..." if uuid else ""
        lines.append(f"  gpu:{gpu.number}  {gpu.name}{size}, {gpu.pci_address}{short}")
    return "\n".join(lines)


class Chosen(NamedTuple):
    number: int
    """Its place in PCI bus order."""
    uuid: str
    """The GPU's, or that of one of its MIG instances; empty if the driver does not report it."""

    @property
    def is_instance(self) -> bool:
        return self.uuid.startswith("MIG-")


def find(words: Sequence[str], gpus: Sequence[Gpu], ids: Sequence[GpuIds]) -> tuple[Chosen, ...]:
    """The GPUs that the words mean, in the order of the words."""
    found: list[Chosen] = []
    for word in words:
        matches = _matches(word, gpus, ids)
        if not matches:
            raise PolicyError(
                f"there is no GPU {word!r} here; this machine has\n{listing(gpus, ids)}"
            )
        if len(matches) > 1 and word.lower().startswith(("gpu-", "mig-")):
            raise PolicyError(
                f"{word!r} is how the UUIDs of several GPUs begin; this machine has\n"
                f"{listing(gpus, ids)}"
            )
        if word.isdecimal() and matches[0] in found:
            raise PolicyError(f"GPU {word} is named twice; name each GPU once")
        found += [match for match in matches if match not in found]
    return tuple(found)


def _matches(word: str, gpus: Sequence[Gpu], ids: Sequence[GpuIds]) -> list[Chosen]:
    lower = word.lower()
    if lower.startswith("gpu-"):
        return [_whole(n, ids) for n, own in enumerate(ids) if own.uuid.lower().startswith(lower)]
    if lower.startswith("mig-"):
        return [
            Chosen(number, uuid)
            for number, own in enumerate(ids)
            for uuid in own.mig_uuids
            if uuid.lower().startswith(lower)
        ]
    if word.isdecimal():
        return [_whole(gpu.number, ids) for gpu in gpus if gpu.number == int(word)]
    return [_whole(gpu.number, ids) for gpu in gpus if lower in gpu.name.lower()]


def _whole(number: int, ids: Sequence[GpuIds]) -> Chosen:
    """A GPU, or the first MIG instance of a split one, which CUDA cannot use as a whole."""
    if number >= len(ids):
        return Chosen(number, "")
    own = ids[number]
    return Chosen(number, own.mig_uuids[0] if own.mig_uuids else own.uuid)


def show_gpus(
    choice: DeviceChoice, machine: Snapshot, ids: Sequence[GpuIds], environ: Mapping[str, str]
) -> list[Action]:
    """The program sees the GPUs that were chosen, numbered in PCI bus order or as listed."""
    if not isinstance(machine.driver.gpus, Known) or not machine.driver.gpus.value:
        _require_words_for_gpus(choice.gpus)
    gpus = gpus_of(machine)
    wanted = find(choice.gpus, gpus, ids) if choice.gpus else None
    given = machine.environment.visible_gpus
    if isinstance(given, Known):
        numbers = None if wanted is None else tuple(gpu.number for gpu in wanted)
        kept = _with_given(numbers, given.value, gpus, ids)
        if kept is not None:
            return kept + _free_jax(environ)
    actions = [
        Action("set", ORDER, PCI_ORDER, "GPUs are numbered as nvidia-smi numbers them"),
    ]
    if wanted is not None:
        replaced = _replacing(environ, VISIBLE, "")
        value = _visible_value(wanted)
        names = _and_list([f"{gpus[gpu.number].name} (gpu:{gpu.number})" for gpu in wanted])
        actions.append(Action("set", VISIBLE, value, f"--device: {names} and no other{replaced}"))
    return actions + _free_jax(environ)


def _require_words_for_gpus(words: Sequence[str]) -> None:
    """Without a GPU to compare with, refuse a word that could not name a GPU on any machine."""
    from whygpu.launch.policy_options import names_no_gpu

    for word in words:
        if not (word.isdecimal() or _UUID.fullmatch(word) or _may_be_a_name(word)):
            raise names_no_gpu(word)


def _may_be_a_name(word: str) -> bool:
    from whygpu.tables.gpus import MODELS
    from whygpu.tables.gpus import find as find_model

    if len(word) < _SHORTEST_NAME:
        return False
    is_part = any(word.lower() in f"nvidia {model.name}".lower() for model in MODELS)
    return (len(word) > _SHORTEST_NAME and is_part) or bool(find_model(word))


def _and_list(words: list[str]) -> str:
    # Imported late: a program for the CPU needs no description of the machine.
    from whygpu.model.derived import and_list

    return and_list(words)


def _visible_value(chosen: Sequence[Chosen]) -> str:
    """UUIDs if all are known: they mean the same GPU in any order."""
    if all(gpu.uuid for gpu in chosen):
        return ",".join(gpu.uuid for gpu in chosen)
    return ",".join(str(gpu.number) for gpu in chosen)


def _with_given(
    wanted: tuple[int, ...] | None,
    given: GpuSelection,
    gpus: Sequence[Gpu],
    ids: Sequence[GpuIds],
) -> list[Action] | None:
    """What to do about a CUDA_VISIBLE_DEVICES that is set already; None: replace it.

    A scheduler may share the machine with it, so no GPU outside of it is ever used.
    """
    visible = given.visible
    if not isinstance(visible, Known):
        if wanted is not None:
            return None
        reason = visible.reason if isinstance(visible, Unknown) else visible.source
        return [_kept(given, f"which GPUs it means is not known: {reason}")]
    if not visible.value:
        ignored = "; ".join(f"{entry.text!r}: {entry.reason}" for entry in given.ignored)
        why = f" ({ignored})" if ignored else ""
        hidden = f"{VISIBLE}={given.text!r} hides every GPU{why}"
        raise PolicyError(
            f"{hidden}; this machine has\n{listing(gpus, ids)}\n"
            f"run `unset {VISIBLE}` first to use them",
            summary=hidden,
        )
    shown = _and_list([f"gpu:{number}" for number in visible.value])
    if wanted is None or wanted == visible.value:
        return [_kept(given, f"it shows {shown}")]
    outside = [number for number in wanted if number not in visible.value]
    if outside:
        raise PolicyError(
            f"gpu:{outside[0]} is not among the GPUs that {VISIBLE}={given.text!r} leaves to "
            f"this program ({shown}); this machine has\n{listing(gpus, ids)}"
        )
    return None


def _kept(given: GpuSelection, why: str) -> Action:
    return Action("keep", VISIBLE, given.text, f"it is set already, and kept: {why}")


def _free_jax(environ: Mapping[str, str]) -> list[Action]:
    """JAX_PLATFORMS=cpu is a preference that --device gpu overrides."""
    actions = []
    for name in ("JAX_PLATFORMS", "JAX_PLATFORM_NAME"):
        value = environ.get(name, "")
        platforms = {word.strip().lower() for word in value.split(",") if word.strip()}
        if platforms and platforms.isdisjoint(("cuda", "gpu", "rocm", "tpu", "metal")):
            reason = f"--device gpu: {name}={value} would keep JAX on the CPU"
            actions.append(Action("unset", name, "", reason))
    return actions
