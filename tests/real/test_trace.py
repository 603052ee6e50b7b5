"""Where real frameworks ran each operation, as the programs themselves can count it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from tests.patience import PATIENCE
from tests.targets import python_of

RUN = (sys.executable, "-m", "whygpu", "run", "--device", "cpu", "--trace", "--quiet")
QUIET_FRAMEWORKS = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": ""}


class Traced:
    """A program's output bare and traced, and its trace."""

    def __init__(self, tmp_path: pathlib.Path, target: str, program: str, **environ: str) -> None:
        file = tmp_path / "program.py"
        file.write_text(program)
        report = tmp_path / "report.json"
        argv = [python_of(target), str(file)]
        env = {**os.environ, **QUIET_FRAMEWORKS, **environ}
        done = subprocess.run(
            [*RUN, "--report", str(report), "--", *argv],
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        self.out = done.stdout
        answer = json.loads(report.read_text())
        self.device: str = answer["device"]
        self.trace: dict[str, Any] = answer["trace"]
        self._argv, self._env = argv, env

    def bare_output(self) -> str:
        return subprocess.run(
            self._argv, env=self._env, capture_output=True, text=True, timeout=PATIENCE, check=True
        ).stdout

    def count(self, op: str) -> int:
        return sum(row["count"] for row in self.trace["ops"] if row["op"] == op)

    def seconds(self, op: str) -> float | None:
        (row,) = (row for row in self.trace["ops"] if row["op"] == op)
        seconds: float | None = row["seconds"]
        return seconds

    @property
    def devices(self) -> set[str]:
        return {row["device"] for row in self.trace["ops"]}

    @property
    def reasons(self) -> list[tuple[str, str]]:
        return [(row["op"], row["reason"]) for row in self.trace["on_cpu_because"]]


EAGER_AND_FUNCTION = """
import tensorflow as tf
from tensorflow.python.eager import context
tf.random.set_seed(1)
print("started early:", context.context()._initialized)
x = tf.random.normal((4, 4))
for _ in range(5):
    y = tf.linalg.matmul(x, x)
@tf.function
def three(a):
    return tf.linalg.matmul(tf.linalg.matmul(tf.linalg.matmul(a, a), a), a)
for _ in range(10):
    y = three(x)
@tf.function(jit_compile=True)
def compiled(a):
    return tf.sin(a) + tf.sin(a + 1.0)
for _ in range(4):
    compiled(x)
with tf.device("/GPU:0"):
    tf.linalg.matmul(x, x)
tf.summary.trace_on(graph=True)
tf.function(lambda a: a * 3.0)(x)
metadata = context.context().export_run_metadata()
print("own graphs:", len(metadata.function_graphs))
tf.summary.trace_off()
for _ in range(2):
    tf.function(lambda a: tf.cos(a))(x)
print("%.6f" % float(tf.reduce_sum(y)))
"""


def test_tensorflow_eager_functions_and_xla(tmp_path: pathlib.Path) -> None:
    traced = Traced(tmp_path, "tensorflow-2.21", EAGER_AND_FUNCTION)
    assert traced.count("MatMul") == 5 + 10 * 3 + 1
    assert traced.count("Sin") == 4 * 2
    assert traced.count("Cos") == 2
    assert traced.count("tf.function three") == 10
    assert (traced.seconds("tf.function three") or 0) > 0
    assert traced.seconds("MatMul") is None
    assert traced.devices == {"cpu"}
    assert traced.reasons == [("*", "no GPU visible")]
    assert "GPU:0" in traced.trace["on_cpu_because"][0]["detail"]
    assert "started early: False" in traced.out
    assert traced.out == traced.bare_output()


SESSION = """
import sys
import numpy as np
import tensorflow
tf = tensorflow if tensorflow.__version__.startswith("1.") else tensorflow.compat.v1
if tf is not tensorflow:
    tf.disable_eager_execution()
data = np.random.RandomState(0).rand(16, 8)
x = tf.placeholder(tf.float32, (None, 8))
w = tf.Variable(np.ones((8, 1), "float32"))
with tf.device("/gpu:3"):
    product = tf.matmul(x, w)
loss = tf.reduce_mean(tf.square(product))
step = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
loop = tf.while_loop(lambda i: i < 10, lambda i: tf.add(i, 1, name="counted"), [tf.constant(0)])
session = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
session.run(tf.global_variables_initializer())
for _ in range(20):
    session.run([step, loss], {x: data})
print(session.run(loop))
RunOptions = tf.RunOptions
for options in (None, RunOptions(trace_level=RunOptions.FULL_TRACE),
                RunOptions(output_partition_graphs=True)):
    metadata = tf.RunMetadata()
    session.run(loss * 2, {x: data}, options=options, run_metadata=metadata)
    print(len(metadata.partition_graphs), bool(metadata.step_stats.dev_stats))
call = session.make_callable(w)
print([float(call().sum()) for _ in range(3)])
try:
    session.run(loss)
except tensorflow.errors.InvalidArgumentError:
    print("not fed")
print("%.5f" % session.run(loss, {x: data}))
"""


@pytest.mark.parametrize("target", ["tensorflow-2.21", "tensorflow-gpu-1.15"])
def test_tensorflow_sessions(tmp_path: pathlib.Path, target: str) -> None:
    traced = Traced(tmp_path, target, SESSION)
    # Forward and backward in each step, three runs with options, the last one.
    assert traced.count("MatMul") == 20 * 2 + 3 + 1
    # A loop's operations are seen as often as they run.
    assert max(traced.count("Add"), traced.count("AddV2")) >= 10
    assert (traced.seconds("MatMul") or 0) > 0
    assert traced.reasons == [("*", "no GPU visible")]
    assert traced.out == traced.bare_output()


@pytest.mark.parametrize(
    "target",
    ["tensorflow-2.21", pytest.param("tensorflow-gpu-1.15", marks=pytest.mark.full)],
)
def test_what_tensorflow_folds_is_told_with_its_place(tmp_path: pathlib.Path, target: str) -> None:
    program = """
import tensorflow
tf = tensorflow if tensorflow.__version__.startswith("1.") else tensorflow.compat.v1
if tf is not tensorflow:
    tf.disable_eager_execution()
added = tf.constant([1.0, 2.0]) + tf.constant([3.0, 4.0])
fed = tf.placeholder(tf.float32, [2])
with tf.device("/cpu:1"):
    squared = tf.square(fed)
session = tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}))
print(session.run(added), session.run(squared, {fed: [1, 2]}))
"""
    traced = Traced(tmp_path, target, program)
    assert traced.trace["folded"] == [{"op": "AddV2", "device": "cpu", "count": 1}]
    # The two devices share the memory of the computer.
    assert traced.trace["transfers"] == []
    assert [each["op"] for each in traced.trace["ops"]] == ["Square"]
    assert traced.out == "[4. 6.] [1. 4.]\n"


def test_a_program_that_dies_on_an_import_ran_nowhere(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.json"
    code = "import torch; import nothing_of_that_name"
    command = [sys.executable, "-m", "whygpu", "run", "--trace", "--report", str(report), "--"]
    done = subprocess.run(
        [*command, python_of("torch"), "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "no operation was seen before the program failed" in done.stderr
    assert "was imported, and no operation was seen" in done.stderr
    assert json.loads(report.read_text())["device"] == "none"


BUILT = """
import tensorflow
tf = tensorflow if tensorflow.__version__.startswith("1.") else tensorflow.compat.v1
with tf.Graph().as_default():
    fed = tf.placeholder(tf.float32, [None], name="fed")
    fitted = tf.reshape(fed, tf.constant([3], name="shape"), name="fitted")
    BODY
    fed.graph.finalize()
"""
IDLE = {
    "built": ("", "a graph of 3 operations was built, and no session has run any of it"),
    "folded": (
        "print(tf.Session().run(tf.constant(1.0) + 2.0))",
        "what the sessions of TensorFlow fetched depends on constants alone",
    ),
    "failed": (
        """
    try:
        tf.Session().run(fitted, {fed: [1, 2]})
    except tf.errors.InvalidArgumentError:
        pass
""",
        "1 run of a session failed, and TensorFlow does not report what had run before the failure",
    ),
    "copied": (
        "tf.Session().run(fed, {fed: [1.0]})",
        "the sessions of TensorFlow fetched only constants and what was fed",
    ),
}


@pytest.mark.parametrize("name", list(IDLE))
def test_why_nothing_ran_in_tensorflow(tmp_path: pathlib.Path, name: str) -> None:
    body, why = IDLE[name]
    traced = Traced(tmp_path, "tensorflow-2.21", BUILT.replace("BODY", body))
    assert traced.trace["ops"] == []
    assert traced.trace["nothing_because"] == [why]
    assert traced.device == "none"
    reasons = [each["reason"] for each in traced.trace["on_cpu_because"]]
    assert reasons == (["no GPU visible"] if traced.trace["folded"] else [])


@pytest.mark.parametrize(
    ("target", "program", "why"),
    [
        ("jax", "import jax; jax.jit(lambda x: x + 1)", "JAX compiled and executed nothing"),
        (
            "jax",
            "import jax; jax.jit(lambda x: x + 1).lower(1.0).compile()",
            "JAX compiled 1 function, and executed none",
        ),
        ("torch", "import torch", "PyTorch executed none in the main thread"),
    ],
)
def test_why_nothing_ran_elsewhere(
    tmp_path: pathlib.Path, target: str, program: str, why: str
) -> None:
    traced = Traced(tmp_path, target, program)
    (found,) = traced.trace["nothing_because"]
    assert found.startswith(why)
    assert traced.device == "none"


def test_what_did_run_is_not_called_nothing(tmp_path: pathlib.Path) -> None:
    traced = Traced(tmp_path, "torch", "import torch; print(torch.nn.Linear(3, 3))")
    assert traced.trace["nothing_because"] == []
    assert traced.device == "cpu"


def test_keras_on_tensorflow_1_trains_past_run(tmp_path: pathlib.Path) -> None:
    program = """
import numpy as np
import tensorflow as tf
np.random.seed(1); tf.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(8,))])
model.compile("sgd", "mse")
model.fit(np.ones((32, 8)), np.ones(32), epochs=3, batch_size=4, verbose=0)
print("%.5f" % model.evaluate(np.ones((4, 8)), np.ones(4), verbose=0))
"""
    traced = Traced(tmp_path, "tensorflow-gpu-1.15", program)
    assert traced.count("ResourceApplyGradientDescent") == 2 * 24
    assert traced.out == traced.bare_output()


EAGER_ON_1 = """
import tensorflow as tf
tf.enable_eager_execution()
x = tf.ones((4, 4))
for _ in range(5):
    tf.matmul(x, x)
@tf.function
def twice(a):
    return tf.matmul(tf.matmul(a, a), a)
for _ in range(6):
    y = twice(x)
print(float(tf.reduce_sum(y)))
"""


def test_eager_execution_and_functions_on_tensorflow_1(tmp_path: pathlib.Path) -> None:
    traced = Traced(tmp_path, "tensorflow-gpu-1.15", EAGER_ON_1)
    assert traced.count("MatMul") == 5 + 6 * 2
    assert traced.reasons == [("*", "no GPU visible")]
    assert traced.out == "256.0\n"


KERAS = """
import numpy as np
import keras
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1, use_bias=False)])
model.compile("sgd", "mse")
data = np.random.RandomState(0).rand(32, 8).astype("float32")
history = model.fit(data, data.sum(1), epochs=5, batch_size=8, verbose=0)
print(keras.backend.backend(), "%.6f" % history.history["loss"][-1])
"""


@pytest.mark.parametrize(
    ("backend", "target", "products"),
    [
        # Forward, and the gradient of the weights; the input needs none.
        ("tensorflow", "tensorflow-2.21", {"MatMul": 2 * 20}),
        # Their tracers are shown without Keras below.
        pytest.param("jax", "jax", {"dot_general": 2 * 20}, marks=pytest.mark.full),
        pytest.param("torch", "torch", {"aten::mm": 2 * 20}, marks=pytest.mark.full),
    ],
)
def test_keras_fit_on_each_backend(
    tmp_path: pathlib.Path, backend: str, target: str, products: dict[str, int]
) -> None:
    traced = Traced(tmp_path, target, KERAS, KERAS_BACKEND=backend)
    assert {op: traced.count(op) for op in products} == products
    assert traced.devices == {"cpu"}
    assert [reason for _, reason in traced.reasons] == ["no GPU visible"]
    assert traced.out == traced.bare_output()


JAX = """
import jax
import jax.numpy as jnp
import numpy as np
x, w = jnp.ones((16, 8)), jnp.ones((8, 1))
gradient = jax.jit(jax.grad(lambda w: ((x @ w) ** 2).mean()))
for _ in range(20):
    w = w - 0.01 * gradient(w)
ahead = jax.jit(lambda a: jnp.sin(jnp.sin(a))).lower(x).compile()
for _ in range(5):
    ahead(x)
for _ in range(4):
    jnp.tanh(x)
called = jax.jit(lambda a: jax.pure_callback(lambda b: np.asarray(b), a, a))
for _ in range(3):
    called(x)
with jax.debug_nans(True):
    divided = jax.jit(lambda a: a / a)
    divided(jnp.ones(3)), divided(jnp.ones(3))
    for _ in range(2):
        try:
            divided(jnp.zeros(3))
            print("no error")
        except FloatingPointError:
            print("nan")
print("%.6f" % float(w.sum()))
"""


def test_jax_compiled_functions_times_executions(tmp_path: pathlib.Path) -> None:
    traced = Traced(tmp_path, "jax", JAX)
    assert traced.count("dot_general") == 20 * 2
    assert traced.count("sine") == 5 * 2
    assert traced.count("tanh") == 4
    callbacks = [row for row in traced.trace["ops"] if row["op"].endswith("_callback")]
    assert [row["count"] for row in callbacks] == [3]
    assert sorted(reason for _, reason in traced.reasons) == ["host callback", "no GPU visible"]
    assert traced.out == traced.bare_output()


TORCH = """
import sys
import threading
import torch
torch.manual_seed(1)
torch.set_num_threads(1)
steps = {steps}
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(4, 8)
for _ in range(steps):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
print([thread.name for thread in threading.enumerate()], sys.getprofile())
print("%.9f" % loss.item())
"""


def test_a_short_pytorch_program_is_counted_exactly(tmp_path: pathlib.Path) -> None:
    traced = Traced(tmp_path, "torch", TORCH.format(steps=30))
    assert traced.count("aten::addmm") == 2 * 30
    # Two gradients of weights, one of a layer's input: in the backward pass.
    assert traced.count("aten::mm") == 3 * 30
    assert (traced.seconds("aten::mm") or 0) > 0
    assert traced.reasons == [("*", "no GPU visible")]
    assert traced.out == traced.bare_output()


def test_a_long_pytorch_program_is_sampled(tmp_path: pathlib.Path) -> None:
    """Enough steps for some rests; the estimate is within a quarter of the truth."""
    traced = Traced(tmp_path, "torch", TORCH.format(steps=6000))
    assert traced.count("aten::addmm") == pytest.approx(2 * 6000, rel=0.25)
    assert traced.out.startswith("['MainThread'] None\n")


TORCH_ELSEWHERE = """
import os
import signal
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode


class Doubled(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), float(index)) * 2


class Late(Exception):
    pass


class Named(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        print(function)
        return function(*args, **(kwargs or {}))


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        context.save_for_backward(value)
        return value * value

    @staticmethod
    def backward(context, gradient):
        (value,) = context.saved_tensors
        return 2 * value * gradient


def late(number, frame):
    raise Late


if __name__ == "__main__":
    total = sum(float(batch.sum()) for batch in DataLoader(Doubled(), 8, num_workers=2))
    print(total)
    net = torch.nn.Linear(4, 1)
    with FlopCounterMode(display=False) as flops:
        net(torch.ones(2, 4))
    print(flops.get_total_flops())
    with Named():
        torch.zeros(2) + 1
    with FakeTensorMode():
        print(type(torch.empty(3, 3) @ torch.empty(3, 3)).__name__)
    print(len(make_fx(lambda a: a.sin() + a.cos())(torch.ones(2)).graph.nodes))
    print(torch.func.vmap(torch.func.grad(lambda a: a**3))(torch.arange(3.0)))
    leaf = torch.ones(3, requires_grad=True)
    Squared.apply(leaf).sum().backward()
    print(leaf.grad)
    try:
        torch.ones(2, 3) @ torch.ones(2, 3)
    except RuntimeError as error:
        print(error)
    print(torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(2),)))
    with torch.profiler.profile() as profile:
        torch.ones(3).add_(1)
    print(any(event.key == "aten::add_" for event in profile.key_averages()))
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 2.5)
    x = torch.ones(4)
    try:
        while True:
            x = x.clone().mul_(1)
    except Late:
        print("late")
"""


def test_pytorch_goes_on_as_it_would(tmp_path: pathlib.Path) -> None:
    """Forked workers, other modes, transforms, higher-order operators, a profiler, a signal."""
    traced = Traced(tmp_path, "torch", TORCH_ELSEWHERE)
    assert traced.count("aten::full") == 64
    assert traced.out == traced.bare_output()


def test_reasons_follow_the_kernels_that_tensorflow_has(tmp_path: pathlib.Path) -> None:
    """Read from a TensorFlow with GPU kernels, as if a GPU were there."""
    from whygpu import launch

    bootstrap = pathlib.Path(launch.__file__).parent / "bootstrap"
    program = f"""
import json, sys
sys.path.insert(0, {str(bootstrap)!r})
import tensorflow as tf
from whygpu_bootstrap.trace import tensorflow as tracer, tensorflow_reasons as why
def reason(op, requested="", **types):
    numbers = tuple((name, kind.as_datatype_enum) for name, kind in types.items())
    return why.explain(why.Sight(op, numbers, requested, ()), tracer._knowledge(op), ["gpu:0"])[0]
print(json.dumps([
    reason("StringJoin"), reason("AddV2", T=tf.string), reason("AddV2", T=tf.int32),
    reason("MatMul", T=tf.int64), reason("Shape", T=tf.float32, out_type=tf.int32),
    reason("ReadVariableOp", dtype=tf.float32), reason("MatMul", "/CPU:0", T=tf.float32),
    reason("MatMul", "/GPU:1", T=tf.float32), reason("MatMul", T=tf.float32),
]))
"""
    for target in ("tensorflow-2.21", "tensorflow-gpu-1.15"):
        done = subprocess.run(
            [python_of(target), "-c", program], capture_output=True, text=True, timeout=PATIENCE
        )
        assert json.loads(done.stdout) == [
            "no GPU kernel",
            "host-only dtype",
            "host-only dtype",
            "no GPU kernel",
            "host-memory operation",
            "resource on the CPU",
            "explicit device",
            "soft placement",
            "framework's choice",
        ]
