"""The loss is read in each step, which costs nothing on a CPU."""

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


total = 0.0
x, y = torch.rand(512, WIDTH), torch.ones(512, 1)
for _ in range(300):
    total += train(x, y).item()
print(total)
