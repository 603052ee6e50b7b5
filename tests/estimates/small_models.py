"""Small models of many kinds, written after the estimator: each function builds one.

They run in a target interpreter. Those with `torch_` are PyTorch modules with example inputs, the
others are Keras models, on whichever backend is set. Those with `_graph` are not compiled by XLA.
"""

# mypy: ignore-errors


def vgg():
    layers, x = _input(112, 112, 3)
    inputs = x
    for filters, count in ((64, 2), (128, 2), (256, 3)):
        for _ in range(count):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Dense(1024, activation="relu")(layers.Flatten()(x))
    return _compiled(inputs, layers.Dense(10)(x))


def resnet():
    layers, inputs = _input(128, 128, 3)
    x = layers.Conv2D(64, 7, 2, padding="same", use_bias=False)(inputs)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    for filters, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
        y = layers.Conv2D(filters, 3, stride, padding="same", use_bias=False)(x)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        y = layers.Conv2D(filters, 3, 1, padding="same", use_bias=False)(y)
        y = layers.BatchNormalization()(y)
        if stride != 1:
            past = layers.Conv2D(filters, 1, stride, use_bias=False)(x)
            x = layers.BatchNormalization()(past)
        x = layers.ReLU()(layers.Add()([x, y]))
    return _compiled(inputs, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


def bottleneck():
    layers, inputs = _input(96, 96, 3)
    x = layers.Conv2D(64, 3, 2, padding="same")(inputs)
    for filters, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2)):
        y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(filters, 1)(x)))
        y = layers.Conv2D(filters, 3, stride, padding="same")(y)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        y = layers.BatchNormalization()(layers.Conv2D(4 * filters, 1)(y))
        x = layers.ReLU()(layers.Add()([layers.Conv2D(4 * filters, 1, stride)(x), y]))
    return _compiled(inputs, layers.Dense(100)(layers.GlobalAveragePooling2D()(x)))


