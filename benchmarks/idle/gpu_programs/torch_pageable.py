"""Large batches are copied from ordinary memory in each step."""

import os
import time

import torch

torch.manual_seed(0)
CURED = "CURED" in os.environ
torch.backends.cuda.matmul.allow_tf32 = True
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 4096, 2, 8192
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


batches = [torch.rand(BATCH, WIDTH) for _ in range(4)]
if CURED:
    batches = [batch.pin_memory() for batch in batches]
y = torch.ones(BATCH, 1, device="cuda")
end = time.monotonic() + SECONDS
step = 0
while time.monotonic() < end:
    x = batches[step % 4].to("cuda", non_blocking=True)
    train(x, y)
    step += 1
torch.cuda.synchronize()
