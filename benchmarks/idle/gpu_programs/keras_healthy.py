"""Small arrays in memory, and large layers."""

import os
import time

import keras
import numpy as np

CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 8192, 4, 2048
layers = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(LAYERS)]
model = keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(1)])


class Stop(keras.callbacks.Callback):
    """Ends the training when its time is over; the compilation of the first step does not count."""

    end = None

    def on_train_batch_end(self, batch, logs=None):
        if self.end is None:
            self.end = time.monotonic() + SECONDS
        elif time.monotonic() > self.end:
            self.model.stop_training = True


model.compile("sgd", "mse")
rows = 40 * BATCH
x, y = np.ones((rows, 64), "float32"), np.ones((rows, 1), "float32")
model.fit(x, y, batch_size=BATCH, epochs=1000, verbose=0, callbacks=[Stop()])
