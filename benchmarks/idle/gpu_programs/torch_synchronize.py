"""torch.cuda.synchronize() was left in after each part of the step."""

import os
import time

import torch

torch.manual_seed(0)
CURED = "CURED" in os.environ
torch.backends.cuda.matmul.allow_tf32 = True
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 2048, 12, 8192
layers = [
    torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()) for _ in range(LAYERS)
]
model = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001, foreach=False)


def wait():
    if not CURED:
        torch.cuda.synchronize()


x, y = torch.rand(BATCH, WIDTH, device="cuda"), torch.ones(BATCH, 1, device="cuda")
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    wait()
    loss.backward()
    wait()
    optimizer.step()
    wait()
torch.cuda.synchronize()
