"""Each sample comes from storage that takes 2 ms to answer."""

import os
import time

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


class Remote(torch.utils.data.Dataset):
    def __len__(self):
        return 1600

    def __getitem__(self, number):
        time.sleep(0.002)
        return torch.full((WIDTH,), number / 1600), torch.ones(1)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Remote(), batch_size=16, num_workers=4 if CURED else 0)
    for _ in range(2):
        for x, y in loader:
            train(x, y)
