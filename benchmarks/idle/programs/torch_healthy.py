"""Data is in memory, and the step computes."""

import os

import torch

torch.set_num_threads(1)
torch.manual_seed(0)
CURED = "CURED" in os.environ
WIDTH = 256
model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


x, y = torch.rand(4096, WIDTH), torch.ones(4096, 1)
for step in range(400):
    start = 256 * (step % 16)
    loss = train(x[start : start + 256], y[start : start + 256])
    if step % 100 == 0:
        print(loss.item())
