import os

import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
for gpu in gpus:
    tf.config.set_memory_growth(gpu, True)
