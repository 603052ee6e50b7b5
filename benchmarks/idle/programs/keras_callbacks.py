"""A callback writes a long line for each batch."""

import os

import keras
import numpy as np

CURED = "CURED" in os.environ
WIDTH = 256
model = keras.Sequential(
    [keras.Input((WIDTH,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(1)]
)
model.compile("sgd", "mse")


class Log(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if CURED and batch % 10:
            return
        with open(os.devnull, "w") as file:
            for weight in self.model.get_weights():
                np.savetxt(file, weight[:20].reshape(-1, 1))


x, y = np.ones((6400, WIDTH), "float32"), np.ones((6400, 1), "float32")
model.fit(x, y, batch_size=64, epochs=2, verbose=2, callbacks=[Log()])
