"""A device policy for TensorFlow, put into effect without starting its runtime.

Asking TensorFlow for its GPUs starts CUDA, and a program that sets CUDA_VISIBLE_DEVICES later
would be too late: so what needs the GPUs waits until TensorFlow starts them itself.
"""

import logging

from whygpu_bootstrap import import_hook, process_record
from whygpu_bootstrap.devices import tensorflow as tensorflow_devices
from whygpu_bootstrap.policy import xla_flags

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "quiet": logging.CRITICAL,
}
MIB = 1 << 20
FIRST_DETERMINISTIC = (2, 6)
"""The first release whose XLA can be told to use repeatable kernels only."""


def apply(tensorflow, settings):
    policy = settings["policy"]
    tensorflow_devices.watch_sessions()
    if policy["log_level"] is not None:
        logging.getLogger("tensorflow").setLevel(LEVELS[policy["log_level"]])
    if policy["deterministic"]:
        seed = getattr(tensorflow.random, "set_seed", None) or tensorflow.set_random_seed
        seed(policy["seed"])
        xla_flags.add_deterministic("tensorflow", tensorflow.__version__, FIRST_DETERMINISTIC)
        process_record.applied("tensorflow", "the seed %d" % policy["seed"])
    if policy["tf32_off"]:
        experimental = tensorflow.config.experimental
        switch = getattr(experimental, "enable_tensor_float_32_execution", None)
        if switch is not None:
            switch(False)
            process_record.applied("tensorflow", "enable_tensor_float_32_execution(False)")
    memory = policy["memory"]
    if memory is not None and memory["kind"] != "growth":
        limit_memory(tensorflow, memory, policy["gpu_memory_bytes"])


def limit_memory(tensorflow, memory, sizes):
    import_hook.after_import(
        "tensorflow.python.eager.context",
        lambda module: _limit_eager(tensorflow, module, memory, sizes),
    )
    import_hook.after_import(
        "tensorflow.python.client.session", lambda module: _limit_sessions(module, memory, sizes)
    )


def _limit_eager(tensorflow, module, memory, sizes):
    initialize = module.Context.ensure_initialized

    def ensure_initialized(self):
        if not self._initialized:
            with process_record.noted("the memory limit for TensorFlow"):
                _configure(tensorflow, memory, sizes)
        return initialize(self)

    ensure_initialized.__doc__ = initialize.__doc__
    module.Context.ensure_initialized = ensure_initialized


def _configure(tensorflow, memory, sizes):
    """Each GPU as one logical device of a limited size, unless the program has made its own."""
    limit = _bytes(memory, sizes)
    if limit is None:
        process_record.note("TensorFlow's memory is not limited: the size of the GPU is not known")
        return
    config = tensorflow.config
    experimental = config.experimental
    get = getattr(config, "get_logical_device_configuration", None)
    set_ = getattr(config, "set_logical_device_configuration", None)
    Configuration = getattr(config, "LogicalDeviceConfiguration", None)  # noqa: N806
    if set_ is None:
        get = experimental.get_virtual_device_configuration
        set_ = experimental.set_virtual_device_configuration
        Configuration = experimental.VirtualDeviceConfiguration  # noqa: N806
    for gpu in experimental.get_visible_devices("GPU"):
        if get(gpu) is not None:
            process_record.note("the program divides %s itself: its own limits stay" % gpu.name)
            continue
        set_(gpu, [Configuration(memory_limit=limit // MIB)])
        process_record.applied("tensorflow", "memory_limit=%d MiB on %s" % (limit // MIB, gpu.name))


def _bytes(memory, sizes):
    if memory["kind"] == "bytes":
        return int(memory["amount"])
    # The smallest, so that the part is exceeded on none of them.
    return int(memory["amount"] * min(sizes)) if sizes else None


def _limit_sessions(module, memory, sizes):
    """A session with a ConfigProto of its own knows nothing of eager mode's devices."""
    create = module.BaseSession.__init__

    def __init__(self, target="", graph=None, config=None, *more, **options):  # noqa: N807
        with process_record.noted("the memory limit for a session"):
            config = _limited(module, config, memory, sizes)
        create(self, target, graph, config, *more, **options)

    __init__.__doc__ = create.__doc__
    module.BaseSession.__init__ = __init__


def _limited(module, config, memory, sizes):
    part = memory["amount"]
    if memory["kind"] == "bytes":
        if not sizes:
            return config
        part = min(part / max(sizes), 1.0)
    limited = module.config_pb2.ConfigProto()
    if config is not None:
        limited.CopyFrom(config)
    given = limited.gpu_options.per_process_gpu_memory_fraction
    limited.gpu_options.per_process_gpu_memory_fraction = min(given, part) if given else part
    return limited
