"""What is done for each framework: the policy after its import, devices and memory at the end."""

import sys

from whygpu_bootstrap import import_hook, process_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

WATCHED = {
    "tensorflow": "tensorflow",
    "torch": "torch",
    "jax": "jax",
    "keras": "keras",
    "tf_keras": "keras",
}


def install(settings: "dict[str, Any]") -> None:
    """Prepare for every framework that the program may import."""
    if settings["tf1"]:
        with process_record.noted("--tf1"):
            part("tf1.imports").install()
    for name in sorted({call["framework"] for call in settings["calls"]} - set(WATCHED.values())):
        import_hook.after_import(name, _caller(name, settings))
    for name, framework in WATCHED.items():
        import_hook.after_import(name, _starter(framework, settings))


def _caller(framework: str, settings: "dict[str, Any]") -> "Callable[[Any], None]":
    """Puts the policy into effect in a module that has just been imported."""

    def call(module: "Any") -> None:
        with process_record.noted("the policy for %s" % framework):
            if any(call["framework"] == framework for call in settings["calls"]):
                part("policy.calls").make(framework, module, settings["calls"])
            if any(each["framework"] == framework for each in settings["readings"]):
                part("policy.readings").start(framework, module, settings["readings"])

    return call


def _starter(framework: str, settings: "dict[str, Any]") -> "Callable[[Any], None]":
    def start(module: "Any") -> None:
        process_record.seen(framework, str(getattr(module, "__version__", "")))
        _caller(framework, settings)(module)
        devices = part("devices." + framework)
        if devices is not None:
            process_record.ask_at_end(framework, devices, module)
            with process_record.noted("waiting for the devices of %s" % framework):
                devices.watch_start(module)
        memory = part("memory." + framework) if process_record.is_open() else None
        if memory is not None:
            with process_record.noted("watching the memory of %s" % framework):
                part("memory.watch").start(framework, memory, module)
        profiler = part("profile." + framework) if settings.get("profile") else None
        if profiler is not None:
            with process_record.noted("profiling %s" % framework):
                part("profile.recorder").record_from(settings.get("profile_from", 0))
                profiler.start(module)
        tracer = part("trace." + framework) if settings["trace"] else None
        if tracer is not None:
            with process_record.noted("tracing %s" % framework):
                tracer.start(module, settings)
                process_record.trace_at_end(framework, tracer)

    return start


def part(name: str) -> "Any":
    """A module of this package; None if there is none for the framework."""
    whole = "whygpu_bootstrap." + name
    writes_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        __import__(whole)
        return sys.modules[whole]
    except ImportError as error:
        if error.name != whole:
            raise
        return None
    finally:
        sys.dont_write_bytecode = writes_bytecode
