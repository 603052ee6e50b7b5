"""PyTorch modules that do what real programs do. They run in a target interpreter."""

# mypy: ignore-errors

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ROWS, SIZE = 256, 256


class Deep(nn.Module):
    def __init__(self, checkpointed):
        super().__init__()
        self.checkpointed = checkpointed
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(SIZE, 4 * SIZE), nn.GELU(), nn.Linear(4 * SIZE, SIZE))
            for _ in range(8)
        )

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return x


def deep():
    return Deep(False), torch.zeros(1, ROWS, SIZE)


def checkpointed():
    return Deep(True), torch.zeros(1, ROWS, SIZE)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5000, SIZE)
        self.scores = nn.Linear(SIZE, 5000, bias=False)
        self.scores.weight = self.words.weight

    def forward(self, x):
        return self.scores(self.words(x))


def tied():
    return Tied(), torch.zeros(1, 16, dtype=torch.int64)


def many_scores():
    return nn.Linear(16, 20000), torch.zeros(1, ROWS, 16)


class Graph(nn.Module):
    """Each node has eight edges."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(SIZE, SIZE)

    def forward(self, nodes, sources, targets):
        sent = self.layer(nodes)[sources]
        return torch.zeros_like(nodes).index_add(0, targets, sent * sent)


def graph():
    ends = torch.zeros(400, dtype=torch.int64)
    return Graph(), (torch.zeros(50, SIZE), ends, ends)


class OnItsDevice(nn.Module):
    """Makes its constants where it thinks that the GPU is."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(SIZE, 8).to(DEVICE)
        self.scale = torch.ones(SIZE).to(DEVICE)

    def forward(self, x):
        return self.layer(x * self.scale + torch.zeros(SIZE, device=DEVICE))


def on_its_device():
    return OnItsDevice(), torch.zeros(1, SIZE)


def insists_on_cuda():
    return nn.Linear(SIZE, 8).cuda(), torch.zeros(1, SIZE, device="cuda")


class Asks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(SIZE, 8)

    def forward(self, x):
        y = self.layer(x)
        return y * 0 if torch.isnan(y).any() else y


def asks():
    return Asks(), torch.zeros(1, SIZE)


class Picks(Asks):
    def forward(self, x):
        return self.layer(x[x[:, 0] > 0])


def picks():
    return Picks(), torch.zeros(1, SIZE)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(SIZE, 3 * SIZE)

    def forward(self, x):
        parts = self.layer(x).chunk(3, -1)
        heads = [part.unflatten(-1, (4, -1)).transpose(1, 2) for part in parts]
        return nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)


def attention():
    return Attention(), torch.zeros(1, 1024, SIZE)


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(SIZE, 128, 2, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        return nn.utils.rnn.pad_packed_sequence(self.layer(packed)[0], batch_first=True)[0]


def packed():
    return Packed(), (torch.zeros(1, 64, SIZE), torch.tensor([64]))


def without_examples():
    return nn.Linear(SIZE, 8)


def without_weights():
    return nn.ReLU(), torch.zeros(1, SIZE)


def small_keras_model():
    import keras

    layers = keras.layers
    return keras.Sequential(
        [keras.Input((32, 32, 3)), layers.Conv2D(64, 3), layers.Flatten(), layers.Dense(10)]
    )


class Loops(nn.Module):
    """As often as its input says."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(64, 64)

    def forward(self, x):
        for _ in range(int(x.abs().sum().item()) % 7 + 1):
            x = torch.relu(self.dense(x))
        return x


def loops():
    return Loops(), torch.randn(8, 1024, 64)


class Checks(nn.Module):
    """It stops at values that are no numbers, and logs a value."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(512, 512)
        self.largest = 0.0

    def forward(self, x):
        if torch.isnan(x).any():
            raise ValueError("not a number")
        self.largest = float(x.max())
        return self.dense(x)


def checks():
    return Checks(), torch.randn(8, 512)


class ManySteps(nn.Module):
    """A loop as long as its data say, in front of a layer that takes more memory."""

    def __init__(self, first):
        super().__init__()
        self.first = first
        self.small, self.large = nn.Linear(8, 8), nn.Linear(8, 65536)

    def forward(self, x):
        for _ in range(int(x.max()) // self.first):
            x = torch.relu(self.small(x))
        return self.large(x)


def hidden_loop():
    return ManySteps(1), torch.randn(8, 8)


def far_loop():
    """Its numbers have to be large."""
    return ManySteps(50), torch.randn(8, 8)


class UntilDone(nn.Module):
    def __init__(self, done):
        super().__init__()
        self.dense, self.done = nn.Linear(64, 64), done

    def forward(self, x):
        while bool(x.sum() > 0) != self.done:
            x = torch.relu(self.dense(x))
        return self.dense(x)


def while_false():
    return UntilDone(True), torch.randn(8, 64)


def while_true():
    return UntilDone(False), torch.randn(8, 64)


class ManyResults(nn.Module):
    """Returns copies of its scores besides."""

    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(64, 4000)

    def forward(self, x):
        scores = self.scores(x)
        return scores, scores.detach().double(), scores.detach().double()


def many_results():
    return ManyResults(), (torch.zeros(2, 256, 64),)
