"""The model is saved in every step."""

import os
import tempfile

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


big = torch.nn.Linear(1000, 1500)
with tempfile.TemporaryDirectory() as folder:
    for step in range(200):
        train(torch.rand(256, WIDTH), torch.ones(256, 1))
        if not CURED or step % 10 == 0:
            torch.save(big.state_dict(), os.path.join(folder, "last.pt"))
