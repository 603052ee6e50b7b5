"""The model is a long chain of tiny operations."""

import os
import time

import torch

torch.manual_seed(0)
CURED = "CURED" in os.environ
torch.backends.cuda.matmul.allow_tf32 = True
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 256, 4, 64
layers = [
    torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()) for _ in range(LAYERS)
]
model = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)


def train(x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


x = torch.rand(64, WIDTH, device="cuda")
y = torch.ones(64, 1, device="cuda")
scale = [torch.nn.Parameter(torch.ones(WIDTH, device="cuda")) for _ in range(40)]
optimizer = torch.optim.SGD([*model.parameters(), *scale], lr=0.0001)


def one_step():
    optimizer.zero_grad(set_to_none=False)
    hidden = x
    for factor in scale:
        hidden = torch.tanh(hidden * factor + 0.1)
    loss = torch.nn.functional.mse_loss(model(hidden), y)
    loss.backward()
    optimizer.step()


if CURED:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            one_step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        one_step()
    # Replaying the graph calls no optimizer: the step is marked by one that has nothing to do.
    idle = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    if CURED:
        graph.replay()
        idle.step()
    else:
        one_step()
torch.cuda.synchronize()
