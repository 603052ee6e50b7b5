"""Runs a step with one batch size a few times, and reports its memory and time after each.

However the process ends, what was sent until then is known: how far it came, and what it held. With
`orders` in the request, the process tries one batch after the other, also after one that failed.
"""

import ctypes
import gc
import importlib
import os
import signal
import sys
import time
import traceback

from .. import gauges, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ..main import Channel

FEWEST = 3
"""Steps. The first one compiles and makes lasting allocations; the later ones count."""
SOME = 6
MOST = 12
"""If memory rises: enough steps to tell a leak from a slow start."""
RISE = 1 << 18
"""Bytes of growth per step that are worth another step."""
LONGEST_LOOK = 0.5
"""Fraction of the time limit for additional steps."""


SCRAPS = 1 << 25
"""Bytes that PyTorch may keep in its cache between trials."""
NEARLY_ALL = 0.98
"""Part of the free memory that has to be in one piece."""


BEFORE_UPDATES: "list[int]" = []
"""PyTorch's peak on the GPU at the beginning of each update of the weights in this step, in
bytes."""
WATCHED: "list[str]" = []
"""The frameworks whose updates are watched: once for all trials of this process."""
EARLIER_PEAK = [0]
"""JAX's peak on the GPU before this trial, in bytes: JAX cannot reset it."""
LARGE_PROGRAM = 1 << 20
"""Bytes of arguments, results and scratch memory. A smaller program of JAX changes no answer."""
LOADING_PROGRAMS: "list[Any]" = []
"""What JAX has compiled before the first step of this trial: mostly to make the weights."""


def run(request: "dict[str, Any]", channel: "Channel") -> None:
    if request["orders"] is None:
        try_batch(request, channel)
        return
    preload(request)
    # While it waits, the end of whygpu itself ends it: the pipe is then closed.
    signal.alarm(0)
    with os.fdopen(request["orders"]) as orders:
        for number, line in enumerate(orders):
            signal.alarm(int(request["seconds"]) + 30)
            try:
                try_batch(dict(request, batch=int(line)), channel)
            except Exception as error:
                channel.send_exception(error)
                drop_frames(error)
            release()
            if number == 0:
                keep_imported()
            left = reading()
            if left["device"] is not None:
                left["device"]["in_one_piece"] = in_one_piece()
            channel.send("released", **left)
            channel.send("tried")
            signal.alarm(0)


def preload(request: "dict[str, Any]") -> None:
    """Import frameworks as the program would: with its folders on the search path."""
    steps.add_search_path(request)
    for name in request["preload"]:
        importlib.import_module(name)


def drop_frames(error: "BaseException") -> None:
    """The local variables of the functions that failed hold the arrays of the step."""
    link: "BaseException | None" = error
    seen = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        traceback.clear_frames(link.__traceback__)
        link = link.__cause__ or link.__context__


def release() -> None:
    """Free what the trial held, so that the next one finds the memory of a new process."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        # They would otherwise lie elsewhere than in a new process, where the step makes them.
        forget_workspaces = getattr(
            getattr(torch, "_C", None), "_cuda_clearCublasWorkspaces", lambda: None
        )
        forget_workspaces()
        torch.cuda.empty_cache()
    forget_step_programs()


def forget_step_programs() -> None:
    """Let JAX forget the compiled programs of this trial's steps, if some have outlived it: they
    keep constants, and would count as what the next batch needs.

    JAX can only forget all of its programs at once. Those that make the weights of a Keras model
    then have to be compiled again, which takes longer than the trial itself.
    """
    jax: "Any" = sys.modules.get("jax")
    before, LOADING_PROGRAMS[:] = list(LOADING_PROGRAMS), []
    if not hasattr(jax, "clear_caches"):
        return
    try:
        left = [each for each in jax_programs() if not any(each is known for known in before)]
        outlived = any(program_size(each) >= LARGE_PROGRAM for each in left)
    except (AttributeError, RuntimeError, NotImplementedError):
        outlived = True
    if outlived:
        jax.clear_caches()
        gc.collect()


def jax_programs() -> "list[Any]":
    """The compiled programs that JAX holds; AttributeError if this release does not say."""
    if not jax_has_started():
        return []
    return list(sys.modules["jax"].local_devices()[0].client.live_executables())


def program_size(program: "Any") -> int:
    stats = program.get_compiled_memory_stats()
    sizes = stats.argument_size_in_bytes, stats.output_size_in_bytes, stats.temp_size_in_bytes
    return sum(sizes)


def keep_imported() -> None:
    """Exempt what exists now, mostly imported modules, from later searches for garbage: with a
    framework, each of them takes some tenths of a second."""
    if hasattr(gc, "freeze"):
        gc.freeze()


def in_one_piece() -> "bool | None":
    """Whether the next trial could get all free memory of the GPU at once, as in a new process.

    A few bytes that stay in the middle of it halve what one request can get. None if unknown.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.memory_reserved() - torch.cuda.memory_allocated() <= SCRAPS
    stats = jax_stats()
    if stats is not None:
        limit, pool = stats.get("bytes_limit"), stats.get("pool_bytes")
        largest = stats.get("largest_free_block_bytes")
        if not limit or largest is None:
            return None
        largest = max(largest, limit - pool if pool is not None else 0)
        return largest >= NEARLY_ALL * (limit - stats["bytes_in_use"])
    return tensorflow_in_one_piece()


