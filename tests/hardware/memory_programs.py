"""Programs that need memory on a GPU, run as `python -c CODE ...` in the interpreter with the
frameworks. The first word is a limit in MiB, for the first GPU.

tests/hardware/test_memory.py and tools/record_gpu.py run them; without a GPU there is no limit, and
no counter.
"""

from __future__ import annotations

_LIMITED = """
import json, sys
import numpy as np
import tensorflow as tf
gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    limit = tf.config.LogicalDeviceConfiguration(memory_limit=int(sys.argv[1]))
    tf.config.set_logical_device_configuration(gpu, [limit])
"""
"""On a logical device the allocator splits its blocks, so that its counters show the need."""

MEASURED = f"""{_LIMITED}
import importlib

def peak():
    return tf.config.experimental.get_memory_info("GPU:0")["peak"] if gpus else None

file, name, batch, mode = sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
model = getattr(importlib.import_module(file), name)()
(given,) = model.inputs
x = np.ones((batch, *given.shape[1:]), given.dtype)
y = np.ones((batch, *model.outputs[0].shape[1:]), "float32")
train = mode == "train"
step = (lambda: model.train_on_batch(x, y)) if train else (lambda: model.predict_on_batch(x))
step()
first = peak()
if gpus:
    tf.config.experimental.reset_memory_stats("GPU:0")
for _ in range(2):
    step()
print(json.dumps({{
    "peak_bytes": peak(),
    "first_bytes": first,
    "inputs_bytes": x.nbytes + (y.nbytes if train else 0),
    "jit_compile": bool(getattr(model, "jit_compile", False)),
}}))
"""
"""LIMIT FILE MODEL BATCH train|infer: what a step of a Keras model of tests/estimates takes, in the
fields of tests/estimates/h200.json."""

MEASURED_TORCH = """
import importlib, json, sys
import torch
file, name, batch, mode = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
module, example = getattr(importlib.import_module(file), name)()
gpu = torch.cuda.is_available()
device = "cuda" if gpu else "cpu"
module.to(device)
x = torch.zeros((batch, *example.shape[1:]), dtype=example.dtype, device=device)
optimizer = torch.optim.Adam(module.parameters())

def train():
    optimizer.zero_grad()
    output = module(x)
    scores = output.flatten(0, -2)
    classes = torch.zeros(len(scores), dtype=torch.int64, device=device)
    loss = torch.nn.functional.cross_entropy(scores, classes)
    loss.backward()
    optimizer.step()

def infer():
    with torch.no_grad():
        module(x)

module.train(mode == "train")
for _ in range(3):
    train() if mode == "train" else infer()
print(json.dumps({
    "peak_bytes": torch.cuda.max_memory_allocated() if gpu else None,
    "reserved_bytes": torch.cuda.max_memory_reserved() if gpu else None,
}))
"""
"""FILE MODEL BATCH train|infer: the same for a PyTorch module, in the usual loop."""

GUARDED_LOOP = f"""{_LIMITED}
import whygpu
guard = whygpu.oom_guard()
kernels = [tf.Variable(tf.random.normal((3, 3, a, b)) * 0.1) for a, b in ((3, 16), (16, 32))]

def loss(x):
    for kernel in kernels:
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
    return tf.reduce_mean(tf.square(x))

step = guard.gradients(loss, kernels)
with tf.device("CPU:0"):
    x = tf.constant(np.random.rand(int(sys.argv[2]), 96, 96, 3).astype("float32"))
for _ in range(2):
    step(x)
print(json.dumps({{"steps": guard.report.steps, "in_parts": guard.report.steps_in_parts}}))
"""
"""LIMIT BATCH: a loop of two convolutions under the guard."""

GUARDED_FIT = f"""{_LIMITED}
import whygpu
guard = whygpu.OomGuard()
import small_models
model = small_models.two_convolutions()
batch = int(sys.argv[2])
(given,) = model.inputs
x = np.random.rand(2 * batch, *given.shape[1:]).astype("float32")
y = np.ones((2 * batch, *model.outputs[0].shape[1:]), "float32")
model.fit(x, y, batch_size=batch, verbose=0, callbacks=[guard])
print(json.dumps({{"steps": guard.report.steps, "in_parts": guard.report.steps_in_parts}}))
"""
"""LIMIT BATCH: `fit` with the guard as a callback, which is made before TensorFlow starts its
GPUs."""
