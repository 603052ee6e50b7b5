"""Where JAX's operations ran: what each compiled function consists of, times its executions.

Every compilation goes through one function of JAX, which shows the operations and the devices. The
first execution goes through Python. Later ones stay in C++ and are counted by a hook (jax_results).
"""

import sys

from whygpu_bootstrap import jax_results, process_record
from whygpu_bootstrap.trace import results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from whygpu_bootstrap.trace.results import Reasons, Tally

NOT_WORK = frozenset(("constant", "return", "iota", "optimization_barrier"))
BRANCHES = frozenset(("while", "if", "case"))
"""Operations whose regions are separate work; the region of a reduction is part of it."""
CALLBACK = "_callback"


class Program:
    """One compiled function: its operations, its devices, its executions."""

    def __init__(
        self, name: str, operations: "dict[str, int]", has_loop: bool, devices: "Any"
    ) -> None:
        self.name = name
        self.operations = operations
        self.has_loop = has_loop
        self.devices = devices
        self.runs = 0
        self.reason = None


class Tracer:
    """Counts compiled functions and their executions. One per process."""

    def __init__(self, jax: "Any") -> None:
        self._jax = jax
        self.hook_is_there: "Callable[[], bool]" = lambda: True
        self._installed = False
        self._programs: "dict[Any, Any]" = {}
        self._latest: "dict[Any, Any]" = {}
        self.clear()

    def clear(self) -> None:
        """Forget what was counted, not what was compiled: that can still run."""
        for program in self._programs.values():
            program.runs = 0
        self.finished: "list[Any]" = []
        self.unknown = 0

    def install(self) -> None:
        with process_record.noted("watching JAX compile"):
            compiler = _first_with("compile_or_get_cached", "compiler", "dispatch")
            compiler.compile_or_get_cached = self._watching_compile(compiler.compile_or_get_cached)
        with process_record.noted("watching JAX execute"):
            execute = _first_with("ExecuteReplicated", "interpreters.pxla").ExecuteReplicated
            execute.__call__ = self._watching_execute(execute.__call__)
        with process_record.noted("counting JAX's executions"):
            self.hook_is_there = jax_results.after_each(self._count)
            self._installed = True

    def _watching_compile(
        self, compile_or_get_cached: "Callable[..., Any]"
    ) -> "Callable[..., Any]":
        def watched(*arguments: "Any", **options: "Any") -> "Any":
            executable = compile_or_get_cached(*arguments, **options)
            with process_record.noted("reading a function that JAX compiled"):
                module = arguments[1] if len(arguments) > 1 else options["computation"]
                self._learn(module, executable)
            return executable

        watched.__name__ = compile_or_get_cached.__name__
        watched.__doc__ = compile_or_get_cached.__doc__
        return watched

    def _learn(self, module: "Any", executable: "Any") -> None:
        name = module.operation.attributes["sym_name"].value
        operations, has_loop = read_module(module)
        program = Program(name, operations, has_loop, _labels(executable.local_devices()))
        earlier = self._programs.get(id(executable))
        if earlier is not None:
            # The executable with this id is gone, but its runs still count.
            self.finished.append(earlier)
        self._programs[id(executable)] = program

    def _watching_execute(self, execute: "Callable[..., Any]") -> "Callable[..., Any]":
        def __call__(instance: "Any", *arguments: "Any") -> "Any":  # noqa: N807
            with process_record.noted("counting an execution of JAX"):
                program = self._programs.get(id(instance.xla_executable))
                if program is not None:
                    program.runs += 1
                    self._latest[_bare(instance.name)] = program
                    if program.reason is None and "cpu" in program.devices:
                        program.reason = self._why_cpu(arguments)
                else:
                    self.unknown += 1
            return execute(instance, *arguments)

        return __call__

    def _why_cpu(self, arguments: "Any") -> "tuple[str, str]":
        """Why a function ran on the CPU beside a GPU: its inputs, or the choice of the program."""
        default = getattr(self._jax.config, "jax_default_device", None)
        if getattr(default, "platform", default) == "cpu":
            return results.EXPLICIT, "jax_default_device is the CPU"
        if any(getattr(argument, "_committed", False) for argument in arguments):
            return results.CPU_INPUTS, "its inputs were put on the CPU"
        return results.EXPLICIT, "the function was given the CPU as its device or backend"

    def _count(self, function: "Any") -> None:
        try:
            program: "Any" = self._latest_of(function)
            program.runs += 1
        except Exception:
            self.unknown += 1

    def _latest_of(self, function: "Any") -> "Program | None":
        """The program that a call ran: the version of its function that ran last through Python."""
        name = getattr(function, "__name__", None)
        if name in self._latest:
            return self._latest[name]
        for cell in function._cache_miss.__closure__:
            executable = getattr(cell.cell_contents, "xla_executable", None)
            if executable is not None:
                return self._programs[id(executable)]
            named = getattr(cell.cell_contents, "__name__", None)
            if named in self._latest:
                return self._latest[named]
        raise LookupError(name)

    def saw_all(self) -> bool:
        """Whether no execution can have passed unseen."""
        return self._installed and self.hook_is_there() and not self.unknown

    def compiled(self) -> int:
        return len(self._programs)

    def programs(self) -> "list[Program]":
        return [
            program for program in self.finished + list(self._programs.values()) if program.runs
        ]


