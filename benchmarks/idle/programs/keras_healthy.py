"""Arrays in memory."""

import os

import keras
import numpy as np

CURED = "CURED" in os.environ
WIDTH = 256
model = keras.Sequential(
    [keras.Input((WIDTH,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(1)]
)
model.compile("sgd", "mse")

x, y = np.ones((25600, WIDTH), "float32"), np.ones((25600, 1), "float32")
model.fit(x, y, batch_size=256, epochs=12, verbose=2)
