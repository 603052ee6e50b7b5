"""A batch has eight rows: each kernel fills a small part of the GPU."""

import os
import time

import torch

torch.manual_seed(0)
CURED = "CURED" in os.environ
torch.backends.cuda.matmul.allow_tf32 = True
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 1024, 8, 8
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


rows = torch.rand(4096, WIDTH, device="cuda")
y = torch.ones(BATCH, 1, device="cuda")
end = time.monotonic() + SECONDS
step = 0
while time.monotonic() < end:
    start = (BATCH * step) % 4096
    train(rows[start : start + BATCH], y)
    step += 1
torch.cuda.synchronize()