def mobile():
    layers, inputs = _input(128, 128, 3)
    x = layers.Conv2D(32, 3, 2, padding="same", use_bias=False)(inputs)
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)):
        x = layers.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(x)
        x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
        x = layers.Conv2D(filters, 1, use_bias=False)(x)
        x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    return _compiled(inputs, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


def unet():
    layers, x = _input(128, 128, 3)
    inputs, skipped = x, []
    for filters in (32, 64, 128):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        skipped.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(256, 3, padding="same", activation="relu")(x)
    for filters in (128, 64, 32):
        x = layers.Conv2DTranspose(filters, 3, strides=2, padding="same")(x)
        x = layers.Concatenate()([x, skipped.pop()])
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return _compiled(inputs, layers.Conv2D(4, 1)(x))


def two_convolutions():
    layers, inputs = _input(96, 96, 3)
    x = layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same")(inputs))
    x = layers.MaxPooling2D()(layers.Activation("relu")(x))
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    return _compiled(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def odd_channels():
    layers, inputs = _input(64, 64, 5)
    x = layers.Conv2D(30, 5, activation="relu")(inputs)
    x = layers.MaxPooling2D()(layers.Conv2D(50, 5, activation="relu")(x))
    x = layers.Flatten()(layers.Conv2D(70, 3, activation="relu")(x))
    return _compiled(inputs, layers.Dense(10)(layers.Dense(300, activation="relu")(x)))


def conv1d():
    layers, x = _input(4096, 8)
    inputs = x
    for filters in (64, 128, 128):
        x = layers.Conv1D(filters, 9, 2, activation="relu")(x)
    return _compiled(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def conv3d():
    layers, inputs = _input(16, 48, 48, 3)
    x = layers.Conv3D(16, 3, padding="same", activation="relu")(inputs)
    x = layers.Conv3D(32, 3, padding="same", activation="relu")(layers.MaxPooling3D()(x))
    return _compiled(inputs, layers.Dense(10)(layers.GlobalAveragePooling3D()(x)))


def densenet():
    layers, inputs = _input(96, 96, 3)
    x = layers.Conv2D(48, 3, 2, padding="same")(inputs)
    for _ in range(3):
        for _ in range(4):
            y = layers.ReLU()(layers.BatchNormalization()(x))
            y = layers.Conv2D(24, 3, padding="same", use_bias=False)(y)
            x = layers.Concatenate()([x, y])
        x = layers.AveragePooling2D(2)(layers.Conv2D(64, 1)(x))
    return _compiled(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def inception():
    layers, inputs = _input(80, 80, 3)
    x = layers.Conv2D(64, 5, 2, padding="same", activation="relu")(inputs)
    for filters in (32, 48):
        paths = [layers.Conv2D(filters, 1, activation="relu")(x)]
        for size in (3, 5):
            y = layers.Conv2D(filters, 1)(x)
            paths.append(layers.Conv2D(filters, size, padding="same", activation="relu")(y))
        paths.append(layers.Conv2D(filters, 1)(layers.MaxPooling2D(3, 1, padding="same")(x)))
        x = layers.Concatenate()(paths)
    return _compiled(inputs, layers.Dense(50)(layers.GlobalAveragePooling2D()(x)))


def separable():
    layers, inputs = _input(128, 128, 3)
    x = layers.Conv2D(32, 3, 2)(inputs)
    for filters in (64, 128, 256):
        x = layers.BatchNormalization()(layers.SeparableConv2D(filters, 3, padding="same")(x))
        x = layers.MaxPooling2D()(layers.ReLU()(x))
    return _compiled(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def autoencoder():
    layers, inputs = _input(64, 64, 3)
    x = layers.Conv2D(32, 4, 2, padding="same", activation="relu")(inputs)
    x = layers.Conv2D(64, 4, 2, padding="same", activation="relu")(x)
    x = layers.Conv2DTranspose(32, 4, 2, padding="same", activation="relu")(x)
    return _compiled(inputs, layers.Conv2DTranspose(3, 4, 2, padding="same")(x))


def wavenet():
    layers, inputs = _input(2048, 16)
    x = layers.Conv1D(64, 2, padding="causal")(inputs)
    for rate in (1, 2, 4, 8):
        gates = [
            layers.Activation(name)(layers.Conv1D(64, 2, padding="causal", dilation_rate=rate)(x))
            for name in ("tanh", "sigmoid")
        ]
        x = layers.Add()([x, layers.Conv1D(64, 1)(layers.Multiply()(gates))])
    return _compiled(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def dense():
    layers, inputs = _input(1024)
    x = layers.BatchNormalization()(layers.Dense(4096, activation="relu")(inputs))
    x = layers.Dropout(0.5)(layers.Dense(4096, activation="relu")(x))
    return _compiled(inputs, layers.Dense(1000)(x))


def wide_dense():
    layers, inputs = _input(64)
    x = layers.Dropout(0.1)(layers.Dense(16384, activation="gelu")(inputs))
    return _compiled(inputs, layers.Dense(10)(x))


def regressor():
    layers, x = _input(300)
    inputs = x
    for units in (2000, 2000, 1000):
        x = layers.Dropout(0.2)(layers.Dense(units, activation="elu")(x))
    return _compiled(inputs, layers.Dense(1)(x))


def embedding():
    layers, inputs = _input(200, dtype="int32")
    x = layers.GlobalAveragePooling1D()(layers.Embedding(100000, 128)(inputs))
    return _compiled(inputs, layers.Dense(10)(layers.Dense(256, activation="relu")(x)))


def lstm():
    layers, inputs = _input(100, dtype="int32")
    x = layers.LSTM(256, return_sequences=True)(layers.Embedding(20000, 128)(inputs))
    return _compiled(inputs, layers.Dense(10)(layers.LSTM(128)(x)))


def gru():
    layers, inputs = _input(120, 64)
    x = layers.Bidirectional(layers.GRU(192, return_sequences=True))(inputs)
    return _compiled(inputs, layers.Dense(10)(layers.GRU(192)(x)))


def tagger():
    layers, inputs = _input(80, dtype="int32")
    x = layers.Embedding(10000, 96)(inputs)
    x = layers.Conv1D(128, 5, padding="same", activation="relu")(x)
    x = layers.Bidirectional(layers.LSTM(160, return_sequences=True))(x)
    return _compiled(inputs, layers.Dense(40)(x))


def attention():
    layers, inputs = _input(256, dtype="int32")
    x = layers.Embedding(8000, 256)(inputs)
    for _ in range(3):
        attended = layers.MultiHeadAttention(8, 32, dropout=0.1)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        narrow = layers.Dense(256)(layers.Dense(1024, activation="gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, layers.Dropout(0.1)(narrow)]))
    return _compiled(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def gpt():
    layers, inputs = _input(128, dtype="int32")
    x = layers.Embedding(12000, 192)(inputs)
    for _ in range(2):
        x = _block(layers, x, use_causal_mask=True)
    return _compiled(inputs, layers.Dense(12000)(x))


def vit():
    layers, inputs = _input(64, 64, 3)
    x = layers.Reshape((64, 192))(layers.Conv2D(192, 8, 8)(inputs))
    for _ in range(4):
        x = _block(layers, x)
    return _compiled(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def _block(layers, x, **options):
    y = layers.LayerNormalization()(x)
    x = layers.Add()([x, layers.MultiHeadAttention(6, 32)(y, y, **options)])
    y = layers.LayerNormalization()(x)
    return layers.Add()([x, layers.Dense(192)(layers.Dense(768, activation="gelu")(y))])


def _input(*shape, dtype="float32"):
    import keras

    return keras.layers, keras.Input(shape, dtype=dtype)


def _compiled(inputs, outputs, **options):
    import keras

    model = keras.Model(inputs, outputs)
    model.compile("adam", "mse", **options)
    return model


def _without_xla(build):
    def graph():
        model = build()
        return _compiled(model.inputs[0], model.outputs[0], jit_compile=False)

    return graph


vgg_graph = _without_xla(vgg)
resnet_graph = _without_xla(resnet)
bottleneck_graph = _without_xla(bottleneck)
mobile_graph = _without_xla(mobile)
unet_graph = _without_xla(unet)
two_convolutions_graph = _without_xla(two_convolutions)
odd_channels_graph = _without_xla(odd_channels)
conv1d_graph = _without_xla(conv1d)
conv3d_graph = _without_xla(conv3d)
densenet_graph = _without_xla(densenet)
inception_graph = _without_xla(inception)
separable_graph = _without_xla(separable)
autoencoder_graph = _without_xla(autoencoder)
wavenet_graph = _without_xla(wavenet)
dense_graph = _without_xla(dense)
wide_dense_graph = _without_xla(wide_dense)
attention_graph = _without_xla(attention)
gpt_graph = _without_xla(gpt)
vit_graph = _without_xla(vit)
embedding_graph = _without_xla(embedding)


def torch_two_convolutions():
    return _convolutional_torch(64 * 64 * 64, _nn().MaxPool2d(2))


def torch_pooled_convolutions():
    return _convolutional_torch(64, _nn().AdaptiveAvgPool2d(1))


def _convolutional_torch(size, pool):
    import torch

    nn = torch.nn
    module = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.ReLU(),
        pool,
        nn.Flatten(),
        nn.Linear(size, 10),
    )
    return module, torch.zeros(1, 3, 128, 128)


def torch_vgg():
    import torch

    nn, layers, width = torch.nn, [], 3
    for filters, count in ((64, 2), (128, 2), (256, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(width, filters, 3, padding=1), nn.ReLU(inplace=True)]
            width = filters
        layers.append(nn.MaxPool2d(2))
    head = (nn.Flatten(), nn.Linear(256 * 14 * 14, 1024), nn.ReLU(), nn.Linear(1024, 10))
    return nn.Sequential(*layers, *head), torch.zeros(1, 3, 112, 112)


def torch_mobile():
    import torch

    nn, width = torch.nn, 32
    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False)]
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (512, 2)):
        deep = nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False)
        layers += [deep, nn.BatchNorm2d(width), nn.ReLU6(inplace=True)]
        layers.append(nn.Conv2d(width, filters, 1, bias=False))
        layers += [nn.BatchNorm2d(filters), nn.ReLU6(inplace=True)]
        width = filters
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    return nn.Sequential(*layers, *head), torch.zeros(1, 3, 160, 160)


def torch_conv1d():
    import torch

    nn = torch.nn
    module = nn.Sequential(
        nn.Conv1d(8, 64, 9, 2),
        nn.ReLU(),
        nn.Conv1d(64, 128, 9, 2),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    return module, torch.zeros(1, 8, 8192)


def torch_conv3d():
    import torch

    nn = torch.nn
    module = nn.Sequential(
        nn.Conv3d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Conv3d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    return module, torch.zeros(1, 3, 16, 64, 64)


def torch_odd_channels():
    import torch

    nn = torch.nn
    module = nn.Sequential(
        nn.Conv2d(5, 30, 5),
        nn.ReLU(),
        nn.Conv2d(30, 50, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(50, 70, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(70 * 26 * 26, 300),
        nn.ReLU(),
        nn.Linear(300, 10),
    )
    return module, torch.zeros(1, 5, 64, 64)


def torch_grouped():
    import torch

    nn = torch.nn
    module = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, padding=1, groups=8),
        nn.ReLU(),
        nn.Conv2d(128, 128, 3, padding=2, dilation=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    return module, torch.zeros(1, 3, 128, 128)


def torch_vocabulary():
    import torch

    nn = torch.nn

    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(32000, 256)
            layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2)
            self.scores = nn.Linear(256, 32000)

        def forward(self, x):
            return self.scores(self.layers(self.words(x))).flatten(0, 1)

    return Language(), torch.zeros(1, 128, dtype=torch.int64)


def _nn():
    import torch

    return torch.nn
