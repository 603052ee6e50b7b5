"""The calls for TensorFlow. None of them starts its runtime.

Asking TensorFlow for its GPUs starts CUDA, and then a program that sets CUDA_VISIBLE_DEVICES
afterwards would be too late. So the memory limit waits until TensorFlow starts the GPUs itself.
"""

from whygpu_bootstrap import import_hook, process_record
from whygpu_bootstrap.policy import xla_flags
from whygpu_bootstrap.policy.attempts import CannotCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from whygpu_bootstrap.policy.attempts import Attempt

MIB = 1 << 20
FIRST_WITH_DETERMINISTIC_OPS = (2, 6)


def set_log_level(tensorflow: "Any", level: str) -> None:
    import logging

    logging.getLogger("tensorflow").setLevel(level)


def set_seed(tensorflow: "Any", seed: int) -> None:
    function = getattr(tensorflow.random, "set_seed", None) or tensorflow.set_random_seed
    function(seed)


def seed_every_graph(tensorflow: "Any", seed: int) -> None:
    """Under --tf1: each graph has a seed of its own; set_seed() is for eager execution."""
    import functools

    from tensorflow.python.framework import ops

    begin = ops.Graph.__init__

    @functools.wraps(begin)
    def seeded(graph: "Any", *args: "Any", **kwargs: "Any") -> None:
        begin(graph, *args, **kwargs)
        if graph.seed is None:
            graph.seed = seed

    ops.Graph.__init__ = seeded
    ops.get_default_graph().seed = seed


def add_xla_flag(tensorflow: "Any", flag: str) -> None:
    xla_flags.add(flag, tensorflow.__version__, FIRST_WITH_DETERMINISTIC_OPS)


def disable_tf32(tensorflow: "Any") -> None:
    name = "enable_tensor_float_32_execution"
    switch = getattr(tensorflow.config.experimental, name, None)
    if switch is None:
        raise CannotCall("this TensorFlow has no tf.config.experimental.%s" % name)
    switch(False)


def set_memory_limit(
    tensorflow: "Any",
    attempt: "Attempt",
    bytes: "int | None",
    bytes_by_gpu: "Any",
    fraction: "float | None",
) -> None:
    """Limit each GPU in eager mode by bytes, and each session by a fraction of all its GPUs.

    `bytes_by_gpu` is for the GPUs that the plan expects, in their order; `bytes` for any other.
    None stands for a limit that is not known because the size of the GPU is not.
    """
    import_hook.after_import(
        "tensorflow.python.eager.context",
        lambda module: _limit_eager(tensorflow, module, attempt, bytes, bytes_by_gpu),
    )
    import_hook.after_import(
        "tensorflow.python.client.session",
        lambda module: _change_sessions(
            module, attempt, lambda options: _limit_fraction(options, fraction)
        ),
    )


def refuse_at_once(tensorflow: "Any", attempt: "Attempt") -> None:
    """Let the allocator refuse what it cannot give at once, instead of after up to 10 seconds."""
    import_hook.after_import(
        "tensorflow.python.eager.context", lambda module: _refuse_in_eager(module, attempt)
    )
    import_hook.after_import(
        "tensorflow.python.client.session",
        lambda module: _change_sessions(module, attempt, _refuse),
    )


def _refuse_in_eager(module: "Any", attempt: "Attempt") -> None:
    initialize = module.Context.ensure_initialized

    def ensure_initialized(self: "Any") -> "Any":
        if not self._initialized:
            with attempt:
                # TensorFlow adds its own options to this one when it starts. There is no other way
                # to this option than the attribute.
                config = module.config_pb2.ConfigProto()
                if self._config is not None:
                    config.CopyFrom(self._config)
                _refuse(config.gpu_options)
                self._config = config
        return initialize(self)

    ensure_initialized.__doc__ = initialize.__doc__
    module.Context.ensure_initialized = ensure_initialized


def _refuse(options: "Any") -> None:
    name = "disallow_retry_on_allocation_failure"
    if not hasattr(getattr(options, "experimental", None), name):
        raise CannotCall("this TensorFlow has no GPUOptions.experimental.%s" % name)
    setattr(options.experimental, name, True)


def _limit_eager(
    tensorflow: "Any", module: "Any", attempt: "Attempt", bytes: "int | None", bytes_by_gpu: "Any"
) -> None:
    initialize = module.Context.ensure_initialized

    def ensure_initialized(self: "Any") -> "Any":
        if not self._initialized:
            with attempt:
                _configure(tensorflow, bytes, bytes_by_gpu)
        return initialize(self)

    ensure_initialized.__doc__ = initialize.__doc__
    module.Context.ensure_initialized = ensure_initialized


def logical_devices(tensorflow: "Any") -> "tuple[Any, Any, Any]":
    """(get, set, the type of one) for logical devices, under the names that this release has."""
    config = tensorflow.config
    if hasattr(config, "set_logical_device_configuration"):
        return (
            config.get_logical_device_configuration,
            config.set_logical_device_configuration,
            config.LogicalDeviceConfiguration,
        )
    experimental = config.experimental
    return (
        experimental.get_virtual_device_configuration,
        experimental.set_virtual_device_configuration,
        experimental.VirtualDeviceConfiguration,
    )


def _configure(tensorflow: "Any", bytes: "int | None", bytes_by_gpu: "Any") -> None:
    """Each GPU as one logical device of a limited size, unless the program has made its own."""
    get, set_, Configuration = logical_devices(tensorflow)  # noqa: N806
    gpus = tensorflow.config.experimental.get_visible_devices("GPU")
    limits = bytes_by_gpu if len(bytes_by_gpu) == len(gpus) else [bytes] * len(gpus)
    for gpu, limit in zip(gpus, limits):
        if limit is None:
            raise CannotCall("the memory size of the GPU is unknown")
        if get(gpu) is not None:
            process_record.note(
                "the program itself divides %s: its own limits stay in force" % gpu.name
            )
            continue
        set_(gpu, [Configuration(memory_limit=limit // MIB)])


def _change_sessions(module: "Any", attempt: "Attempt", change: "Callable[[Any], None]") -> None:
    """Change the GPU options of every session: a session with a ConfigProto of its own does not
    know the devices of eager mode."""
    create = module.BaseSession.__init__

    def __init__(  # noqa: N807
        self: "Any",
        target: str = "",
        graph: "Any" = None,
        config: "Any" = None,
        *more: "Any",
        **options: "Any",
    ) -> None:
        with attempt:
            changed = module.config_pb2.ConfigProto()
            if config is not None:
                changed.CopyFrom(config)
            change(changed.gpu_options)
            config = changed
        create(self, target, graph, config, *more, **options)

    __init__.__doc__ = create.__doc__
    module.BaseSession.__init__ = __init__


def _limit_fraction(options: "Any", fraction: "float | None") -> None:
    if fraction is None:
        raise CannotCall("the memory size of the GPU is unknown")
    given = options.per_process_gpu_memory_fraction
    options.per_process_gpu_memory_fraction = min(given, fraction) if given else fraction
