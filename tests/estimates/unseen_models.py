"""Models for a blind test of the estimates: written before any of them was measured or estimated.

They run in a target interpreter. Those with `torch_` are PyTorch modules with example inputs, the
others are Keras models, on whichever backend is set.
"""

# mypy: ignore-errors


def keypoints():
    """Strided convolutions with batch normalisation, and a map of points as large as its input."""
    layers, inputs = _input(96, 96, 3)
    x = inputs
    for filters in (32, 64, 96):
        x = layers.Conv2D(filters, 3, 2, padding="same", use_bias=False)(x)
        x = layers.Activation("swish")(layers.BatchNormalization()(x))
    for filters in (64, 32, 16):
        x = layers.UpSampling2D()(x)
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return _compiled(inputs, layers.Conv2D(17, 1)(x))


def squeeze():
    """Channels that are weighed by what the whole picture shows."""
    layers, inputs = _input(80, 80, 3)
    x = layers.Conv2D(48, 3, padding="same", activation="relu")(inputs)
    for filters in (48, 96, 192):
        y = layers.Conv2D(filters, 3, padding="same")(x)
        y = layers.LayerNormalization()(y)
        weights = layers.GlobalAveragePooling2D()(y)
        weights = layers.Dense(filters // 8, activation="relu")(weights)
        weights = layers.Dense(filters, activation="sigmoid")(weights)
        y = layers.Multiply()([y, layers.Reshape((1, 1, filters))(weights)])
        x = layers.AveragePooling2D(2)(layers.Activation("gelu")(y))
    return _compiled(inputs, layers.Dense(20)(layers.Flatten()(x)))


def two_towers():
    """Two embeddings and their product, as in recommendations."""
    layers, inputs = _input(40, dtype="int32")
    words = layers.Embedding(60000, 64)(inputs)
    mine = layers.Dense(128, activation="relu")(layers.Flatten()(words))
    other = layers.Dense(128, activation="relu")(layers.GlobalMaxPooling1D()(words))
    return _compiled(inputs, layers.Dense(1)(layers.Multiply()([mine, other])))


def crossing():
    """Queries over a longer sequence that came from convolutions."""
    layers, inputs = _input(1024, 16)
    keys = layers.Conv1D(128, 5, 2, padding="same", activation="relu")(inputs)
    keys = layers.Conv1D(128, 5, 2, padding="same", activation="relu")(keys)
    x = layers.Conv1D(128, 16, 16)(inputs)
    for _ in range(2):
        x = layers.Add()([x, layers.MultiHeadAttention(4, 32)(x, keys)])
        x = layers.LayerNormalization()(x)
    return _compiled(inputs, layers.Dense(5)(layers.Flatten()(x)))


def encoder():
    """A transformer over words, with a mask and with dropout."""
    layers, inputs = _input(192, dtype="int32")
    x = layers.Embedding(8000, 256)(inputs)
    for _ in range(3):
        y = layers.MultiHeadAttention(8, 32, dropout=0.1)(x, x, use_causal_mask=True)
        x = layers.LayerNormalization()(layers.Add()([x, layers.Dropout(0.1)(y)]))
        y = layers.Dense(256)(layers.Dense(1024, activation="gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, layers.Dropout(0.1)(y)]))
    return _compiled(inputs, layers.Dense(4)(layers.GlobalAveragePooling1D()(x)))


def captions():
    """Convolutions in front of a recurrent layer."""
    layers, inputs = _input(160, 64, 1)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(inputs)
    x = layers.MaxPooling2D((2, 2))(x)
    x = layers.Conv2D(64, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D((2, 4))(x)
    x = layers.Reshape((40, 512))(x)
    x = layers.Bidirectional(layers.GRU(96, return_sequences=True))(x)
    return _compiled(inputs, layers.Dense(60)(x))


def tabular():
    layers, inputs = _input(300)
    x = inputs
    for _ in range(5):
        y = layers.Dense(768, activation="selu")(x)
        x = layers.Concatenate()([y, inputs])
    return _compiled(inputs, layers.Dense(3)(x))


def dilated():
    """Dilated convolutions of one size, added up."""
    layers, inputs = _input(72, 72, 4)
    x = layers.Conv2D(64, 3, padding="same")(inputs)
    kept = []
    for rate in (1, 2, 4):
        y = layers.Conv2D(64, 3, padding="same", dilation_rate=rate, activation="relu")(x)
        kept.append(y)
        x = layers.Add()([x, y])
    x = layers.Concatenate()(kept)
    return _compiled(inputs, layers.Dense(12)(layers.GlobalMaxPooling2D()(x)))


def torch_keypoints():
    torch, nn = _torch()
    parts, channels = [], 3
    for filters in (32, 64, 96):
        parts += [nn.Conv2d(channels, filters, 3, 2, 1, bias=False), nn.BatchNorm2d(filters)]
        parts += [nn.SiLU()]
        channels = filters
    for filters in (64, 32, 16):
        parts += [nn.Upsample(scale_factor=2), nn.Conv2d(channels, filters, 3, padding=1)]
        parts += [nn.ReLU()]
        channels = filters
    net = nn.Sequential(*parts, nn.Conv2d(channels, 17, 1), nn.Flatten())
    return net, torch.zeros(1, 3, 96, 96)


def torch_dilated():
    torch, nn = _torch()

    class Dilated(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(4, 64, 3, padding=1)
            self.layers = nn.ModuleList(
                nn.Conv2d(64, 64, 3, padding=rate, dilation=rate) for rate in (1, 2, 4)
            )
            self.last = nn.Linear(192, 12)

        def forward(self, x):
            x, kept = self.first(x), []
            for layer in self.layers:
                kept.append(torch.relu(layer(x)))
                x = x + kept[-1]
            return self.last(torch.cat(kept, 1).amax((2, 3)))

    return Dilated(), torch.zeros(1, 4, 72, 72)


def torch_patches():
    """A vision transformer with attention that is written out."""
    torch, nn = _torch()

    class Block(nn.Module):
        def __init__(self, size, heads):
            super().__init__()
            self.heads = heads
            self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
            self.norms = nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)])
            self.mlp = nn.Sequential(
                nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size)
            )

        def forward(self, x):
            rows, length, size = x.shape
            y = self.qkv(self.norms[0](x)).view(rows, length, 3, self.heads, size // self.heads)
            q, k, v = y.permute(2, 0, 3, 1, 4)
            weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(rows, length, size))
            return x + self.mlp(self.norms[1](x))

    class Patches(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, 192, 16, 16)
            self.blocks = nn.Sequential(*[Block(192, 6) for _ in range(4)])
            self.last = nn.Linear(192, 100)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            return self.last(self.blocks(x).mean(1))

    return Patches(), torch.zeros(1, 3, 224, 224)


def torch_decoder():
    """Attention by PyTorch's own function, with a large vocabulary."""
    torch, nn = _torch()

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(20000, 256)
            self.qkv = nn.ModuleList(nn.Linear(256, 768) for _ in range(3))
            self.mlps = nn.ModuleList(
                nn.Sequential(nn.Linear(256, 1024), nn.SiLU(), nn.Linear(1024, 256))
                for _ in range(3)
            )
            self.scores = nn.Linear(256, 20000, bias=False)

        def forward(self, x):
            x = self.words(x)
            for qkv, mlp in zip(self.qkv, self.mlps, strict=True):
                parts = qkv(x).unflatten(-1, (3, 8, 32)).permute(2, 0, 3, 1, 4)
                y = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
                x = x + y.transpose(1, 2).flatten(-2)
                x = x + mlp(x)
            return self.scores(x)

    return Decoder(), torch.zeros(1, 256, dtype=torch.int64)


def torch_captions():
    torch, nn = _torch()

    class Captions(nn.Module):
        def __init__(self):
            super().__init__()
            self.look = nn.Sequential(
                *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d((2, 4))),
            )
            self.read = nn.GRU(512, 96, bidirectional=True, batch_first=True)
            self.say = nn.Linear(192, 60)

        def forward(self, x):
            x = self.look(x).permute(0, 2, 1, 3).flatten(2)
            return self.say(self.read(x)[0])

    return Captions(), torch.zeros(1, 1, 160, 64)


