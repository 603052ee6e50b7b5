"""A device policy for the current process: whygpu.apply(), device() and require_gpu()."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from whygpu.errors import PolicyError, UsageError
from whygpu.launch.environment import changed
from whygpu.launch.execution import prepare
from whygpu.launch.launch_plan import BOOTSTRAP, settings_of
from whygpu.launch.policy_options import parse_device, parse_policy
from whygpu.model.codec import encode
from whygpu.model.derived import and_list, display_name
from whygpu.model.policy import DevicePolicy, LaunchPlan
from whygpu.model.wire import CallSetting

_ONLY_AT_START = ("PYTHONPATH", "LD_LIBRARY_PATH", "PYTHONHASHSEED", "PYTHONNOUSERSITE")
"""Variables that are read only when a process starts."""

_JAX_CONFIGURATION = {
    "JAX_PLATFORMS": "jax_platforms",
    "JAX_DEFAULT_MATMUL_PRECISION": "jax_default_matmul_precision",
}


def apply(policy: str | DevicePolicy) -> LaunchPlan:
    """Put a policy into effect in this process: whygpu.apply("gpu:1 memory=4GiB cudnn=off").

    Call it before or after the import of a framework, but before the framework starts its devices.
    Raises PolicyError if it is too late, or if the machine cannot meet the policy.
    """
    wanted = parse_policy(policy) if isinstance(policy, str) else policy
    if not isinstance(wanted, DevicePolicy):
        raise UsageError(
            f'expected a policy such as "gpu:1 memory=4GiB", received {type(policy).__name__}',
            option="policy",
        )
    if wanted.isolate or wanted.tf1:
        word = "isolate" if wanted.isolate else "tf1"
        raise UsageError(f"{word} has to come before Python starts: whygpu run --{word} -- ...")
    _refuse_if_late(wanted)
    plan = prepare([sys.executable], wanted, os.environ, repair=False).plan
    after = changed(os.environ, plan.actions)
    for name in _ONLY_AT_START:
        _keep(after, name)
    settings = settings_of(plan)
    settings = settings._replace(calls=(*settings.calls, *_late_calls(after)))
    os.environ.update(after)
    for name in set(os.environ) - after.keys():
        del os.environ[name]
    bootstrap("frameworks").install(encode(settings))
    return plan


def _keep(environ: dict[str, str], name: str) -> None:
    if name in os.environ:
        environ[name] = os.environ[name]
    else:
        environ.pop(name, None)


def _late_calls(after: Mapping[str, str]) -> list[CallSetting]:
    """JAX reads these variables when it is imported, which may have been before us."""
    return [
        CallSetting("jax", "update_config", {"name": name, "value": after.get(variable)})
        for variable, name in _JAX_CONFIGURATION.items()
        if os.environ.get(variable) != after.get(variable)
    ]


def bootstrap(part: str) -> Any:
    """A module of the bootstrap, under the same name as in a program under `whygpu run`."""
    sys.path.insert(0, BOOTSTRAP)
    try:
        return import_module(f"whygpu_bootstrap.{part}")
    finally:
        sys.path.remove(BOOTSTRAP)


def _refuse_if_late(policy: DevicePolicy) -> None:
    if policy.device is None and policy.memory is None:
        return
    late = [name for name in _imported() if _started(name)]
    if late:
        raise PolicyError(
            f"{and_list([display_name(name) for name in late])} has started its devices already; "
            "call whygpu.apply() before the first operation"
        )


def _imported() -> list[str]:
    return [name for name in ("tensorflow", "torch", "jax") if name in sys.modules]


def _started(name: str) -> bool:
    module = sys.modules[name]
    if name == "torch":
        return bool(module.cuda.is_initialized())
    return bool(bootstrap(f"devices.{name}").started())


def require_gpu() -> None:
    """Raise PolicyError, with the reason, unless a framework of this process has a GPU.

    If a framework is imported, it is asked, which starts CUDA; else the machine is examined.

    Example:
        import torch
        whygpu.require_gpu()
    """
    frameworks = _imported()
    if any(_gpus_of(name) for name in frameworks):
        return
    try:
        prepare([sys.executable], DevicePolicy(require_gpu=True), os.environ, repair=False)
    except PolicyError as error:
        # The caller has given no argument that the message could be about.
        raise PolicyError(*error.args) from None
    if frameworks:
        names = and_list([display_name(name) for name in frameworks])
        raise PolicyError(f"{names} has no GPU in this process; `whygpu check` says why")


def _gpus_of(name: str) -> list[Any]:
    """The framework's own list of its GPUs."""
    module: Any = sys.modules[name]
    if name == "torch":
        return list(range(module.cuda.device_count())) if module.cuda.is_available() else []
    if name == "tensorflow":
        return list(module.config.list_physical_devices("GPU"))
    return [device for device in module.devices() if device.platform != "cpu"]


def gpus_in_use() -> bool:
    """Whether a framework of this process has started a GPU. Starts nothing."""
    return any(_started(name) and bool(_gpus_of(name)) for name in _imported())


@contextmanager
def device(name: str) -> Iterator[None]:
    """Work inside the block runs on this device: with whygpu.device("cpu"), ("gpu") or ("gpu:1").

    For every framework that is imported. The number is that of the framework, from 0.
    """
    choice = parse_device(name)
    if choice.kind == "auto" or len(choice.gpus) > 1 or not all(map(str.isdecimal, choice.gpus)):
        raise UsageError("expected one device, cpu, gpu or gpu:1", option="name", value=name)
    index = None if choice.kind == "cpu" else int(choice.gpus[0]) if choice.gpus else 0
    frameworks = _imported()
    if not frameworks:
        raise UsageError("no framework is imported yet: import it before whygpu.device()")
    if index is not None:
        able = [framework for framework in frameworks if len(_gpus_of(framework)) > index]
        if not able:
            names = and_list([display_name(framework) for framework in frameworks])
            raise PolicyError(f"there is no gpu:{index} in this process for {names}")
        frameworks = able
    with ExitStack() as scopes:
        for framework in frameworks:
            scopes.enter_context(_SCOPES[framework](sys.modules[framework], index))
        keras = sys.modules.get("keras")
        if keras is not None and hasattr(keras, "device") and keras.backend.backend() in frameworks:
            scopes.enter_context(keras.device("cpu" if index is None else f"gpu:{index}"))
        yield


def _tensorflow_scope(tensorflow: ModuleType, index: int | None) -> Any:
    return tensorflow.device("/CPU:0" if index is None else f"/GPU:{index}")


def _torch_scope(torch: ModuleType, index: int | None) -> Any:
    return torch.device("cpu" if index is None else f"cuda:{index}")


def _jax_scope(jax: ModuleType, index: int | None) -> Any:
    chosen = jax.devices("cpu")[0] if index is None else _gpus_of("jax")[index]
    return jax.default_device(chosen)


_SCOPES = {"tensorflow": _tensorflow_scope, "torch": _torch_scope, "jax": _jax_scope}
