"""Rewards are computed in a Python loop between the steps."""

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


def rewards(x):
    if CURED:
        return (x.abs() > 0.5).float().sum(1, keepdim=True) / WIDTH
    found = []
    for row in x.tolist():
        total = 0
        for value in row:
            total += 1 if abs(value) > 0.5 else 0
        found.append([total / WIDTH])
    return torch.tensor(found)


for _ in range(250):
    x = torch.rand(512, WIDTH)
    train(x, rewards(x))
