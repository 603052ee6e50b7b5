"""The loss is read in each step, but the GPU computes for so long that it does not matter."""

import os
import time

import torch

torch.manual_seed(0)
CURED = "CURED" in os.environ
torch.backends.cuda.matmul.allow_tf32 = True
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 4096, 8, 16384
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


x, y = torch.rand(BATCH, WIDTH, device="cuda"), torch.ones(BATCH, 1, device="cuda")
end = time.monotonic() + SECONDS
total = 0.0
while time.monotonic() < end:
    total += train(x, y).item()
print(total)
