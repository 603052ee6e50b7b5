import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_visible_devices(cpus, "CPU")
print(tf.config.list_physical_devices())
