"""Another process computes on the same GPU."""

import os
import subprocess
import sys
import time

import torch

torch.manual_seed(0)
CURED = "CURED" in os.environ
torch.backends.cuda.matmul.allow_tf32 = True
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 4096, 4, 8192
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


OTHER = """
import torch
x = torch.rand(8192, 8192, device="cuda")
while True:
    for _ in range(20):
        x = (x @ x).clamp(-1, 1)
    torch.cuda.synchronize()
"""

x, y = torch.rand(BATCH, WIDTH, device="cuda"), torch.ones(BATCH, 1, device="cuda")
other = None if CURED else subprocess.Popen([sys.executable, "-c", OTHER])
try:
    if other is not None:
        time.sleep(6)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        train(x, y)
    torch.cuda.synchronize()
finally:
    if other is not None:
        other.kill()
        other.wait()
