"""A small model with a small batch: each step is over before the next one is launched."""

import os
import time

import keras
import numpy as np

CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, LAYERS, BATCH = 128, 3, 32
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


model.compile("sgd", "mse", steps_per_execution=20 if CURED else 1)
x, y = np.ones((1000 * BATCH, WIDTH), "float32"), np.ones((1000 * BATCH, 1), "float32")
model.fit(x, y, batch_size=BATCH, epochs=1000, verbose=0, callbacks=[Stop()])
