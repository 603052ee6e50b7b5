"""Common situations of TensorFlow and Keras programs, as each release words them.

A row is a release, a situation, the log and the answer that an expert would give: the root causes,
or the verdict if there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.cases import each
from tests.causes.release_logs import (
    RELEASES,
    devices,
    gpu,
    hidden,
    no_driver,
    old,
    raised,
    record,
    tf_error,
)
from tests.kit import explained
from whygpu.model.explanation import Explanation
from whygpu.model.remedy import InstallFramework, SetVariable


class Case(NamedTuple):
    release: str
    situation: str
    log: str
    answer: tuple[str, ...]
    """The root causes in their order, or the verdict."""

    def __str__(self) -> str:
        return f"{self.release} {self.situation}"


SESSION = "tensorflow/python/client/session.py"
NEW_SESSION = (SESSION, "self._session = tf_session.TF_NewSessionRef(self._graph._c_graph, opts)")
RUN = (SESSION, "raise type(e)(node_def, op, message)")
EAGER = (
    "tensorflow/python/framework/constant_op.py",
    "return ops.EagerTensor(value, device, dtype)",
)


def without_driver(release: str) -> tuple[str, ...]:
    """Where libcuda is missing too, it may be a container without access to the driver."""
    loads = release in ("1.4", "1.8", "1.12")
    return ("no-nvidia-driver",) if loads else ("no-nvidia-driver", "docker-no-gpu-runtime")


def where_hidden(release: str) -> tuple[str, ...]:
    """Only the newest release shows the variable; before, the GPU may also be in a bad state."""
    shown = release == "2.21"
    first = "visible-devices-hides-gpu"
    return (first,) if shown else (first, "nvidia-kernel-module-state")


def _pinned(release: str, device: str, has: str) -> str:
    """An operation with a device that the process does not have, as the release refuses it."""
    operation = {
        "1.4": "operation 'a': Operation",
        "1.8": "operation 'a': Operation",
        "1.12": "operation a: Operation",
        "1.15": "operation a: node a (defined at train.py:7) ",
        "2.0": "operation a: {{node a}}",
    }
    if release in operation:
        text = (
            f"Cannot assign a device for {operation[release]} was explicitly assigned to "
            f"/device:{device} but available devices are [ {has} ]. Make sure the device "
            "specification refers to a valid device."
        )
        return raised(
            release, "print(sess.run(a))", tf_error(release, "InvalidArgumentError", text), RUN
        )
    text = (
        f"Could not satisfy device specification '/job:localhost/replica:0/task:0/device:{device}'."
        f" enable_soft_placement=0. Supported device types [CPU]. All available devices [{has}]."
    )
    return raised(
        release, "a = tf.constant(1.0)", tf_error(release, "InvalidArgumentError", text), EAGER
    )


def placements() -> Iterator[Case]:
    for release in RELEASES:
        yield Case(
            release,
            "a device beyond the last GPU",
            f"{gpu(release)}\n{_pinned(release, 'GPU:2', devices(0))}",
            ("device-placement-nonexistent",),
        )
        yield Case(
            release,
            "a GPU on a machine without a driver",
            f"{no_driver(release)}\n{_pinned(release, 'GPU:0', devices())}",
            without_driver(release),
        )
        yield Case(
            release,
            "a GPU that CUDA_VISIBLE_DEVICES hides",
            f"{hidden(release)}\n{_pinned(release, 'GPU:0', devices())}",
            where_hidden(release),
        )
    for release in ("2.4", "2.10", "2.16", "2.21"):
        text = "Unable to find any devices for spec /device:GPU:0 [Op:__inference_step_6]"
        end = raised(release, "step()", tf_error(release, "InvalidArgumentError", text))
        yield Case(
            release,
            "a function for a GPU, no driver",
            f"{no_driver(release)}\n{end}",
            without_driver(release),
        )
        yield Case(
            release,
            "a function for the second GPU",
            f"{gpu(release)}\n{end.replace('GPU:0', 'GPU:1')}",
            ("device-placement-nonexistent",),
        )
        end = raised(
            release,
            "print(tf.config.experimental.get_memory_info('GPU:0'))",
            "ValueError: No matching devices found for 'GPU:0'",
        )
        yield Case(
            release,
            "memory of a GPU, no driver",
            f"{no_driver(release)}\n{end}",
            without_driver(release),
        )
    for release in ("1.15", "2.0", "2.4", "2.10", "2.16", "2.21"):
        text = (
            "Cannot assign a device for operation joined: Could not satisfy explicit device "
            "specification '/device:GPU:0' because no supported kernel for GPU devices is "
            "available."
        )
        end = raised(
            release, "sess.run(joined)", tf_error(release, "InvalidArgumentError", text), RUN
        )
        yield Case(
            release,
            "an operation that no GPU can do",
            f"{gpu(release)}\n{end}",
            ("device-placement-no-gpu-kernel",),
        )
    for release in RELEASES:
        unread = "Unknown attribute: 'gpu0' in 'gpu0'"
        if release in ("2.10", "2.16", "2.21"):
            unread = (
                "Unknown attribute 'gpu0' is encountered while parsing the device spec: 'gpu0'."
            )
        end = raised(release, "with tf.device('gpu0'):", f"ValueError: {unread}")
        yield Case(
            release,
            "a name that is no device",
            f"{gpu(release)}\n{end}",
            ("device-placement-nonexistent",),
        )
    for release, frame, answer in (
        # Builds of 1.13 and 1.14 with CUDA said so too.
        ("1.12", RUN, ("device-placement-nonexistent",)),
        ("1.15", (SESSION.replace("tensorflow", "tensorflow_core"), RUN[1]), ("cpu-only-build",)),
        ("2.4", ("tensorflow/python/eager/execute.py", "inputs, attrs)"), ("cpu-only-build",)),
        ("2.21", ("tensorflow/python/eager/execute.py", "inputs, attrs)"), ("cpu-only-build",)),
    ):
        text = (
            "Cannot assign a device for operation a: {{node a}} was explicitly assigned to "
            f"/device:GPU:0 but available devices are [ {devices()} ]. Make sure the device "
            "specification refers to a valid device. The requested device appears to be a GPU, but "
            "CUDA is not enabled."
        )
        end = raised(release, "step()", tf_error(release, "InvalidArgumentError", text), frame)
        yield Case(release, "a GPU in a build without CUDA", end, answer)
    for release in ("2.0", "2.4"):
        unknown = "/job:localhost/replica:0/task:0/device:GPU:1 unknown device."
        kind = "RuntimeError: Error copying tensor to device: /device:GPU:1. " + unknown
        if release == "2.4":
            kind = tf_error(release, "InvalidArgumentError", unknown)
        yield Case(
            release,
            "a tensor on an unknown device",
            f"{gpu(release)}\n{raised(release, 'x = tf.constant([1.0])', kind, EAGER)}",
            ("device-placement-nonexistent",),
        )


def sessions() -> Iterator[Case]:
    """Session creation: what the runtime refuses, and where it says so."""
    refusals = {
        "listed beyond the last GPU": (
            "InvalidArgumentError",
            "Invalid argument",
            "'visible_device_list' listed an invalid {} id '3' but visible device count is 1",
            ("invalid-device-ordinal",),
        ),
        "a list that is no list of numbers": (
            "InvalidArgumentError",
            "Invalid argument",
            "Could not parse entry in 'visible_device_list': 'gpu0'. visible_device_list = gpu0",
            ("invalid-device-ordinal",),
        ),
        "a GPU that is listed twice": (
            "InvalidArgumentError",
            "Invalid argument",
            "visible_device_list contained a duplicate entry: 0,0",
            ("gpu-config-misuse",),
        ),
        "a GPU without room for a context": (
            "InternalError",
            "Internal",
            "failed initializing StreamExecutor for CUDA device ordinal 0: Internal: failed call "
            "to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory; total memory "
            "reported: 11720982528",
            ("oom-other-process",),
        ),
        "a GPU whose driver is too old": (
            "InternalError",
            "Internal",
            "cudaGetDevice() failed. Status: CUDA driver version is insufficient for CUDA runtime "
            "version",
            ("driver-too-old-for-cuda",),
        ),
        "two sessions with different lists": (
            "AlreadyExistsError",
            "Already exists",
            "TensorFlow device (GPU:0) is being mapped to multiple CUDA devices (1 now, and 0 "
            "previously), which is not supported. This may be the result of providing different "
            "GPU configurations (ConfigProto.gpu_options, for example different "
            "visible_device_list) when creating multiple Sessions in the same process.",
            ("gpu-config-misuse",),
        ),
        "a share of the memory beside virtual devices": (
            "InvalidArgumentError",
            "Invalid argument",
            "It's invalid to set per_process_gpu_memory_fraction when virtual_devices is set.",
            ("gpu-config-misuse",),
        ),
        "more than all memory on an old GPU": (
            "InternalError",
            "Internal",
            "Unified memory on GPUs with compute capability lower than 6.0 (pre-Pascal class GPUs) "
            "does not support oversubscription.",
            ("gpu-config-misuse",),
        ),
    }
    for situation, (kind, code, text, answer) in refusals.items():
        for release in ("1.4", "1.8", "1.12", "1.15", "2.4", "2.10", "2.21"):
            if release == "1.4" and ("virtual" in text or "Unified" in text):
                continue
            said = text.format("Device" if release in ("2.10", "2.21") else "GPU")
            if release in ("2.10", "2.21"):
                said = said.replace("multiple CUDA devices", "multiple devices")
            if old(release):
                statement = "sess = tf.Session(config=config)"
            else:
                statement = "sess = tf.compat.v1.Session(config=config)"
            if release in ("1.4", "1.8"):
                # These give the reason only to the record before the exception.
                lines = [
                    record(
                        release,
                        "E",
                        "core/common_runtime/direct_session.cc",
                        154,
                        f"{code}: {said}",
                    )
                ]
                error = tf_error(release, "InternalError", "Failed to create session.")
            else:
                lines = []
                error = tf_error(release, kind, said)
            end = raised(release, statement, error, NEW_SESSION)
            yield Case(release, situation, "\n".join((*lines, end)), answer)


def sessions_that_xla_ends() -> Iterator[Case]:
    """TensorFlow 1.15 aborts: it asks XLA for its devices before it reports any error."""
    fetch = "Attempting to fetch value instead of handling error "

    def fatal(text: str) -> str:
        return record("1.15", "F", "stream_executor/lib/statusor.cc", 34, fetch + text)

    none = "Internal: no supported devices found for platform CUDA"
    opened = record(
        "1.15",
        "I",
        "stream_executor/platform/default/dso_loader.cc",
        44,
        "Successfully opened dynamic library libcuda.so.1",
    )
    service = record(
        "1.15", "I", "compiler/xla/service/service.cc", 176, "  StreamExecutor device (0): Host"
    )

    def refused(error: str) -> str:
        return record(
            "1.15",
            "W",
            "compiler/xla/service/platform_util.cc",
            256,
            "unable to create StreamExecutor for CUDA:0: failed initializing StreamExecutor for "
            f"CUDA device ordinal 0: Internal: failed call to cuDevicePrimaryCtxRetain: {error}",
        )

    aborted = "Aborted (core dumped)"
    for situation, lines, answer in (
        (
            "visible_device_list without a driver",
            (no_driver("1.15"), fatal("Not found: no CUDA devices found"), aborted),
            without_driver("1.15"),
        ),
        (
            "visible_device_list that is no list of numbers",
            (
                fatal(
                    "Invalid argument: Could not parse entry in 'visible_device_list': 'gpu0'. "
                    "visible_device_list = gpu0"
                ),
                aborted,
            ),
            ("invalid-device-ordinal",),
        ),
        (
            "visible_device_list beyond the last GPU",
            (service, opened, fatal(none), aborted),
            ("invalid-device-ordinal",),
        ),
        (
            "a GPU that is busy",
            (
                opened,
                refused(
                    "CUDA_ERROR_DEVICE_UNAVAILABLE: CUDA-capable device(s) is/are busy or "
                    "unavailable"
                ),
                fatal(none),
                aborted,
            ),
            ("nvidia-kernel-module-state", "compute-mode-blocks"),
        ),
        (
            "a GPU without room for a context",
            (
                opened,
                refused(
                    "CUDA_ERROR_OUT_OF_MEMORY: out of memory; total memory reported: 8510701568"
                ),
                fatal(none),
                aborted,
            ),
            ("oom-other-process",),
        ),
        (
            "a GPU that is too old",
            (
                record(
                    "1.15",
                    "I",
                    "core/common_runtime/gpu/gpu_device.cc",
                    1721,
                    "Ignoring visible gpu device (device: 0, name: Quadro K600, pci bus id: "
                    "0000:01:00.0, compute capability: 3.0) with Cuda compute capability 3.0. The "
                    "minimum required Cuda capability is 3.5.",
                ),
                record(
                    "1.15",
                    "I",
                    "compiler/xla/service/platform_util.cc",
                    197,
                    "StreamExecutor cuda device (0) is of insufficient compute capability: 3.5 "
                    "required, device is 3.0",
                ),
                fatal(none),
                aborted,
            ),
            ("compute-capability-too-old",),
        ),
    ):
        yield Case("1.15", situation, "\n".join(lines), answer)


def removed_names() -> Iterator[Case]:
    """Names of another TensorFlow than the installed one."""
    for release, module in (
        ("2.0", "tensorflow"),
        ("2.4", "tensorflow"),
        ("2.10", "tensorflow"),
        ("2.16", "tensorflow"),
        ("2.21", "tensorflow"),
    ):
        for statement, name in (
            ("sess = tf.Session()", "Session"),
            ("config = tf.ConfigProto()", "ConfigProto"),
            ("options = tf.GPUOptions(per_process_gpu_memory_fraction=0.4)", "GPUOptions"),
            ("graph = tf.get_default_graph()", "get_default_graph"),
        ):
            error = f"AttributeError: module '{module}' has no attribute '{name}'"
            yield Case(
                release,
                f"tf.{name}",
                raised(release, statement, error),
                ("session-api-removed-in-tf2",),
            )
        frame = (SESSION, "raise RuntimeError('The Session graph is empty. Add operations to the '")
        error = (
            "RuntimeError: The Session graph is empty. Add operations to the graph before calling "
            "run()."
        )
        yield Case(
            release,
            "a session beside eager execution",
            f"{no_driver(release)}\n{raised(release, 'print(sess.run(a))', error, frame)}",
            ("session-api-removed-in-tf2",),
        )
    listing = "gpus = tf.config.list_physical_devices('GPU')"
    for release, module, name in (
        ("1.15", "tensorflow._api.v1.config", "list_physical_devices"),
        ("2.0", "tensorflow_core._api.v2.config", "list_physical_devices"),
    ):
        error = f"AttributeError: module '{module}' has no attribute '{name}'"
        yield Case(
            release,
            "tf.config.list_physical_devices",
            raised(release, listing, error),
            ("no-such-device-name",),
        )
    for release in ("2.4", "2.10", "2.21"):
        for statement, module, name in (
            ("tf.config.set_memory_growth(gpu, True)", "config", "set_memory_growth"),
            ("except tf.errors.CUDAOutOfMemoryError:", "errors", "CUDAOutOfMemoryError"),
            (
                "print(tf.config.experimental_list_physical_devices('GPU'))",
                "config",
                "experimental_list_physical_devices",
            ),
        ):
            error = (
                f"AttributeError: module 'tensorflow._api.v2.{module}' has no attribute '{name}'"
            )
            yield Case(
                release,
                f"tf.{module}.{name}",
                raised(release, statement, error),
                ("no-such-device-name",),
            )


def configuration() -> Iterator[Case]:
    """tf.config: too late, not alike, or with something that is no GPU of the list."""
    context = "tensorflow/python/eager/context.py"
    cpu = "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')"
    for release in ("1.15", "2.0", "2.4", "2.10", "2.16", "2.21"):
        for situation, statement, error in (
            (
                "growth too late",
                "tf.config.experimental.set_memory_growth(gpu, True)",
                "RuntimeError: Physical devices cannot be modified after being initialized",
            ),
            (
                "visible devices too late",
                "tf.config.experimental.set_visible_devices(gpus[0], 'GPU')",
                "RuntimeError: Visible devices cannot be modified after being initialized",
            ),
            (
                "virtual devices too late",
                "tf.config.experimental.set_virtual_device_configuration(gpus[0], parts)",
                "RuntimeError: Virtual devices cannot be modified after being initialized",
            ),
            (
                "growth on one of two GPUs",
                "x = tf.ones((2, 2))",
                "ValueError: Memory growth cannot differ between GPU devices",
            ),
            (
                "growth beside a limit",
                "tf.config.experimental.set_memory_growth(gpus[0], True)",
                "ValueError: Cannot set memory growth on device when virtual devices configured",
            ),
            (
                "growth of the CPU",
                "tf.config.experimental.set_memory_growth(device, True)",
                "ValueError: Cannot set memory growth on non-GPU devices"
                if release in ("1.15", "2.0", "2.4")
                else "ValueError: Cannot set memory growth on non-GPU and non-Pluggable devices",
            ),
            (
                "a list instead of a GPU",
                "tf.config.experimental.set_memory_growth(gpus, True)",
                f"ValueError: Unrecognized device: [{cpu.replace('CPU', 'GPU')}]",
            ),
            (
                "virtual devices without a limit",
                "tf.config.experimental.set_virtual_device_configuration(gpus[0], parts)",
                "ValueError: Setting memory limit is required for GPU virtual devices",
            ),
            (
                "the CPU among the visible GPUs",
                "tf.config.experimental.set_visible_devices(cpus, 'GPU')",
                f"ValueError: Unrecognized device: {cpu}",
            ),
            (
                "the name of a GPU instead of the GPU",
                "tf.config.experimental.set_visible_devices('/GPU:0', 'GPU')",
                "ValueError: Unrecognized device: '/GPU:0'",
            ),
        ):
            end = raised(release, statement, error, (context, f"raise {error.split(':')[0]}("))
            yield Case(release, situation, f"{gpu(release)}\n{end}", ("gpu-config-misuse",))
        for before, answer in (
            (no_driver(release), without_driver(release)),
            (hidden(release), where_hidden(release)),
        ):
            end = raised(
                release,
                "tf.config.experimental.set_memory_growth(gpus[0], True)",
                "IndexError: list index out of range",
            )
            yield Case(release, "the first of no GPUs", f"{before}\n{end}", answer)


def programs_that_want_a_gpu() -> Iterator[Case]:
    """The check of a program ends it; the log says further up why there is no GPU."""
    for release in RELEASES:
        for error in (
            "SystemError: GPU device not found",
            "AssertionError: No GPU found",
            "RuntimeError: GPU not available, CPU used",
        ):
            end = raised(release, "require_gpu()", error)
            yield Case(
                release, f"{error}, hidden", f"{hidden(release)}\n{end}", where_hidden(release)
            )
            yield Case(
                release,
                f"{error}, no driver",
                f"{no_driver(release)}\n{end}",
                without_driver(release),
            )


def memory() -> Iterator[Case]:
    for release in RELEASES:
        place = (
            ""
            if release == "1.4"
            else " and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator "
            "GPU_0_bfc"
        )
        text = f"OOM when allocating tensor with shape[64000,64000]{place}"
        end = raised(
            release, "model.fit(x, y)", tf_error(release, "ResourceExhaustedError", text), RUN
        )
        yield Case(
            release,
            "a tensor larger than the GPU",
            f"{gpu(release)}\n{end}",
            ("oom-model-too-big",),
        )
        on_cpu = text.replace("GPU:0 by allocator GPU_0_bfc", "CPU:0 by allocator cpu")
        if release != "1.4":
            end = raised(
                release, "model.fit(x, y)", tf_error(release, "ResourceExhaustedError", on_cpu), RUN
            )
            yield Case(
                release,
                "a tensor larger than the computer's memory",
                f"{gpu(release)}\n{end}",
                ("host-oom",),
            )
        end = raised(
            release,
            "a = tf.Variable(np.random.rand(5000, 5000, 5000), dtype=tf.float32)",
            "MemoryError: Unable to allocate 931. GiB for an array with shape (5000, 5000, 5000) "
            "and data type float64",
        )
        yield Case(
            release,
            "an array larger than the computer's memory",
            f"{gpu(release)}\n{end}",
            ("host-oom",),
        )


def keras() -> Iterator[Case]:
    for backend, end, answer in (
        ("torch", "ModuleNotFoundError: No module named 'torch'", "keras-backend-missing"),
        ("jax", "ModuleNotFoundError: No module named 'jax'", "keras-backend-missing"),
        ("theano", "ValueError: Unable to import backend : theano", "keras-backend-missing"),
        ("cntk", "ValueError: Unable to import backend : cntk", "keras-backend-missing"),
    ):
        frame = (
            "keras/src/backend/__init__.py",
            'raise ValueError(f"Unable to import backend : {backend()}")',
        )
        yield Case(
            "2.16",
            f"KERAS_BACKEND={backend}",
            raised("2.16", "import keras", end, frame),
            (answer,),
        )
    frame = (
        "keras/backend/load_backend.py",
        "raise ValueError('Unknown backend: ' + str(_BACKEND))",
    )
    yield Case(
        "1.15",
        "KERAS_BACKEND=tensorflw",
        raised("1.15", "import keras", "ValueError: Unknown backend: tensorflw", frame),
        ("keras-backend-missing",),
    )


def others() -> Iterator[Case]:
    """What is not the GPU's matter although a session or a GPU is named in the log."""
    for release in ("1.4", "1.8", "1.12", "1.15"):
        end = raised(
            release, "print(sess.run(a))", "RuntimeError: Attempted to use a closed Session."
        )
        yield Case(release, "a closed session", f"{gpu(release)}\n{end}", ("not-gpu",))
        text = (
            "No session factory registered for the given session options: {target: "
            '"grpc_near://h:1" config: device_count { key: "CPU" value: 1 } '
            "gpu_options { experimental { } }} "
            "Registered factories are {DIRECT_SESSION, GRPC_SESSION}."
        )
        end = raised(
            release,
            "sess = tf.Session('grpc_near://h:1')",
            tf_error(release, "NotFoundError", text),
            NEW_SESSION,
        )
        native = record(release, "E", "core/common_runtime/session.cc", 89, f"Not found: {text}")
        yield Case(release, "a target that does not exist", f"{native}\n{end}", ("not-gpu",))


