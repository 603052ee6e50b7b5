import keras
import tensorflow as tf

keras.backend.set_image_data_format("channels_last")
model = keras.Sequential([keras.layers.Dense(10)])
model.compile(optimizer="adam", loss="mse")
print("uses the GPU:", tf.test.is_built_with_cuda())
