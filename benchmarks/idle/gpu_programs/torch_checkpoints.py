"""The model is saved in every step."""

import os
import tempfile
import time

import torch

torch.manual_seed(0)
CURED = "CURED" in os.environ
torch.backends.cuda.matmul.allow_tf32 = True
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 1024, 8, 4096
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
step = 0
with tempfile.TemporaryDirectory() as folder:
    while time.monotonic() < end:
        train(x, y)
        if not CURED or step % 10 == 0:
            torch.save(model.state_dict(), os.path.join(folder, "last.pt"))
        step += 1
