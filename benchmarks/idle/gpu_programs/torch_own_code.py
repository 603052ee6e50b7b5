"""Rewards are computed in a Python loop between the steps."""

import os
import time

import torch

torch.manual_seed(0)
CURED = "CURED" in os.environ
torch.backends.cuda.matmul.allow_tf32 = True
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 1024, 8, 256
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


def rewards(rows):
    if CURED:
        return (rows > 0.5).float().sum(1, keepdim=True) / WIDTH
    found = []
    for row in rows.tolist():
        total = 0
        for value in row:
            total += 1 if value > 0.5 else 0
        found.append([total / WIDTH])
    return torch.tensor(found)


rows = torch.rand(BATCH, WIDTH)
x = rows.cuda()
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    train(x, rewards(rows).cuda())
