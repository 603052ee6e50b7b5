"""A PyDataset loads each batch from storage that takes 20 ms to answer."""

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


class Remote(keras.utils.PyDataset):
    def __len__(self):
        return 50

    def __getitem__(self, number):
        time.sleep(0.02)
        return np.ones((BATCH, WIDTH), "float32"), np.ones((BATCH, 1), "float32")


model.fit(Remote(workers=4 if CURED else 1), epochs=1000, verbose=0, callbacks=[Stop()])
