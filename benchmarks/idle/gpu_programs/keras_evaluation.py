"""Each short epoch evaluates a set that is larger than the epoch."""

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
x, y = np.ones((50 * BATCH, WIDTH), "float32"), np.ones((50 * BATCH, 1), "float32")
model.fit(
    x,
    y,
    batch_size=BATCH,
    epochs=1000,
    verbose=0,
    validation_data=(np.ones((100 * BATCH, WIDTH)), np.ones((100 * BATCH, 1))),
    validation_batch_size=BATCH,
    validation_freq=2 if CURED else 1,
    callbacks=[Stop()],
)
