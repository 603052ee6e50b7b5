"""TensorFlow programs for a machine with exactly one GPU: what people try, and what should happen.

Each is a plain program without a line of whygpu. `tools/record_gpu.py` runs them and keeps what
they print; test_tensorflow_programs.py holds that against what is expected here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Program(NamedTuple):
    name: str
    claim: str
    """What people expect of it."""
    code: str
    prints: str
    """A pattern that its output has on such a machine."""
    fails: bool = False
    cause: str = ""
    """The cause that explain names if it fails; "" if that is not decided by the output."""
    environ: Mapping[str, str] = {}


_V1 = """\
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
"""
_V2 = "import tensorflow as tf\n"
_SESSION = """\
options = tf.ConfigProto(log_device_placement=True)
options.gpu_options.allow_growth = True
with tf.Session(config=options) as session:
    {build}
    print("sum", session.run(total))
"""
_ADD = "total = tf.constant([1.0, 2.0]) + tf.constant([3.0, 5.0])"
_ON_CPU = f'with tf.device("/cpu:0"): {_ADD}'

QUESTIONS = (
    Program(
        "session-logs-placement",
        "A session with log_device_placement shows that the addition is on the GPU.",
        _V1 + _SESSION.format(build=_ADD),
        r"add[^\n]*GPU:0[\s\S]*sum \[4\. 7\.\]",
    ),
    Program(
        "session-without-a-gpu",
        "A session whose GPU is hidden computes the same on the CPU.",
        _V1 + _SESSION.format(build=_ADD),
        r"sum \[4\. 7\.\]",
        environ={"CUDA_VISIBLE_DEVICES": "-1"},
    ),
    Program(
        "session-on-the-cpu",
        "tf.device('/cpu:0') puts the addition on the CPU although a GPU is there.",
        _V1 + _SESSION.format(build=_ON_CPU),
        r"Creat\w+ [^\n]*GPU:0[\s\S]*add[^\n]*CPU:0[\s\S]*sum \[4\. 7\.\]",
    ),
    Program(
        "versions",
        "TensorFlow says which CUDA and cuDNN it was built for.",
        _V2
        + "about = tf.sysconfig.get_build_info()\n"
        + "print(tf.__version__, about['cuda_version'], about['cudnn_version'])\n"
        + "print(len(tf.config.list_physical_devices('GPU')), 'GPU')\n",
        r"\d+\.\d+\.\d+ \d+\S* \d+[\s\S]*1 GPU",
    ),
    Program(
        "exhausted-and-caught",
        "Running out of memory raises ResourceExhaustedError, which a program can catch.",
        _V2
        + "try:\n    tf.zeros([1 << 19, 1 << 20])\n"
        + "except tf.errors.ResourceExhaustedError as error:\n"
        + "    print('caught', type(error).__name__)\n",
        "caught ResourceExhaustedError",
    ),
    Program(
        "second-gpu",
        "Choosing the second GPU raises RuntimeError if that is not possible.",
        _V2 + "gpus = tf.config.list_physical_devices('GPU')\n"
        "try:\n    tf.config.set_visible_devices(gpus[1], 'GPU')\n"
        "except RuntimeError:\n    print('caught')\n",
        "IndexError: list index out of range",
        fails=True,
    ),
    Program(
        "variable-larger-than-the-gpu",
        "A variable larger than the GPU raises ResourceExhaustedError when it is initialised. "
        "It does not: main memory runs out before.",
        _V1
        + "big = tf.get_variable('big', [1 << 19, 1 << 20], initializer=tf.zeros_initializer())\n"
        "with tf.Session() as session:\n"
        "    try:\n        session.run(tf.global_variables_initializer())\n"
        "    except tf.errors.ResourceExhaustedError as error:\n"
        "        print('caught', type(error).__name__)\n",
        # The zeros are made in main memory, before anything is asked of the GPU.
        r"Allocator \(mklcpu\) ran out of memory[\s\S]*InvalidArgumentError",
        fails=True,
        cause="host-oom",
    ),
    Program(
        "hidden-after-the-import",
        "CUDA_VISIBLE_DEVICES=-1, set after the import and before the session, hides the GPU.",
        "import os\n"
        + _V1
        + "os.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n"
        + "with tf.Session() as session:\n"
        + "    print(sum('GPU' in device.name for device in session.list_devices()), 'GPU')\n",
        "0 GPU",
    ),
    Program(
        "third-gpu-in-a-session",
        "An operation on /gpu:2 raises InvalidArgumentError.",
        _V1 + "with tf.device('/gpu:2'):\n    one = tf.constant(1.0) * 2\n"
        "with tf.Session() as session:\n    print(session.run(one))\n",
        "InvalidArgumentError",
        fails=True,
        cause="device-placement-nonexistent",
    ),
    Program(
        "hidden-by-an-empty-variable",
        "CUDA_VISIBLE_DEVICES='', set after the import and before the first use, hides the GPU.",
        "import os\n" + _V2 + "os.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
        "print(len(tf.config.list_physical_devices('GPU')), 'GPU')\n"
        "print(tf.matmul([[1.0, 2.0]], [[3.0], [4.0]]).device)\n",
        r"0 GPU[\s\S]*CPU:0",
    ),
    Program(
        "part-on-the-cpu",
        "tf.device('/CPU:0') holds for its block; what follows is on the GPU.",
        _V2
        + "with tf.device('/CPU:0'):\n    inside = tf.matmul(tf.ones([4, 4]), tf.ones([4, 4]))\n"
        "after = tf.matmul(tf.ones([4, 4]), tf.ones([4, 4]))\n"
        "print(inside.device, after.device)\n",
        r"CPU:0 \S*GPU:0",
    ),
    Program(
        "only-cpus-made-visible",
        "set_visible_devices(cpus, 'CPU') leaves the CPU only. It does not: GPUs are not named.",
        _V2 + "tf.config.set_visible_devices(tf.config.list_physical_devices('CPU'), 'CPU')\n"
        "print(tf.matmul(tf.ones([4, 4]), tf.ones([4, 4])).device)\n",
        "GPU:0",
    ),
    Program(
        "count-gpus",
        "list_physical_devices('GPU') shows whether TensorFlow has the GPU.",
        _V2 + "for gpu in tf.config.list_physical_devices('GPU'): print('has', gpu.name)\n",
        "has /physical_device:GPU:0",
    ),
    Program(
        "built-with-cuda",
        "is_built_with_cuda() shows that the model uses the GPU. It does not: the GPU is hidden.",
        _V2 + "model = tf.keras.Sequential([tf.keras.layers.Dense(2)])\n"
        "model.compile(optimizer='sgd', loss='mse')\n"
        "print(tf.test.is_built_with_cuda(), len(tf.config.list_physical_devices('GPU')))\n",
        "True 0",
        environ={"CUDA_VISIBLE_DEVICES": "-1"},
    ),
    Program(
        "removed-name",
        "tf.config.experimental_list_physical_devices lists the GPUs.",
        _V2 + "with tf.device('/GPU:0'): one = tf.constant([[1.0]])\n"
        "print(tf.config.experimental_list_physical_devices('GPU'))\n",
        "AttributeError",
        fails=True,
    ),
)
"""The situations that questions about TensorFlow and its GPU are made of."""

FAILURES = (
    Program(
        "visible-devices-too-late",
        "set_visible_devices works at any time.",
        _V2 + "tf.ones(1)\ntf.config.set_visible_devices([], 'GPU')\n",
        "RuntimeError: Visible devices cannot be modified after being initialized",
        fails=True,
        cause="gpu-config-misuse",
    ),
    Program(
        "growth-too-late",
        "set_memory_growth works at any time.",
        _V2
        + "tf.ones(1)\n"
        + "gpu, = tf.config.list_physical_devices('GPU')\n"
        + "tf.config.experimental.set_memory_growth(gpu, True)\n",
        "RuntimeError: Physical devices cannot be modified after being initialized",
        fails=True,
        cause="gpu-config-misuse",
    ),
    Program(
        "growth-and-limit",
        "Growth and a limit can be combined.",
        _V2 + "gpu, = tf.config.list_physical_devices('GPU')\n"
        "tf.config.experimental.set_memory_growth(gpu, True)\n"
        "tf.config.set_logical_device_configuration(\n"
        "    gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=1024)])\n",
        "ValueError",
        fails=True,
        cause="gpu-config-misuse",
    ),
    Program(
        "nonexistent-device",
        "An operation on a GPU that is not there fails.",
        _V2 + "tf.config.set_soft_device_placement(False)\n"
        "with tf.device('/GPU:3'): tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]))\n",
        "InvalidArgumentError|unknown device|could not satisfy",
        fails=True,
        cause="device-placement-nonexistent",
    ),
    Program(
        "no-kernel-for-the-gpu",
        "Strings have no operations on the GPU.",
        _V2 + "tf.config.set_soft_device_placement(False)\n"
        "with tf.device('/GPU:0'): print(tf.strings.join([tf.constant('a'), tf.constant('b')]))\n",
        "InvalidArgumentError",
        fails=True,
        cause="device-placement-no-gpu-kernel",
    ),
    Program(
        "limit-too-small",
        "A logical device of 1 GiB does not hold 2 GiB.",
        _V2 + "gpu, = tf.config.list_physical_devices('GPU')\n"
        "tf.config.set_logical_device_configuration(\n"
        "    gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=1024)])\n"
        "tf.zeros([1 << 29])\n",
        "ResourceExhaustedError",
        fails=True,
        cause="oom-model-too-big",
    ),
    Program(
        "batch-too-large",
        "A training that needs more than the GPU has fails.",
        _V2 + "import numpy\n"
        "gpu, = tf.config.list_physical_devices('GPU')\n"
        "tf.config.set_logical_device_configuration(\n"
        "    gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=2048)])\n"
        "layers = tf.keras.layers\n"
        "model = tf.keras.Sequential([layers.Input((128, 128, 3)), layers.Conv2D(64, 3),\n"
        "    layers.Conv2D(64, 3), layers.GlobalAveragePooling2D(), layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\n"
        "model.fit(numpy.ones((512, 128, 128, 3), 'float32'), numpy.ones((512, 1)),\n"
        "    batch_size=512, verbose=0)\n",
        "ResourceExhausted|RESOURCE_EXHAUSTED|out of memory",
        fails=True,
        cause="oom-model-too-big",
    ),
    Program(
        "labels-outside-the-classes",
        "A label outside the classes gives NaN on a GPU and an error on a CPU.",
        _V2 + "loss = tf.nn.sparse_softmax_cross_entropy_with_logits([7], tf.ones([1, 3]))\n"
        "print('loss', loss.numpy())\n",
        r"loss \[nan\]",
    ),
    Program(
        "wrong-shapes",
        "Shapes that do not fit are no matter of the GPU.",
        _V2 + "tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))\n",
        "InvalidArgumentError",
        fails=True,
        cause="not-gpu",
    ),
    Program(
        "invalid-visible-device-list",
        "visible_device_list names a GPU that is not there.",
        _V1 + "options = tf.ConfigProto()\noptions.gpu_options.visible_device_list = '5'\n"
        "tf.Session(config=options)\n",
        "listed an invalid Device id '5'",
        fails=True,
        cause="invalid-device-ordinal",
    ),
    Program(
        "xla-without-a-kernel",
        "jit_compile refuses what XLA has no operation for.",
        _V2 + "@tf.function(jit_compile=True)\n"
        "def upper(text): return tf.strings.upper(text)\n"
        "upper(tf.constant('a'))\n",
        "InvalidArgumentError|not compilable",
        fails=True,
    ),
    Program(
        "closed-session",
        "A closed session is no matter of the GPU.",
        _V1 + "session = tf.Session()\nsession.close()\nsession.run(tf.constant(1.0))\n",
        "RuntimeError: Attempted to use a closed Session",
        fails=True,
        cause="not-gpu",
    ),
)
"""Programs that fail on a GPU, for `explain`."""

PROGRAMS = QUESTIONS + FAILURES
