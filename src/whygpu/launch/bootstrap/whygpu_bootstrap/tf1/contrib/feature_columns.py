"""The feature columns of tf.contrib.layers, made of those of tf.feature_column."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["bucketized_column", "create_feature_spec_for_parsing", "crossed_column"]
__all__ += ["embedding_column", "one_hot_column", "real_valued_column"]
__all__ += ["sparse_column_with_hash_bucket", "sparse_column_with_integerized_feature"]
__all__ += ["sparse_column_with_keys", "sparse_column_with_vocabulary_file"]
__all__ += ["weighted_sparse_column"]

bucketized_column = tf.feature_column.bucketized_column
create_feature_spec_for_parsing = tf.feature_column.make_parse_example_spec


def real_valued_column(
    column_name: "Any",
    dimension: int = 1,
    default_value: "Any" = None,
    dtype: "Any" = tf.float32,
    normalizer: "Any" = None,
) -> "Any":
    if dimension is None:
        raise ValueError("dimension must be a positive number")
    return tf.feature_column.numeric_column(
        column_name, (dimension,), default_value, dtype, normalizer
    )


def sparse_column_with_hash_bucket(
    column_name: "Any",
    hash_bucket_size: "Any",
    combiner: str = "sum",
    dtype: "Any" = tf.string,
    hash_keys: "Any" = None,
) -> "Any":
    _only_sums(combiner)
    if hash_keys is not None:
        raise NotImplementedError("feature columns under --tf1 have no hash_keys")
    return tf.feature_column.categorical_column_with_hash_bucket(
        column_name, hash_bucket_size, dtype
    )


def sparse_column_with_integerized_feature(
    column_name: "Any", bucket_size: "Any", combiner: str = "sum", dtype: "Any" = tf.int64
) -> "Any":
    _only_sums(combiner)
    return tf.feature_column.categorical_column_with_identity(column_name, bucket_size)


def sparse_column_with_keys(
    column_name: "Any",
    keys: "Any",
    default_value: int = -1,
    combiner: str = "sum",
    dtype: "Any" = tf.string,
) -> "Any":
    _only_sums(combiner)
    return tf.feature_column.categorical_column_with_vocabulary_list(
        column_name, keys, dtype, default_value
    )


def sparse_column_with_vocabulary_file(
    column_name: "Any",
    vocabulary_file: "Any",
    num_oov_buckets: int = 0,
    vocab_size: "Any" = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: "Any" = tf.string,
) -> "Any":
    _only_sums(combiner)
    return tf.feature_column.categorical_column_with_vocabulary_file(
        column_name,
        vocabulary_file,
        vocab_size,
        num_oov_buckets,
        None if num_oov_buckets else default_value,
        dtype,
    )


def weighted_sparse_column(
    sparse_id_column: "Any", weight_column_name: "Any", dtype: "Any" = tf.float32
) -> "Any":
    return tf.feature_column.weighted_categorical_column(
        sparse_id_column, weight_column_name, dtype
    )


def crossed_column(
    columns: "Any",
    hash_bucket_size: "Any",
    combiner: str = "sum",
    ckpt_to_load_from: "Any" = None,
    tensor_name_in_ckpt: "Any" = None,
    hash_key: "Any" = None,
) -> "Any":
    """The bucket of a combination is not the one of TensorFlow 1, which hashed otherwise."""
    _only_sums(combiner)
    if ckpt_to_load_from is not None:
        raise NotImplementedError("feature columns under --tf1 load no checkpoint")
    keys = [
        column.key if hasattr(column, "hash_bucket_size") and hasattr(column, "key") else column
        for column in columns
    ]
    return tf.feature_column.crossed_column(keys, hash_bucket_size, hash_key)


def one_hot_column(sparse_id_column: "Any") -> "Any":
    return tf.feature_column.indicator_column(sparse_id_column)


def embedding_column(
    sparse_id_column: "Any",
    dimension: "Any",
    combiner: str = "mean",
    initializer: "Any" = None,
    ckpt_to_load_from: "Any" = None,
    tensor_name_in_ckpt: "Any" = None,
    max_norm: "Any" = None,
    trainable: bool = True,
) -> "Any":
    return tf.feature_column.embedding_column(
        sparse_id_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def _only_sums(combiner: "Any") -> None:
    if combiner not in (None, "sum"):
        raise NotImplementedError(
            "feature columns under --tf1 add up the values of a row; they have no combiner %r"
            % combiner
        )
