"""Epochs are short, and each starts its workers again."""

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


if __name__ == "__main__":
    data = torch.utils.data.TensorDataset(torch.rand(256, WIDTH), torch.ones(256, 1))
    loader = torch.utils.data.DataLoader(
        data, batch_size=32, num_workers=2, persistent_workers=CURED
    )
    for _ in range(60):
        for x, y in loader:
            train(x, y)