def torch_squeeze():
    torch, nn = _torch()

    class Squeeze(nn.Module):
        def __init__(self, before, filters):
            super().__init__()
            self.conv = nn.Conv2d(before, filters, 3, padding=1)
            self.norm = nn.GroupNorm(8, filters)
            self.weigh = nn.Sequential(
                nn.Linear(filters, filters // 8), nn.ReLU(), nn.Linear(filters // 8, filters)
            )

        def forward(self, x):
            x = self.norm(self.conv(x))
            x = x * self.weigh(x.mean((2, 3))).sigmoid()[:, :, None, None]
            return nn.functional.avg_pool2d(nn.functional.gelu(x), 2)

    net = nn.Sequential(Squeeze(3, 48), Squeeze(48, 96), Squeeze(96, 192), nn.Flatten())
    return nn.Sequential(net, nn.Linear(192 * 10 * 10, 20)), torch.zeros(1, 3, 80, 80)


def torch_transposed():
    """From a vector to a picture, as generators do."""
    torch, nn = _torch()
    layers, channels = [nn.Linear(100, 256 * 64), nn.Unflatten(1, (256, 8, 8))], 256
    for filters in (128, 64, 32):
        layers += [nn.ConvTranspose2d(channels, filters, 4, 2, 1), nn.BatchNorm2d(filters)]
        layers += [nn.LeakyReLU(0.2, inplace=True)]
        channels = filters
    layers += [nn.Conv2d(channels, 3, 3, padding=1), nn.Tanh(), nn.Flatten()]
    return nn.Sequential(*layers), torch.zeros(1, 100)


def torch_dropped():
    """Wide layers with dropout, and a few convolutions over a long signal."""
    torch, nn = _torch()
    net = nn.Sequential(
        *(nn.Conv1d(2, 32, 15, 4, 7), nn.BatchNorm1d(32), nn.PReLU(), nn.Dropout(0.2)),
        *(nn.Conv1d(32, 64, 15, 4, 7), nn.BatchNorm1d(64), nn.PReLU(), nn.Dropout(0.2)),
        *(nn.Flatten(), nn.Linear(64 * 512, 512), nn.Softplus(), nn.Dropout(0.5)),
        nn.Linear(512, 6),
    )
    return net, torch.zeros(1, 2, 8192)


def _input(*shape, dtype="float32"):
    import keras

    return keras.layers, keras.Input(shape, dtype=dtype)


def _compiled(inputs, outputs):
    import keras

    model = keras.Model(inputs, outputs)
    model.compile("adam", "mse")
    return model


def _torch():
    import torch

    return torch, torch.nn
