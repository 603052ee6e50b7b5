"""The engines of the load test, each with its real framework, on the CPU.

What they compute and copy is the same there. How fast a GPU is, and its addresses on the bus, only
tests/hardware can see.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.comparer.inside import INSIDE
from tests.targets import python_of

PROGRAM = """
import json, sys
sys.path.append({inside!r})
from whygpu_work.load import cuda_devices, measuring
from whygpu_work.tasks import stress

{engine}

class Channel(object):
    def send(self, kind, **fields):
        if kind in ("stress-rate", "stress-result"):
            fields.pop("address")
            print("MESSAGE " + json.dumps(dict(fields, kind=kind)))
    def tell(self, text):
        pass

# As on a GPU of compute capability 8.0, with sizes for a processor.
cuda_devices.capability = lambda address: (8, 0)
stress.PRODUCT_SIZES = ((0, 256),)
stress.LARGEST_COPY = stress.LARGEST_TRANSFER = 1 << 22
stress.COPY_SHARE = stress.PRODUCT_SHARE = 0.0
measuring.SLICE_SECONDS = 0.001
gpu = {{"address": "0000:00:00.0", "bytes": 1 << 26}}
stress.GpuTest(gpu, 120.0, Channel(), {{}}).run(make())
"""

ENGINES = {
    "torch": """
import torch
from whygpu_work.load.with_torch import TorchEngine
def make():
    torch.cuda.set_device = lambda device: None
    torch.cuda.synchronize = lambda device: None
    torch.Tensor.pin_memory = lambda tensor: tensor
    engine = TorchEngine(0)
    engine._device = torch.device("cpu")
    return engine
""",
    "jax": """
import jax
from whygpu_work.load.with_jax import JaxEngine
def make():
    return JaxEngine(jax.devices("cpu")[0])
""",
    "tensorflow-2.21": """
from whygpu_work.load.with_tensorflow import TensorFlowEngine
def make():
    engine = TensorFlowEngine(0)
    engine._device = "/CPU:0"
    return engine
""",
}


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_copies_and_multiplies(name: str) -> None:
    program = PROGRAM.format(inside=str(INSIDE), engine=ENGINES[name])
    done = subprocess.run(
        [python_of(name), "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = [
        json.loads(line.partition(" ")[2])
        for line in done.stdout.splitlines()
        if line.startswith("MESSAGE ")
    ]
    rates = {each["name"]: each for each in found if each["kind"] == "stress-rate"}
    wrong = [each for each in found if each["kind"] == "stress-result" and not each["right"]]
    assert wrong == []
    for form in ("memory", "float32", "tf32", "bfloat16"):
        assert rates[form]["per_second"], rates[form]
    failed = {
        form: rate["reason"]
        for form, rate in rates.items()
        if not rate["per_second"] and rate["applies"]
    }
    assert failed == {}
