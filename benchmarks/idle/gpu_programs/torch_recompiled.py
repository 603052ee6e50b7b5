"""The length of a batch changes all the time, and each is compiled again."""

import os
import time

import torch
import torch._dynamo

torch.manual_seed(0)
CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH = 512
layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH)]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch._dynamo.config.cache_size_limit = 10000
torch._dynamo.config.recompile_limit = 10000
torch._dynamo.config.accumulated_recompile_limit = 10000


def forward(x):
    for _ in range(6):
        x = torch.tanh(model(x) + x)
    return x.mean()


fast = torch.compile(forward, backend="eager", dynamic=CURED)
fast(torch.rand(16, WIDTH, device="cuda")).backward()
end = time.monotonic() + SECONDS
step = 0
while time.monotonic() < end:
    optimizer.zero_grad()
    fast(torch.rand(17 + step % 500, WIDTH, device="cuda")).backward()
    optimizer.step()
    step += 1
torch.cuda.synchronize()
