"""Each short epoch evaluates a set that is larger than the epoch."""

import os

import keras
import numpy as np

CURED = "CURED" in os.environ
WIDTH = 256
model = keras.Sequential(
    [keras.Input((WIDTH,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(1)]
)
model.compile("sgd", "mse")

x, y = np.ones((3200, WIDTH), "float32"), np.ones((3200, 1), "float32")
model.fit(
    x,
    y,
    batch_size=64,
    steps_per_epoch=25,
    epochs=10,
    verbose=2,
    validation_data=(np.ones((9600, WIDTH)), np.ones((9600, 1))),
    validation_batch_size=64,
    validation_freq=2 if CURED else 1,
)
