# mypy: ignore-errors
"""PyTorch programs that die, and what is noted of each; run in a target, prints JSON.

Given the folders of the bootstrap and of what runs in the target, and one to work in.
"""

from __future__ import annotations

import json
import linecache
import os
import sys
import types

sys.path[:0] = sys.argv[1:3]
FOLDER = sys.argv[3]

HEAD = """
import torch
from torch import nn
WIDTH = 8
device = torch.device("cpu")
class Full(nn.Module):
    def forward(self, x):
        raise MemoryError
class Net(nn.Module):
    def __init__(self, width=WIDTH, last=None):
        super().__init__()
        self.first = nn.Linear(width, 32)
        self.second = nn.Linear(32, 32)
        self.third = nn.Linear(32, 32)
        self.third.weight = self.second.weight
        self.last = last
    def forward(self, x, mask=None, scale=1):
        x = torch.relu(self.first(x)) * scale / WIDTH
        x = self.third(torch.relu(self.second(x)))
        x = x if mask is None else mask @ x
        return x if self.last is None else self.last(x)
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 8)
        self.over = nn.LSTM(8, 16, batch_first=True)
    def forward(self, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(
            self.words(ids), lengths, batch_first=True, enforce_sorted=False
        )
        return self.over(packed)[1][0]
x = torch.zeros(6, 8)
model = Net()
"""
PROGRAMS = {
    "in the forward pass": """
model = Net(last=Full())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    model(x, scale=2).sum().backward()
""",
    "without gradients": """
model = Net(last=Full())
with torch.no_grad():
    model(x)
""",
    "by a decorator": """
model = Net(last=Full())
@torch.inference_mode()
def predict(batch):
    return model(batch)
predict(x)
""",
    "in the first layer": """
model = nn.Sequential(Full(), Net())
model(x)
""",
    "in half precision": """
model = Net(last=Full())
with torch.autocast("cpu", dtype=torch.bfloat16):
    model(x)
""",
    "in the backward pass": """
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    batch = {"x": x}
    out = model(batch["x"].to(device))
    out.backward(torch.ones(99))
""",
    "in the loss": """
class Trainer:
    def __init__(self):
        self.model = model
        self.optimizer = torch.optim.RMSprop(model.parameters())
        self.loss = nn.MSELoss()
    def step(self, x, y):
        return self.loss(self.model(x), y)
Trainer().step(x, torch.zeros(7, 5))
""",
    "made on the spot": """
for step in range(3):
    model(torch.randn(5, WIDTH)).backward(torch.ones(99))
""",
    "made on the spot with a device": """
for step in range(3):
    model(torch.ones(5, WIDTH, device=device)).backward(torch.ones(99))
""",
    "moved in the call": """
model = nn.Linear(WIDTH, 32).to("meta")
for step in range(3):
    model(x.to("meta")).backward(torch.ones(99))
""",
    "beside the batch": """
model = Net(last=Full())
model(torch.zeros(6, 3, 8), mask=torch.ones(3, 3))
""",
    "with lengths": """
model = Words()
lengths = torch.tensor([9, 1, 5, 2, 9, 3])
out = model(torch.zeros(6, 9, dtype=torch.int64), lengths)
out.backward(torch.ones(99))
""",
    "of another round": """
model(x)
for step in range(3):
    torch.ones(3).backward(torch.ones(99))
""",
    "over GPUs": """
nn.DataParallel(Net(last=Full()))(x)
""",
    "with a lambda": """
model.last = Full()
model.name = lambda: "net"
model(x)
""",
    "with its data": """
import numpy
model.last = Full()
model.data = numpy.zeros(2 << 20)
model(x)
""",
    "batch second": """
batch_size = 3
Net(last=Full())(torch.zeros(6, 3, 8))
""",
}
SAME = {
    # Made directly, with what the case is to be noted as.
    "in the forward pass": ("Net()", "(x,)", {"optimizer": "sgd", "options": {"momentum": 0.9}}),
    "without gradients": ("Net()", "(x,)", {"train": False}),
    "in the backward pass": ("Net()", "(x,)", {"optimizer": "adamw"}),
    "made on the spot": ("Net()", "(x,)", {}),
    "made on the spot with a device": ("Net()", "(x,)", {}),
    "moved in the call": ("nn.Linear(8, 32)", "(x,)", {}),
    "beside the batch": ("Masked()", "(torch.zeros(6, 3, 8),)", {}),
    "with lengths": ("Words()", "(ids, lengths)", {}),
}
DIRECT = """
class Masked(Net):
    def forward(self, x):
        return super().forward(x, torch.ones(3, 3).to(x.device))
ids = torch.zeros(6, 9, dtype=torch.int64)
lengths = torch.tensor([9, 1, 5, 2, 9, 3])
"""
"""What is moved to the GPU with the batch has to be brought back for a packed sequence."""


def died(name, code):
    """What is noted of a program, and its module."""
    path = os.path.join(FOLDER, "program.py")
    with open(path, "w") as file:
        file.write(HEAD + code)
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    linecache.checkcache()
    try:
        exec(compile(HEAD + code, path, "exec"), vars(main))
    except (MemoryError, RuntimeError) as error:
        from whygpu_bootstrap.memory import frames, work

        seen = frames.frames_of(error)[1:]
        batch = vars(main).get("batch_size")
        return work.noted_work(seen, batch)
    raise AssertionError(name)


def without_last(module):
    """The layer that fails is not to fail in the estimate."""
    for part in module.modules():
        if getattr(part, "last", None) is not None:
            part.last = None
    return module


def peaks(call, examples, work, batches=(6, 6000)):
    from whygpu_work.estimates.pytorch.estimator import ModuleEstimator

    estimator = ModuleEstimator(
        without_last(call),
        examples,
        train=work["mode"] == "train",
        optimizer=work["optimizer"],
        options=work["options"],
    )
    return [estimator.at(batch)["peak_bytes"] for batch in batches]


def restored(work):
    from whygpu_work import noted

    path = os.path.join(FOLDER, "noted.json")
    with open(path, "w") as file:
        json.dump(work, file)
    return peaks(*noted.load(path), work)


def direct(name):
    made, examples, settings = SAME[name]
    names = {}
    exec(HEAD + DIRECT, names)
    if name == "with lengths":
        forward = names["Words"].forward
        names["Words"].forward = lambda self, ids, lengths: forward(self, ids, lengths.cpu())
    work = {"optimizer": None, "options": None, "mode": "train"}
    work.update({key: value for key, value in settings.items() if key != "train"})
    work["mode"] = "train" if settings.get("train", True) else "infer"
    return peaks(eval(made, names), eval(examples, names), work)


def main():
    found = {}
    for name, code in PROGRAMS.items():
        work = died(name, code)
        found[name] = {key: value for key, value in work.items() if key != "data"}
        if name in SAME:
            found[name]["peaks"] = [restored(work), direct(name)]
    print(json.dumps(found))


main()
