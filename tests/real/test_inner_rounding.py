"""Numbers that cancel out inside of a layer: what rounding explains, and what it does not."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

from tests.comparer.inside import INSIDE
from tests.targets import python_of

PROGRAM = """
import json, sys
import torch
from whygpu_work.judging import local
from whygpu_work.judging.lifted_torch import TorchTools
from whygpu_work.lanes import layers_torch, recording

folder = sys.argv[1]

class Cancels(torch.nn.Module):
    def __init__(self, fault=0.0):
        super().__init__()
        self.fault = fault

    def forward(self, x):
        return (x + 1e6) - 1e6 + self.fault

class Plain(Cancels):
    def forward(self, x):
        return torch.tanh(x) * (1.0 + self.fault)

x = torch.randn(64, 64, generator=torch.Generator().manual_seed(1))
for kind, fault in ((Cancels, 0.0), (Cancels, 10.0), (Plain, 0.0), (Plain, 1e-5)):
    where = "{}/{}-{}".format(folder, kind.__name__, fault)
    writer = recording.Writer(where)
    writer.tensor("layer", "layer", kind(fault)(x).numpy())
    writer.step("layer", "Layer", ["layer"], "float32", {}, "w")
    writer.close()
    errors = local.ErrorWriter(where + "-errors")
    given = x.double()
    forcing = local.Forcing(
        TorchTools(torch), recording.Recording(where), errors, [given.numpy()])
    sound = kind().eval()
    for _ in forcing.passes():
        forcing("layer", sound, lambda args, kwargs: sound(*args), (given.clone(),), {})
    errors.close()
    (error,) = local.Errors(where + "-errors").read("layer")
    worst = float((abs(error.gap) / error.own).max())
    print("FOUND " + json.dumps([kind.__name__, fault, worst]))
"""


def test_what_cancels_out_inside_of_a_layer_is_rounding_and_faults_are_not(
    tmp_path: pathlib.Path,
) -> None:
    ended = subprocess.run(
        [python_of("torch"), "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(INSIDE)),
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    lines = [line[6:] for line in ended.stdout.splitlines() if line.startswith("FOUND ")]
    units = {(kind, fault): worst for kind, fault, worst in map(json.loads, lines)}
    assert 0 < units["Cancels", 0.0] <= 1
    assert units["Cancels", 10.0] > 1
    assert units["Plain", 0.0] <= 1
    assert units["Plain", 1e-5] > 1
