import tensorflow as tf

config = tf.ConfigProto()
config.gpu_options.allow_growth = True
total = tf.add(tf.constant(1.0), tf.constant(2.0))
with tf.Session() as session:
    print(session.run(total))
