"""TensorFlow 2 as the engine of a load."""

from functools import partial

from .engine import Engine, Load, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class TensorFlowEngine(Engine):
    def __init__(self, place: int) -> None:
        import tensorflow as tf

        self._tf = tf
        self._device = "/GPU:%d" % place
        self.version = str(tf.__version__)

    def wait(self, value: "Any") -> None:
        # There is no other way in all releases: the last number of the last result.
        self._tf.reshape(value, [-1])[-1].numpy()

    def put(self, numbers: "Any") -> "Any":
        with self._tf.device(self._device):
            return self._tf.identity(self._tf.constant(numbers))

    def fetch(self, value: "Any") -> "Any":
        return self._tf.cast(value, self._tf.float32).numpy()

    def cast(self, value: "Any", form: str) -> "Any":
        with self._tf.device(self._device):
            return self._tf.cast(value, "float32" if form == "tf32" else form)

    def differing(self, one: "Any", other: "Any") -> int:
        tf = self._tf
        with tf.device(self._device):
            different = tf.cast(tf.not_equal(one, other), tf.int64)
            return int(tf.reduce_sum(different).numpy())

    def product(self, left: "Any", right: "Any", form: str) -> "Callable[[], Any]":
        tf = self._tf
        choose = getattr(tf.config.experimental, "enable_tensor_float_32_execution", None)
        if choose is not None:
            choose(form == "tf32")
        elif form == "tf32":
            raise Missing("this release of TensorFlow cannot choose TF32")

        def step() -> "Any":
            with tf.device(self._device):
                return tf.matmul(left, right)

        return step

    def copies(self, pattern: "Any") -> "Load":
        tf, count = self._tf, int(pattern.shape[0])
        last = [pattern]

        def step() -> "Any":
            with tf.device(self._device):
                last[0] = pattern + 1.0
            return last[0]

        def wrong() -> int:
            with tf.device(self._device):
                return self.differing(last[0], pattern + 1.0)

        return Load(2.0 * count * pattern.dtype.size, step, wrong, count)

    def transfers(self, numbers: "Any") -> "tuple[Load, Load]":
        raise Missing("TensorFlow copies from memory that is not pinned")


def engines() -> "dict[str, Callable[[], Engine]]":
    """Every GPU that the framework sees, by its PCI address.

    TensorFlow leaves out weak GPUs, so its numbers are not those of CUDA. Its descriptions have
    the address: "device: 0, name: ..., pci bus id: 0000:3b:00.0, ...".
    """
    import tensorflow as tf
    from tensorflow.python.client import device_lib

    if not getattr(tf, "executing_eagerly", bool)():
        raise Missing("TensorFlow 1 is not used for this")
    found: "dict[str, Callable[[], Engine]]" = {}
    for device in device_lib.list_local_devices():
        if device.device_type != "GPU":
            continue
        place = int(device.name.rpartition(":")[2])
        rest = device.physical_device_desc.partition("pci bus id: ")[2]
        address = rest.partition(",")[0].strip().lower()
        if address:
            found[address] = partial(TensorFlowEngine, place)
    return found