def tensorflow_in_one_piece() -> "bool | None":
    """TensorFlow does not say: one request shows it. This needs a limit that is known."""
    tensorflow: "Any" = sys.modules.get("tensorflow")
    names = gauges.tensorflow_gpus(tensorflow)
    limit = tensorflow_limit() if names else None
    if limit is None or not tensorflow.executing_eagerly():
        return None
    free = limit - tensorflow.config.experimental.get_memory_info(names[0])["current"]
    try:
        with tensorflow.device(names[0]):
            tensorflow.fill([int(NEARLY_ALL * free) // 4], 0.0)
            tensorflow.test.experimental.sync_devices()
    except tensorflow.errors.ResourceExhaustedError:
        return False
    return True


def tensorflow_limit() -> "int | None":
    """The limit of the first GPU in bytes, if the program or whygpu has set one."""
    config: "Any" = sys.modules["tensorflow"].config
    if not hasattr(config, "get_logical_device_configuration"):
        return None
    gpus = config.list_physical_devices("GPU")
    devices = (config.get_logical_device_configuration(gpus[0]) if gpus else None) or []
    limit = devices[0].memory_limit if devices else None
    return None if limit is None else int(limit) << 20


def try_batch(request: "dict[str, Any]", channel: "Channel") -> None:
    began = time.time()
    gauges.reset_peak()
    EARLIER_PEAK[0] = jax_peak()
    del BEFORE_UPDATES[:]
    channel.tell("loading")
    channel.send("start", **reading())
    value = steps.named(request)
    before, start = reading(), time.time()
    channel.send("named", **before)
    tell_program(channel)
    step = steps.of(value, request)
    note_loading_programs()
    if not step.done:
        before = reading()
    channel.send("loaded", one_program=step.one_program, **before)
    tell_program(channel)
    held = []
    if step.done:
        held.append(after_step(channel, 1, time.time() - start))
    watch_updates()
    gauges.reset_peak()
    while wants_more(held, time.time() - began, request["seconds"]):
        number = len(held) + 1
        channel.tell("step %d" % number)
        start = time.time()
        try:
            steps.settle(step.run())
        except Exception:
            tell_what_is_held(channel)
            raise
        seconds = time.time() - start
        if number > FEWEST:
            # From here on, only memory that is kept counts, so garbage is collected.
            gc.collect()
        held.append(after_step(channel, number, seconds))
    tell_program(channel)


def note_loading_programs() -> None:
    try:
        LOADING_PROGRAMS[:] = jax_programs()
    except (AttributeError, RuntimeError, NotImplementedError):
        del LOADING_PROGRAMS[:]


def tell_program(channel: "Channel") -> None:
    """What has been imported so far; a step may import more."""
    channel.send("program", frameworks=versions(), sources=sources())


def wants_more(held: "Sequence[tuple[int, int]]", seconds: float, limit: float) -> bool:
    """Whether to run another step: the fewest always, and more if memory may be rising."""
    done = len(held)
    if done < FEWEST:
        return True
    if done >= MOST or seconds > LONGEST_LOOK * limit:
        return False
    for series in zip(*held):
        rises = sorted(series[i + 1] - series[i] for i in range(done - 1))
        if (rises[-1] if done < SOME else rises[len(rises) // 2]) > RISE:
            return True
    return False


def watch_updates() -> None:
    """PyTorch's peak is that of the forward and backward pass, or that of the optimizer's update,
    which does not grow with the batch: the former is recorded when the update begins."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or WATCHED:
        return
    WATCHED.append("torch")

    def note(*ignored: "Any") -> None:
        if torch.cuda.is_initialized():
            BEFORE_UPDATES.append(torch.cuda.max_memory_allocated())

    optimizer: "Any" = sys.modules.get("torch.optim.optimizer")
    if hasattr(optimizer, "register_optimizer_step_pre_hook"):
        optimizer.register_optimizer_step_pre_hook(note)
    optimizers: "Any" = getattr(sys.modules.get("keras"), "optimizers", None)
    if hasattr(getattr(optimizers, "Optimizer", None), "apply"):
        apply = optimizers.Optimizer.apply

        def noted(self: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            note()
            return apply(self, *args, **kwargs)

        optimizers.Optimizer.apply = noted


def after_step(channel: "Channel", number: int, seconds: float) -> "tuple[int, int]":
    """Report what this step took, and reset the peaks for the next."""
    now = reading()
    channel.send("step", number=number, step_seconds=seconds, **now)
    gauges.reset_peak()
    del BEFORE_UPDATES[:]
    host, device = now["host"] or {}, now["device"] or {}
    return host.get("in_use") or host.get("now", 0), device.get("now", 0)


def tell_what_is_held(channel: "Channel") -> None:
    """Report what was held when a step failed: the refused allocation comes on top of that."""
    try:
        channel.send("broken", **reading())
    except Exception:
        # The device does not answer any more. The error of the step matters more.
        pass


def reading() -> "dict[str, Any]":
    """A HostReading and a DeviceReading of whygpu.model.task_wire; None for what is unknown."""
    host = gauges.host_memory()
    if host is not None:
        host = {
            "now": host["now"],
            "peak": host["peak"],
            "address_space": status_bytes("VmPeak"),
            "anonymous": status_bytes("RssAnon"),
            "in_use": malloc_in_use(),
        }
    device = gauges.device_memory()
    if device is not None:
        device = {
            "now": device["now"],
            "peak": peak_of(device),
            "name": device_name(),
            "limit": device_limit(),
            "need": compiled_need(),
            "gradients": max(BEFORE_UPDATES, default=None),
            "in_one_piece": None,
        }
    return {"host": host, "device": device}


def peak_of(device: "dict[str, int]") -> int:
    """A peak of JAX that has not risen since this trial began is that of an earlier one."""
    earlier = EARLIER_PEAK[0]
    return device["now"] if earlier and jax_peak() <= earlier else device["peak"]


def malloc_in_use() -> "int | None":
    """Bytes that were allocated and not freed; None if the C library does not tell.

    Resident memory rises for dozens of steps even in a program that keeps nothing, because freed
    memory is fragmented. Before glibc 2.33 the counters have 32 bits and wrap around.
    """
    try:
        library = ctypes.CDLL(None)
        mallinfo = getattr(library, "mallinfo2", None) or library.mallinfo
    except (OSError, AttributeError):
        return None
    kind = ctypes.c_size_t if mallinfo.__name__ == "mallinfo2" else ctypes.c_uint
    fields = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    mallinfo.restype = type(
        "MallocInfo", (ctypes.Structure,), {"_fields_": [(n, kind) for n in fields.split()]}
    )
    found = mallinfo()
    return found.uordblks + found.hblkhd


def status_bytes(name: str) -> "int | None":
    """One of the kernel's figures for this process; None if it is not there."""
    try:
        with open("/proc/self/status") as stream:
            for line in stream:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def device_name() -> str:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.get_device_name()
    if jax_stats() is not None:
        return sys.modules["jax"].local_devices()[0].device_kind
    details = getattr(sys.modules["tensorflow"].config.experimental, "get_device_details", None)
    gpus = sys.modules["tensorflow"].config.list_physical_devices("GPU")
    facts = details(gpus[0]) if details is not None and gpus else {}
    return facts.get("device_name", "GPU")


def device_limit() -> "int | None":
    """The memory of the GPU that the framework may use; None if it does not say."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        free, total = torch.cuda.mem_get_info()
        part = getattr(torch.cuda, "get_per_process_memory_fraction", lambda: 1.0)()
        return int(min(free + torch.cuda.memory_reserved(), part * total))
    stats = jax_stats()
    if stats:
        return stats.get("bytes_limit")
    started = gauges.tensorflow_gpus(sys.modules.get("tensorflow"))
    return tensorflow_limit() if started else None


def compiled_need() -> "int | None":
    """What JAX needs for its largest compiled program, in addition to what it holds anyway.

    Its own peak includes buffers with which the compiler tried kernels while there was memory left;
    the step does not need them. None if it is unknown.
    """
    stats = jax_stats()
    if not stats:
        return None
    needs = []
    try:
        for program in jax_programs():
            compiled = program.get_compiled_memory_stats()
            beside = max(0, stats["bytes_in_use"] - compiled.argument_size_in_bytes)
            new = compiled.output_size_in_bytes - compiled.alias_size_in_bytes
            needs.append(
                beside + compiled.argument_size_in_bytes + max(0, new) + compiled.temp_size_in_bytes
            )
    except (AttributeError, RuntimeError, NotImplementedError):
        return None
    return max(needs) if needs else None


def jax_has_started() -> bool:
    """Whether JAX has opened its devices: asking for them would open them."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    started = bridge is None or getattr(bridge, "_backends", True)
    return sys.modules.get("jax") is not None and bool(started)


def jax_stats() -> "dict[str, int] | None":
    if not jax_has_started():
        return None
    device = sys.modules["jax"].local_devices()[0]
    return device.memory_stats() if device.platform != "cpu" else None


def jax_peak() -> int:
    stats = jax_stats()
    return stats.get("peak_bytes_in_use", 0) if stats else 0


def versions() -> "dict[str, str]":
    """The versions of the frameworks that were imported."""
    names = ("tensorflow", "keras", "jax", "torch")
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in names}
    return {name: version for name, version in found.items() if version}


def sources() -> "list[str]":
    """Files of modules that are not part of an installed package: the user's own."""
    library = os.path.dirname(os.path.abspath(os.__file__))
    ours = os.path.abspath(os.path.join(__file__, *[".."] * 5))
    installed = (library + os.sep, ours + os.sep)
    found = set()
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or not path.endswith(".py"):
            continue
        path = os.path.abspath(path)
        if path.startswith(installed) or "site-packages" in path or "dist-packages" in path:
            continue
        if os.path.isfile(path):
            found.add(path)
    return sorted(found)
