"""The validation set is as large as the training set, and used after each few steps."""

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


held_out = [torch.rand(256, WIDTH) for _ in range(40)]


def validate():
    with torch.no_grad():
        return sum(float(model(x).mean()) for x in held_out)


for step in range(300):
    train(torch.rand(256, WIDTH), torch.ones(256, 1))
    if step % (20 if CURED else 10) == 9:
        validate()
