"""A callback writes a long line for each batch."""

import os
import time

import keras
import numpy as np

CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 512, 4, 64
layers = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(LAYERS)]
model = keras.Sequential([keras.Input((WIDTH,)), *layers, keras.layers.Dense(1)])


class Stop(keras.callbacks.Callback):
    """Ends the training when its time is over; the compilation of the first step does not count."""

    end = None

    def on_train_batch_end(self, batch, logs=None):
        if self.end is None:
            self.end = time.monotonic() + SECONDS
        elif time.monotonic() > self.end:
            self.model.stop_training = True


model.compile("sgd", "mse")


class Log(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if CURED and batch % 10:
            return
        with open(os.devnull, "w") as file:
            for weight in self.model.get_weights():
                np.savetxt(file, weight[:4].reshape(-1, 1))


x, y = np.ones((100 * BATCH, WIDTH), "float32"), np.ones((100 * BATCH, 1), "float32")
model.fit(x, y, batch_size=BATCH, epochs=1000, verbose=0, callbacks=[Log(), Stop()])
