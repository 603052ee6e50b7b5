"""The length of a batch changes all the time, and each is compiled again."""

import os

import torch
import torch._dynamo

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


torch._dynamo.config.cache_size_limit = 1000
torch._dynamo.config.recompile_limit = 1000
torch._dynamo.config.accumulated_recompile_limit = 10000


def forward(x):
    for _ in range(6):
        x = torch.tanh(model(x) + x)
    return x.mean()


fast = torch.compile(forward, backend="eager", dynamic=CURED)
for step in range(120):
    optimizer.zero_grad()
    fast(torch.rand(16 + step, WIDTH)).backward()
    optimizer.step()