LOADER = "stream_executor/platform/default/dso_loader.cc"
GPU_DEVICE = "core/common_runtime/gpu/gpu_device.cc"
FIRST_GPU = "tf.config.experimental.set_memory_growth(gpus[0], True)"
NO_ITEM = "IndexError: list index out of range"
WORK = "Epoch 1/2\n10/10 - 1s - loss: 0.5\nEpoch 2/2\n10/10 - 1s - loss: 0.4"


def _not_loaded(release: str, *libraries: str) -> str:
    missing = [
        record(
            release,
            "W",
            LOADER,
            55,
            f"Could not load dynamic library '{name}'; dlerror: {name}: cannot open shared object "
            "file: No such file or directory",
        )
        for name in libraries
    ]
    skipped = (
        "Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above "
        "are installed properly if you would like to use GPU. Follow the guide at "
        "https://www.tensorflow.org/install/gpu for how to download and setup the required "
        "libraries for your platform.\nSkipping registering GPU devices..."
    )
    return "\n".join((*missing, record(release, "W", GPU_DEVICE, 1662, skipped)))


def libraries() -> Iterator[Case]:
    native = (
        "tensorflow/python/pywrap_tensorflow_internal.py",
        "_mod = imp.load_module('_pywrap_tensorflow_internal', fp, pathname, description)",
    )
    absent = "cannot open shared object file: No such file or directory"
    for release, cuda, cudnn in (("1.4", "8.0", "6"), ("1.8", "9.0", "7"), ("1.12", "9.0", "7")):
        for name, answer in (
            (f"libcublas.so.{cuda}", ("cuda-runtime-missing", "cuda-version-mismatch")),
            (f"libcudnn.so.{cudnn}", ("cudnn-missing",)),
            ("libcuda.so.1", ("no-nvidia-driver", "docker-no-gpu-runtime")),
        ):
            end = raised(
                release, "import tensorflow as tf", f"ImportError: {name}: {absent}", native
            )
            yield Case(
                release,
                f"no {name}",
                f"{end}\n\n\nFailed to load the native TensorFlow runtime.",
                answer,
            )
    end = (
        "TensorFlow requires that this DLL be installed in a directory that is named in your %PATH%"
    )
    for release, name, answer in (
        ("1.4", "cudart64_80.dll", ("cuda-runtime-missing", "cuda-version-mismatch")),
        ("1.8", "cudnn64_7.dll", ("cudnn-missing",)),
    ):
        error = f"ImportError: Could not find '{name}'. {end} environment variable."
        yield Case(release, f"no {name}", raised(release, "import tensorflow as tf", error), answer)
    for release, parts, cudnn in (
        ("1.15", ("libcudart.so.10.0", "libcublas.so.10.0", "libcufft.so.10.0"), "libcudnn.so.7"),
        ("2.0", ("libcudart.so.10.0", "libcublas.so.10.0", "libcufft.so.10.0"), "libcudnn.so.7"),
        ("2.4", ("libcudart.so.11.0", "libcublas.so.11", "libcufft.so.10"), "libcudnn.so.8"),
        ("2.10", ("libcudart.so.11.0", "libcublas.so.11", "libcufft.so.10"), "libcudnn.so.8"),
    ):
        end = raised(release, FIRST_GPU, NO_ITEM)
        yield Case(
            release,
            "no CUDA",
            f"{_not_loaded(release, *parts)}\n{end}",
            ("cuda-runtime-missing", "cuda-version-mismatch"),
        )
        yield Case(release, "no cuDNN", f"{_not_loaded(release, cudnn)}\n{end}", ("cudnn-missing",))
    for release in ("2.16", "2.21"):
        yield Case(
            release,
            "libraries that the log does not name",
            f"{_not_loaded(release)}\n{raised(release, FIRST_GPU, NO_ITEM)}",
            ("cuda-runtime-missing", "library-path-conflict"),
        )


