import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    try:
        tf.config.set_visible_devices(gpus[1], "GPU")
    except RuntimeError as error:
        print(error)
