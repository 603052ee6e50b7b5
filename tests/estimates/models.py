"""Models that were measured: each function builds one. They run in a target interpreter.

Those with plain names are Keras models, on whichever backend is set; the others are PyTorch
modules with example inputs.
"""

# mypy: ignore-errors


def vgg16():
    return _application("VGG16", 224)


def resnet50():
    return _application("ResNet50", 224)


def mobilenet_v2():
    return _application("MobileNetV2", 224)


def efficientnet_b0():
    return _application("EfficientNetB0", 224)


def densenet121():
    return _application("DenseNet121", 224)


def inception_v3():
    return _application("InceptionV3", 299)


def xception():
    return _application("Xception", 299)


def convnext_tiny():
    return _application("ConvNeXtTiny", 224)


def _application(name, size):
    import keras

    make = getattr(keras.applications, name)
    return _compiled(make(weights=None, input_shape=(size, size, 3)))


def _compiled(model):
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


def _classified(inputs, x):
    import keras

    return _compiled(keras.Model(inputs, keras.layers.Dense(10, activation="softmax")(x)))


def lstm():
    import keras
    from keras import layers

    inputs = keras.Input((200,), dtype="int32")
    x = layers.Embedding(20000, 128)(inputs)
    x = layers.LSTM(256, return_sequences=True)(x)
    return _classified(inputs, layers.LSTM(256)(x))


def gru():
    import keras
    from keras import layers

    inputs = keras.Input((100, 64))
    x = layers.Bidirectional(layers.GRU(192, return_sequences=True))(inputs)
    return _classified(inputs, layers.GRU(192)(x))


def transformer():
    import keras
    from keras import layers

    inputs = keras.Input((256,), dtype="int32")
    x = layers.Embedding(8000, 256)(inputs)
    for _ in range(4):
        attended = layers.MultiHeadAttention(8, 32, dropout=0.1)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        wide = layers.Dense(1024, activation="gelu")(x)
        narrow = layers.Dropout(0.1)(layers.Dense(256)(wide))
        x = layers.LayerNormalization()(layers.Add()([x, narrow]))
    return _classified(inputs, layers.GlobalAveragePooling1D()(x))


def mlp():
    import keras
    from keras import layers

    inputs = keras.Input((2048,))
    x = layers.Dense(4096, activation="relu")(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.Dense(4096, activation="relu")(x)
    return _classified(inputs, layers.Dropout(0.5)(x))


def unet():
    import keras
    from keras import layers

    x = inputs = keras.Input((256, 256, 3))
    skipped = []
    for filters in (32, 64, 128):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        skipped.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(256, 3, padding="same", activation="relu")(x)
    for filters in (128, 64, 32):
        x = layers.Conv2DTranspose(filters, 3, strides=2, padding="same")(x)
        x = layers.Concatenate()([x, skipped.pop()])
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return _classified(inputs, layers.GlobalAveragePooling2D()(layers.Conv2D(16, 1)(x)))


def torch_residual():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width_in, width, stride):
            super().__init__()
            self.first = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
            self.first_norm = nn.BatchNorm2d(width)
            self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.second_norm = nn.BatchNorm2d(width)
            self.past = nn.Identity()
            if stride != 1 or width_in != width:
                past = nn.Conv2d(width_in, width, 1, stride, bias=False)
                self.past = nn.Sequential(past, nn.BatchNorm2d(width))
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x):
            y = self.relu(self.first_norm(self.first(x)))
            return self.relu(self.second_norm(self.second(y)) + self.past(x))

    widths = ((64, 64), (64, 64), (64, 128), (128, 128), (128, 256), (256, 256), (256, 512))
    module = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        *(Block(before, width, 1 if before == width else 2) for before, width in widths),
        Block(512, 512, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, 1000),
    )
    return module, torch.zeros(1, 3, 224, 224)


def torch_encoder():
    import torch
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(8000, 512)
            layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 6)
            self.scores = nn.Linear(512, 10)

        def forward(self, x):
            return self.scores(self.layers(self.words(x)).mean(1))

    return Encoder(), torch.zeros(1, 256, dtype=torch.int64)


def torch_lstm():
    import torch
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(20000, 256)
            self.layers = nn.LSTM(256, 512, 2, batch_first=True, dropout=0.2)
            self.scores = nn.Linear(512, 10)

        def forward(self, x):
            return self.scores(self.layers(self.words(x))[0][:, -1])

    return Recurrent(), torch.zeros(1, 200, dtype=torch.int64)


def torch_mlp():
    import torch
    from torch import nn

    module = nn.Sequential(
        nn.Linear(2048, 8192),
        nn.ReLU(),
        nn.Linear(8192, 8192),
        nn.ReLU(),
        nn.Linear(8192, 10),
    )
    return module, torch.zeros(1, 2048)