def _convolution(release: str) -> str:
    """How a convolution ends if cuDNN does not start."""
    if release == "1.4":
        return record(
            release,
            "F",
            "core/kernels/conv_ops.cc",
            667,
            "Check failed: stream->parent()->GetConvolveAlgorithms( "
            "conv_parameters.ShouldIncludeWinogradNonfusedAlgo<T>(), &algorithms) ",
        )
    graph = "Graph execution error:\n\nDetected at node conv defined at (most recent call last):\n"
    kind, text = {
        "2.10": (
            "UnimplementedError",
            f"{graph}DNN library is not found.\n\t [[{{{{node conv}}}}]]",
        ),
        "2.16": (
            "FailedPreconditionError",
            f"{graph}DNN library initialization failed. Look at the "
            "errors above for more details.\n\t [[{{node conv}}]]",
        ),
        "2.21": (
            "FailedPreconditionError",
            f"{graph}DNN library initialization failed. Look at the "
            "errors above for more details.\n\t [[{{node conv}}]]",
        ),
    }.get(
        release,
        (
            "UnknownError",
            "Failed to get convolution algorithm. This is probably because cuDNN failed to "
            "initialize, so try looking to see if a warning log message was printed above.",
        ),
    )
    inner = (RUN,) if old(release) else ()
    return raised(release, "model.fit(x, y)", tf_error(release, kind, text), *inner)


