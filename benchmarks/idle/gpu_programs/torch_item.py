"""The norm of each weight and gradient is read in every step, one after the other."""

import os
import time

import torch

torch.manual_seed(0)
CURED = "CURED" in os.environ
torch.backends.cuda.matmul.allow_tf32 = True
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 2048, 12, 8192
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
total, step = 0.0, 0
while time.monotonic() < end:
    train(x, y)
    step += 1
    for weight in model.parameters():
        norms = weight.norm(), weight.grad.norm()
        if not CURED or step % 100 == 0:
            total += norms[0].item() + norms[1].item()
print(total)
