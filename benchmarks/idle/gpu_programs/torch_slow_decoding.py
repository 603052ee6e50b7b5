"""Pictures are decoded in the process that trains."""

import os
import time

import torch

torch.manual_seed(0)
CURED = "CURED" in os.environ
torch.backends.cuda.matmul.allow_tf32 = True
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 1024, 8, 16
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


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 1000000

    def __getitem__(self, number):
        value = number
        for _ in range(15000):
            value = (value * 1103515245 + 12345) % 2147483648
        return torch.full((WIDTH,), value / 2147483648), torch.ones(1)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=16, num_workers=8 if CURED else 0)
    end = time.monotonic() + SECONDS
    for x, y in loader:
        train(x.cuda(), y.cuda())
        if time.monotonic() > end:
            break