def gpu_libraries_at_work() -> Iterator[Case]:
    for release in RELEASES:
        versions = "7.1.4 but source was compiled with: 7.6.0"
        if release == "1.4":
            versions = (
                "5110 (compatibility version 5100) but source was compiled with 6021 "
                "(compatibility version 6000)"
            )
        dnn = "stream_executor/cuda/cuda_dnn.cc"
        loaded = record(
            release, "E", dnn, 319, f"Loaded runtime CuDNN library: {versions}.  CuDNN library"
        )
        could = "could" if release in ("1.4", "1.8") else "Could"
        refused = record(
            release, "E", dnn, 329, f"{could} not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR"
        )
        end = _convolution(release)
        yield Case(
            release,
            "another cuDNN",
            f"{gpu(release)}\n{loaded}\n{end}",
            ("cudnn-version-mismatch",),
        )
        yield Case(
            release,
            "a GPU without room for cuDNN",
            f"{gpu(release)}\n{refused}\n{end}",
            ("cudnn-init-failed-oom",),
        )
        blas = record(
            release,
            "E",
            "stream_executor/cuda/cuda_blas.cc",
            366,
            "failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED",
        )
        text = "Blas GEMM launch failed : a.shape=(8, 8), b.shape=(8, 8), m=8, n=8, k=8"
        end = raised(release, "model.fit(x, y)", tf_error(release, "InternalError", text))
        yield Case(
            release,
            "a GPU without room for cuBLAS",
            f"{gpu(release)}\n{blas}\n{end}",
            ("cudnn-init-failed-oom",),
        )
        text = (
            "The TensorFlow library was compiled to use AVX instructions, but these aren't "
            "available on your machine."
        )
        fatal = record(release, "F", "core/platform/cpu_feature_guard.cc", 37, text)
        yield Case(
            release,
            "a processor without AVX",
            f"{fatal}\nAborted (core dumped)",
            ("avx-missing-sigill",),
        )


