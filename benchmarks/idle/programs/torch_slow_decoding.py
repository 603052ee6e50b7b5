"""Each sample is decoded in Python, in the process that trains."""

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


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 960

    def __getitem__(self, number):
        value = number
        for _ in range(30000):
            value = (value * 1103515245 + 12345) % 2147483648
        return torch.full((WIDTH,), value / 2147483648), torch.ones(1)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=8, num_workers=2 if CURED else 0)
    for x, y in loader:
        train(x, y)
