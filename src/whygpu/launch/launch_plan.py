"""Makes a launch plan from a policy, a machine and a command, before anything runs."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from whygpu.errors import Option, PolicyError
from whygpu.launch import command, devices
from whygpu.launch.effects import Limit, effects
from whygpu.launch.environment import LIBRARY_PATH, changed, folders
from whygpu.launch.gpu_memory import VisibleGpus, visible_gpus
from whygpu.model.observed import Known
from whygpu.model.policy import (
    Action,
    Call,
    DeviceKind,
    DevicePolicy,
    Expectation,
    LaunchPlan,
    Repair,
)
from whygpu.model.wire import CallSetting, ReadingSetting, RunSettings

if TYPE_CHECKING:
    from whygpu.collectors.driver_answer import GpuIds
    from whygpu.launch.repairs import Examine
    from whygpu.model.lack import Lack
    from whygpu.model.report import Report
    from whygpu.model.snapshot import Snapshot

BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap")
SETTINGS_VARIABLE = "WHYGPU_BOOTSTRAP_SETTINGS"

_CPU_REPAIRS = ("keras-backend-missing", "listed-instruction-traps")
"""Causes that matter even to a program that stays on the CPU."""


class Look(NamedTuple):
    """What was seen of the machine, as the program would see it."""

    report: Report
    ids: tuple[GpuIds, ...]
    examine: Examine
    """Examines the machine again, with another environment."""


def needs_look(
    policy: DevicePolicy,
    environ: Mapping[str, str],
    named: Collection[str],
    *,
    repair: bool,
    traps: Callable[[], bool] = lambda: False,
) -> bool:
    """Whether the plan depends on the machine. A program for the CPU rarely does.

    `named` are the frameworks that the program's file imports by name. `traps` says whether an
    instruction that the processor lists fails here.
    """
    if not _asks_for(policy, "cpu") or policy.require_gpu:
        return repair or policy.require_gpu or policy.device is not None or _sized(policy)
    return repair and ("KERAS_BACKEND" in environ or "keras" in named or traps())


def proves(policy: DevicePolicy) -> bool:
    """Whether the policy needs a GPU that works, and not only one that is there."""
    return _asks_for(policy, "auto") or policy.require_gpu


def _asks_for(policy: DevicePolicy, kind: DeviceKind) -> bool:
    return policy.device is not None and policy.device.kind == kind


def _sized(policy: DevicePolicy) -> bool:
    return policy.memory is not None and policy.memory.kind != "growth"


def isolation(policy: DevicePolicy, environ: Mapping[str, str]) -> list[Action]:
    """--isolate: only packages of the environment, only libraries of the machine."""
    if not policy.isolate:
        return []
    actions = [Action("set", "PYTHONNOUSERSITE", "1", "--isolate: no packages of the user site")]
    for entry in folders(environ, LIBRARY_PATH):
        if not _has_driver(entry):
            reason = "--isolate: only libraries that the loader finds by itself"
            actions.append(Action("remove", LIBRARY_PATH, entry, reason))
    return actions


def _has_driver(folder: str) -> bool:
    """In a container the driver may be reachable through LD_LIBRARY_PATH alone."""
    names = ("libcuda.so.1", "libnvidia-ml.so.1")
    stub = os.path.basename(os.path.normpath(folder)) == "stubs"
    return not stub and any(os.path.exists(os.path.join(folder, name)) for name in names)


def make_plan(
    argv: Sequence[str],
    policy: DevicePolicy,
    environ: Mapping[str, str],
    look: Callable[[Mapping[str, str]], Look] | None,
    *,
    repair: bool = True,
    trace: bool = False,
    profile: bool = False,
) -> LaunchPlan:
    """`look` examines the machine with a given environment; None: the machine is not examined.

    Raises PolicyError if the machine cannot meet the policy.
    """
    if policy.require_gpu and _asks_for(policy, "cpu"):
        raise PolicyError(
            Option("device", "cpu"),
            " and ",
            Option("require_gpu", True),
            " ask for opposite things; take one",
        )
    actions = isolation(policy, environ)
    repairs: tuple[Repair, ...] = ()
    seen = look(changed(environ, actions)) if look is not None else None
    choice, lack = _choose_device(policy, seen, environ)
    actions += choice
    stays_on_cpu = _asks_for(policy, "cpu") or lack is not None
    if seen is not None:
        if any(action.kind != "keep" for action in actions):
            # The choice of a device may have repaired something, or hidden it.
            seen = seen._replace(report=seen.examine(changed(environ, actions)))
        now = changed(environ, actions)
        if repair:
            from whygpu.launch.repairs import repairs_for

            causes = _CPU_REPAIRS if stays_on_cpu else None
            repairs = repairs_for(seen.report, now, seen.examine, causes)
        if proves(policy) and not stays_on_cpu:
            lack = _judge(argv, policy, seen, now, repairs)
    machine = seen.report.snapshot if seen is not None else None
    wanted = list(effects(policy, _visible(policy, seen, environ), environ))
    limits = (effect for effect in wanted if isinstance(effect, Limit))
    notes = [
        limit.text
        for limit in limits
        if not (stays_on_cpu and limit.on_gpu_only) and _concerned_by(limit, machine)
    ]
    actions += [effect for effect in wanted if isinstance(effect, Action)]
    way_in, unreached = _way_in(argv, environ)
    return LaunchPlan(
        argv=tuple(argv),
        policy=policy,
        actions=(*actions, *way_in),
        calls=tuple(effect for effect in wanted if isinstance(effect, Call)),
        expectations=tuple(effect for effect in wanted if isinstance(effect, Expectation)),
        repairs=repairs,
        notes=(*notes, *unreached),
        lack=lack,
        trace=trace,
        profile=profile,
        gpu_seen=machine is not None and _has_gpu(machine),
    )


def _choose_device(
    policy: DevicePolicy, seen: Look | None, environ: Mapping[str, str]
) -> tuple[list[Action], Lack | None]:
    """What selects the device, and why `--device auto` means the CPU here."""
    if _asks_for(policy, "cpu"):
        return devices.hide_gpus(environ), None
    if policy.device is None or seen is None:
        return [], None
    lack = _lack_for_auto(policy, seen)
    if lack is not None:
        return devices.hide_gpus(environ), lack
    return devices.show_gpus(policy.device, seen.report.snapshot, seen.ids, environ), None


def _has_gpu(machine: Snapshot) -> bool:
    from whygpu.model.derived import nvidia_gpu

    return isinstance(nvidia_gpu(machine), Known)


def _way_in(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[list[Action], list[str]]:
    """The actions that load the bootstrap into the program, or notes on why it is not loaded."""
    option = command.ignores_python_variables(argv, environ)
    notes = []
    if option is not None:
        notes.append(
            f"python {option} keeps whygpu's part out of the program: variables take effect, but "
            "no calls to frameworks are made and no devices are reported"
        )
    if option == "-S":
        return [], notes
    reason = "whygpu's part in every Python process"
    return [Action("prepend", "PYTHONPATH", BOOTSTRAP, reason)], notes


def _lack_for_auto(policy: DevicePolicy, seen: Look) -> Lack | None:
    """Why `--device auto` means the CPU on this machine; None where it does not."""
    if not _asks_for(policy, "auto") or policy.require_gpu:
        return None
    from whygpu.launch.ability import machine_lacks

    return machine_lacks(seen.report)


def _judge(
    argv: Sequence[str],
    policy: DevicePolicy,
    seen: Look,
    environ: Mapping[str, str],
    repairs: Sequence[Repair],
) -> Lack | None:
    """Refuse a run that cannot meet --require gpu; return why --device auto will mean the CPU."""
    from whygpu.launch.ability import frameworks_lack, machine_lacks

    repaired = changed(environ, (action for repair in repairs for action in repair.actions))
    report = seen.examine(repaired) if repairs else seen.report
    lack = frameworks_lack(report, command.frameworks_named(argv, environ))
    if policy.require_gpu:
        lack = machine_lacks(report) or lack
        if lack is not None:
            raise PolicyError(lack, summary=lack.one_line, option="require_gpu", value=True)
        return None
    return lack if _asks_for(policy, "auto") else None


def _concerned_by(limit: Limit, machine: Snapshot | None) -> bool:
    """Whether a framework that has this limit is installed, or may be."""
    if machine is None or not isinstance(machine.target.frameworks, Known):
        return True
    return any(item.name in limit.frameworks for item in machine.target.frameworks.value)


def _visible(policy: DevicePolicy, seen: Look | None, environ: Mapping[str, str]) -> VisibleGpus:
    if seen is None:
        return VisibleGpus()
    return visible_gpus(policy, seen.report.snapshot, seen.ids, environ)


def settings_of(plan: LaunchPlan) -> RunSettings:
    """The settings that every process of the run gets."""
    return RunSettings(
        calls=tuple(CallSetting(call.framework, call.name, call.arguments) for call in plan.calls),
        readings=tuple(
            ReadingSetting(each.framework, each.reading)
            for each in plan.expectations
            if each.reading
        ),
        trace=plan.trace,
        profile=plan.profile,
        profile_from=plan.profile_from,
        tf1=plan.policy.tf1,
    )