def read_module(module: "Any") -> "tuple[dict[str, int], bool]":
    """({operation: how many}, whether there is a loop) of a StableHLO module."""
    functions = {}
    for operation in module.body.operations:
        if operation.operation.name == "func.func":
            functions[operation.attributes["sym_name"].value] = operation
    counts: "dict[Any, Any]" = {}
    loops: "list[Any]" = []
    _count_function("main", functions, counts, loops, ())
    return counts, bool(loops)


def _count_function(
    name: str,
    functions: "dict[str, Any]",
    counts: "dict[str, int]",
    loops: "list[Any]",
    callers: "Any",
) -> None:
    if name in functions and name not in callers:
        for region in functions[name].regions:
            _count_region(region, functions, counts, loops, callers + (name,))


def _count_region(
    region: "Any",
    functions: "dict[str, Any]",
    counts: "dict[str, int]",
    loops: "list[Any]",
    callers: "Any",
) -> None:
    for block in region.blocks:
        for operation in block.operations:
            dialect, _, name = operation.operation.name.rpartition(".")
            if name == "call":
                callee = operation.attributes["callee"].value
                _count_function(callee, functions, counts, loops, callers)
            elif dialect in ("stablehlo", "chlo", "mhlo") and name not in NOT_WORK:
                if name == "while":
                    loops.append(name)
                if name == "custom_call":
                    name = str(operation.attributes["call_target_name"]).strip('"')
                counts[name] = counts.get(name, 0) + 1
                if name in BRANCHES:
                    for inner in operation.operation.regions:
                        _count_region(inner, functions, counts, loops, callers)


def _labels(devices: "Any") -> "list[str]":
    return sorted({"cpu" if d.platform == "cpu" else "gpu:%d" % _index(d) for d in devices})


def _index(device: "Any") -> int:
    index = getattr(device, "local_hardware_id", None)
    return device.id if index is None else index


def _bare(name: str) -> str:
    """A function's name in jit(name)."""
    return name[name.index("(") + 1 : -1] if name.endswith(")") and "(" in name else name


def _part(name: str) -> "Any":
    return sys.modules.get("jax._src." + name)


def _first_with(attribute: str, *names: str) -> "Any":
    for name in names:
        module = _part(name)
        if hasattr(module, attribute):
            return module
    raise LookupError("this JAX has no %s where whygpu looks" % attribute)


_tracers: "list[Any]" = []


def start(jax: "Any", settings: "dict[str, Any]") -> None:
    tracer = Tracer(jax)
    tracer.install()
    _tracers.append(tracer)


def after_fork() -> None:
    for tracer in _tracers:
        tracer.clear()


def result() -> "dict[str, Any]":
    tally, reasons = results.Tally(), results.Reasons()
    notes: "list[str]" = []
    for tracer in _tracers:
        programs = tracer.programs()
        has_gpu = _has_gpu()
        for program in programs:
            _count(program, has_gpu, tally, reasons)
        if programs and not has_gpu:
            reasons.add(results.EVERYTHING, results.NO_GPU, _why_no_gpu(tracer._jax))
        _say_how_counted(programs, tracer.unknown, notes)
        if not tracer.hook_is_there():
            notes.append("executions after jax_debug_nans was set were not counted")
    return results.outcome(tally, reasons, notes, nothing_because=_why_nothing())


def _why_nothing() -> str:
    """Empty if operations may have run unseen."""
    if not _tracers or not all(tracer.saw_all() for tracer in _tracers):
        return ""
    compiled = sum(tracer.compiled() for tracer in _tracers)
    if compiled:
        return "JAX compiled %d %s, and executed none" % (
            compiled,
            "function" if compiled == 1 else "functions",
        )
    return "JAX compiled and executed nothing"


def _count(program: "Program", has_gpu: bool, tally: "Tally", reasons: "Reasons") -> None:
    for op, count in program.operations.items():
        if op.endswith(CALLBACK):
            tally.add(op, "cpu", count * program.runs)
            reasons.add(op, results.HOST_CALLBACK, "a Python function that %s calls" % program.name)
            continue
        for device in program.devices:
            tally.add(op, device, count * program.runs)
        if has_gpu and program.reason is not None:
            reason, detail = program.reason
            reasons.add(op, reason, "in %s: %s" % (program.name, detail))


def _say_how_counted(programs: "list[Program]", unknown: "Any", notes: "list[str]") -> None:
    if programs:
        notes.append(
            "JAX's operations are those of each compiled function before XLA fuses them, times "
            "its executions; JAX does not wait for results, so there are no times"
        )
    if any(program.has_loop for program in programs):
        notes.append("operations in a loop (scan, while_loop) are counted once per execution")
    if unknown:
        notes.append("%d executions of JAX could not be examined" % unknown)


def _backends() -> "dict[str, Any]":
    return getattr(_part("xla_bridge"), "_backends", None) or {}


def _has_gpu() -> bool:
    return any(getattr(client, "platform", name) != "cpu" for name, client in _backends().items())


def _why_no_gpu(jax: "Any") -> str:
    chosen = getattr(jax.config, "jax_platforms", None)
    if chosen:
        return "a setting limits JAX to the platforms %s" % chosen
    errors = getattr(_part("xla_bridge"), "_backend_errors", None) or {}
    for platform, error in errors.items():
        lines = str(error).splitlines()
        if platform in ("cuda", "gpu") and lines:
            return "JAX could not start %s: %s" % (platform, lines[0])
    return "JAX has no GPU, so everything ran on the CPU"