def reports() -> Iterator[Case]:
    """Logs without a failure."""
    for release in RELEASES:
        for text in (
            "Num GPUs Available:  0",
            "No GPUs found. Running on CPU.",
            "TensorFlow did not detect any GPUs.",
            "Please install GPU version of TF",
            '[name: "/device:CPU:0"\ndevice_type: "CPU"\nmemory_limit: 268435456\n]',
        ):
            yield Case(release, f"only {text!r}", text, ("unknown",))
            yield Case(
                release, f"{text!r}, hidden", f"{hidden(release)}\n{text}", where_hidden(release)
            )
        mapping = (
            "Device mapping:\n/job:localhost/replica:0/task:0/device:GPU:0 -> device: 0, name: "
            "GeForce GTX 1080 Ti, pci bus id: 0000:01:00.0, compute capability: 6.1\n"
            "c: (Add): /job:localhost/replica:0/task:0/device:"
        )
        yield Case(
            release, "placed on the GPU", f"{gpu(release)}\n{mapping}GPU:0", ("nothing-wrong",)
        )
        yield Case(release, "placed on the CPU", f"{gpu(release)}\n{mapping}CPU:0", ("gpu-unused",))
        yield Case(
            release,
            "no device to place on",
            "Device mapping: no known devices.\n"
            "c: (Add): /job:localhost/replica:0/task:0/device:CPU:0",
            ("gpu-unused",),
        )
        waits = "CreateSession still waiting for response from worker: /job:worker/replica:0/task:1"
        line = record(release, "I", "core/distributed_runtime/master.cc", 221, waits)
        yield Case(release, "a worker that does not answer", line, ("unknown",))
        refused = (
            "failed to allocate 10.17G (10916724736 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY"
        )
        line = record(release, "E", "stream_executor/cuda/cuda_driver.cc", 806, refused)
        again = line.replace("10.17G (10916724736", "9.15G (9825052160")
        yield Case(
            release,
            "less memory than reserved",
            "\n".join((gpu(release), line, again, WORK)),
            ("oom-other-process",),
        )
        if release not in ("1.4", "1.8"):
            text = (
                "The TF_FORCE_GPU_ALLOW_GROWTH environment variable is set but could not be "
                'parsed: "1". Valid values are "true" or "false". Using original config value of 0.'
            )
            line = record(release, "E", "core/common_runtime/gpu/gpu_bfc_allocator.cc", 43, text)
            yield Case(
                release,
                "TF_FORCE_GPU_ALLOW_GROWTH=1",
                "\n".join((line, gpu(release), WORK)),
                ("environment-variable-ineffective",),
            )
        small = (
            "Ignoring visible gpu device (device: 1, name: Quadro K420, pci bus id: 0000:02:00.0, "
            "compute capability: 3.0) with Cuda multiprocessor count: 1. The minimum required "
            "count is 8. You can adjust this requirement with the env var "
            "TF_MIN_GPU_MULTIPROCESSOR_COUNT."
        )
        line = record(release, "I", GPU_DEVICE, 1711, small)
        yield Case(
            release,
            "a second GPU that is small",
            "\n".join((line, gpu(release), WORK)),
            ("nothing-wrong",),
        )


