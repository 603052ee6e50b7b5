"""One worker waits for storage, and the step waits for the worker."""

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


class Remote(torch.utils.data.Dataset):
    def __len__(self):
        return 1000000

    def __getitem__(self, number):
        time.sleep(0.001)
        return torch.full((WIDTH,), number / 1000000), torch.ones(1)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Remote(), batch_size=16, num_workers=4 if CURED else 1)
    end = time.monotonic() + SECONDS
    for x, y in loader:
        train(x.cuda(), y.cuda())
        if time.monotonic() > end:
            break