CASES = (
    *placements(),
    *sessions(),
    *sessions_that_xla_ends(),
    *removed_names(),
    *configuration(),
    *programs_that_want_a_gpu(),
    *memory(),
    *keras(),
    *others(),
    *libraries(),
    *gpu_libraries_at_work(),
    *reports(),
)


def answer_of(explanation: Explanation) -> tuple[str, ...]:
    assert not explanation.crashed
    if explanation.verdict != "found":
        return (explanation.verdict,)
    return tuple(root.cause for root in explanation.root_causes)


@each("case", CASES, ids=str)
def test_the_answer_is_an_experts(case: Case) -> None:
    assert answer_of(explained(case.log)) == case.answer, case.log


TF_CONFIG, OF_SESSIONS = "tf.config", ("ConfigProto", "GPUOptions", "Session")


@each("case", [case for case in CASES if case.answer[0] != "session-api-removed-in-tf2"], ids=str)
def test_remedies_are_written_in_the_api_of_the_program(case: Case) -> None:
    said = " ".join(
        remedy.text for root in explained(case.log).root_causes for remedy in root.remedies
    )
    if "client/session.py" in case.log:
        assert TF_CONFIG not in said
        assert "tf.keras.mixed_precision" not in said
    elif TF_CONFIG in case.log or "enable_soft_placement" in case.log:
        assert not any(word in said for word in OF_SESSIONS)


def test_a_report_of_no_gpu_alone_says_so_and_asks_why() -> None:
    explanation = explained("Num GPUs Available:  0")
    assert "sees no GPU" in explanation.headline
    assert explanation.guidance is not None
    assert explanation.guidance.candidates


@each("missing", ["tensorflow", "torch", "jax"])
def test_the_backend_that_is_missing_is_not_proposed(missing: str) -> None:
    frame = ("keras/src/backend/__init__.py", f"import {missing}")
    end = f"ModuleNotFoundError: No module named '{missing}'"
    (root,) = explained(raised("2.16", "import keras", end, frame)).root_causes
    assert f"KERAS_BACKEND={missing}" not in repr(root.remedies)
    assert SetVariable("KERAS_BACKEND", missing) not in {one.action for one in root.remedies}


def test_a_program_of_tensorflow_1_15_is_not_told_to_install_tensorflow_2() -> None:
    case = next(one for one in CASES if str(one) == "1.15 a GPU in a build without CUDA")
    (root,) = explained(case.log).root_causes
    (wish,) = (one.action for one in root.remedies if isinstance(one.action, InstallFramework))
    assert wish.installed == "1.15"
