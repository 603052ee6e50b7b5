# mypy: ignore-errors
"""Losses of loops in PyTorch, JAX and TensorFlow, whole and in micro-batches; prints JSON."""

from __future__ import annotations

import json
import sys

import numpy as np

import whygpu
from whygpu.errors import UsageError

SAMPLES, MICRO = 13, 4
made = np.random.default_rng(0)
X = made.normal(size=(SAMPLES, 6)).astype("float32")
Y = made.normal(size=(SAMPLES, 3)).astype("float32")
CHOSEN = made.integers(0, 2, size=SAMPLES).astype("float32")
INNER = made.normal(size=(6, 8)).astype("float32")
OUTER = made.normal(size=(8, 3)).astype("float32")


def gap(one, other):
    return max(
        float(np.max(np.abs(np.asarray(a) - np.asarray(b))))
        for a, b in zip(one, other, strict=True)
    )


def size(arrays):
    return max(float(np.max(np.abs(np.asarray(array)))) for array in arrays)


# --- PyTorch


def torch_cases():
    import torch
    from torch import nn
    from torch.nn.functional import mse_loss

    x, y, chosen = torch.tensor(X), torch.tensor(Y), torch.tensor(CHOSEN)

    def model_of(*inner):
        torch.manual_seed(0)
        first, last = nn.Linear(6, 8), nn.Linear(8, 3)
        return nn.Sequential(first, nn.Tanh(), *(make() for make in inner), last)

    def between(out):
        return torch.logsumexp(out @ out.T, 1).mean()

    def over_chosen(out, y, chosen):
        return (((out - y) ** 2).sum(1) * chosen).sum() / chosen.sum()

    losses = {
        "mean": lambda m: lambda x, y, c: mse_loss(m(x), y),
        "sum": lambda m: lambda x, y, c: mse_loss(m(x), y, reduction="sum"),
        "between samples": lambda m: lambda x, y, c: between(m(x)),
        "over chosen": lambda m: lambda x, y, c: over_chosen(m(x), y, c),
    }

    def compared(loss, *inner, weight=None, earlier=False, scale=1.0, **options):
        told = []
        for guarded in (False, True):
            model = model_of(*inner)
            of = loss(model)
            if earlier:
                of(x, y, chosen).backward()
            if not guarded:
                value = of(x, y, chosen)
                (value * scale).backward()
            else:
                guard = whygpu.oom_guard(model, micro_batch=MICRO, **options)
                try:
                    value = guard.backward(scaled(of, scale), x, y, chosen, weight=weight) / scale
                except UsageError as error:
                    kept = [p.grad for p in model.parameters()]
                    return {"refused": str(error), "clean": all(g is None for g in kept)}
            told.append([value.detach(), *(p.grad for p in model.parameters())])
        buffers = [b.clone() for b in model.buffers()]
        return {
            "gap": gap(*told),
            "size": size(told[0]),
            "differences": guard.report.differences,
            "in_parts": guard.report.steps_in_parts,
            "buffers": [b.tolist() for b in buffers],
        }

    def scaled(loss, scale):
        if scale == 1.0:
            return loss
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        return lambda *batch: scaler.scale(loss(*batch))

    def in_bfloat16(loss):
        def of(model):
            def cast(*batch):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    return loss(model)(*batch)

            return cast

        return of

    def norm():
        return nn.BatchNorm1d(8)

    def running_mean():
        model = model_of(norm)
        mse_loss(model(x), y)
        return [b.tolist() for b in model.buffers()]

    def later_data():
        """Parts count alike in the first step, and not in the second."""
        model = model_of()
        guard = whygpu.oom_guard(model, micro_batch=MICRO)
        loss = losses["over chosen"](model)
        guard.backward(loss, x, y, torch.ones(SAMPLES))
        try:
            guard.backward(loss, x, y, chosen)
        except UsageError as error:
            return str(error)
        return ""

    def strangers():
        model, stranger = model_of(), torch.zeros(3, requires_grad=True)

        class Failing(torch.autograd.Function):
            @staticmethod
            def forward(context, value):
                return value.clone()

            @staticmethod
            def backward(context, gradient):
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")

        def loss(x, y):
            return mse_loss(Failing.apply(model(x)) + stranger, y)

        try:
            whygpu.oom_guard(model).backward(loss, x, y)
        except UsageError as error:
            return str(error)
        return ""

    def steps_within_backward():
        model = model_of()
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(lambda p: p.data.sub_(0.1 * p.grad))
        before = [p.clone() for p in model.parameters()]
        try:
            whygpu.oom_guard(model, micro_batch=MICRO).backward(losses["mean"](model), x, y, chosen)
        except UsageError as error:
            kept = all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
            return {"refused": str(error), "clean": kept}
        return {"refused": "", "clean": True}

    def many_processes():
        from torch.testing._internal.distributed.fake_pg import FakeStore

        torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
        try:
            whygpu.oom_guard(model_of()).backward(losses["mean"](model_of()), x, y, chosen)
        except UsageError as error:
            return str(error)
        finally:
            torch.distributed.destroy_process_group()
        return ""

    def by_chosen(x, y, chosen):
        return chosen.sum()

    return {
        "same": {
            "mean": compared(losses["mean"]),
            "sum": compared(losses["sum"]),
            "weighed": compared(losses["over chosen"], weight=by_chosen),
            "earlier gradients": compared(losses["mean"], earlier=True),
            "scaled": compared(losses["mean"], scale=1024.0),
            "a mean, unchecked": compared(losses["mean"], check=False),
        },
        "refused": {
            "between samples": compared(losses["between samples"]),
            "over chosen": compared(losses["over chosen"]),
            "exact": compared(losses["mean"], norm, exact=True),
            "over chosen, in bfloat16": compared(in_bfloat16(losses["over chosen"])),
            "steps within backward": steps_within_backward(),
        },
        "in bfloat16": compared(in_bfloat16(losses["mean"])),
        "norm": compared(losses["mean"], norm),
        "running": running_mean(),
        "dropout": compared(losses["mean"], nn.Dropout),
        "later data": later_data(),
        "strangers": strangers(),
        "many processes": many_processes(),
    }


# --- JAX


def jax_cases():
    import jax
    import jax.numpy as jnp

    params = {"inner": jnp.asarray(INNER), "outer": jnp.asarray(OUTER)}

    def out(p, x):
        return jnp.tanh(x @ p["inner"]) @ p["outer"]

    def mean(p, x, y, c):
        return ((out(p, x) - y) ** 2).mean()

    def total(p, x, y, c):
        return ((out(p, x) - y) ** 2).sum()

    def between(p, x, y, c):
        z = out(p, x)
        return jax.nn.logsumexp(z @ z.T, axis=1).mean()

    def over_chosen(p, x, y, c):
        return (((out(p, x) - y) ** 2).sum(1) * c).sum() / c.sum()

    def dropped(p, x, y, c, key):
        h = jnp.tanh(x @ p["inner"])
        h = h * jax.random.bernoulli(key, 0.5, h.shape)
        return ((h @ p["outer"] - y) ** 2).mean()

    def with_aux(p, x, y, c):
        z = out(p, x)
        told = {"rows": z, "mean": jnp.abs(z).mean(), "count": (z > 0).sum(), "same": jnp.int32(3)}
        return ((z - y) ** 2).mean(), told

    def odd_aux(p, x, y, c):
        return mean(p, x, y, c), jnp.abs(out(p, x)).max()

    def in_bfloat16(p, x, y, c):
        p, x = jax.tree.map(lambda leaf: leaf.astype("bfloat16"), (p, jnp.asarray(x)))
        return ((out(p, x).astype("float32") - y) ** 2).mean()

    def compared(loss, *more, has_aux=False, check=True, **options):
        guard = whygpu.oom_guard(micro_batch=MICRO, check=check)
        arguments = (params, X, Y, CHOSEN, *more)
        try:
            given = guard.value_and_grad(loss, has_aux=has_aux, **options)(*arguments)
        except UsageError as error:
            return {"refused": str(error), "clean": True}
        expected = jax.value_and_grad(loss, has_aux=has_aux)(*arguments)
        assert jax.tree.structure(given) == jax.tree.structure(expected)
        one, other = jax.tree.leaves(given), jax.tree.leaves(expected)
        return {
            "gap": gap(one, other),
            "size": size(other),
            "differences": guard.report.differences,
            "in_parts": guard.report.steps_in_parts,
        }

    def inside_jit():
        try:
            jax.jit(whygpu.oom_guard().value_and_grad(mean))(params, X, Y, CHOSEN)
        except UsageError as error:
            return str(error)
        return ""

    return {
        "same": {
            "mean": compared(mean),
            "sum": compared(total),
            "weighed": compared(over_chosen, weight=lambda x, y, c: c.sum()),
            "auxiliary": compared(with_aux, has_aux=True),
        },
        "refused": {
            "between samples": compared(between),
            "over chosen": compared(over_chosen),
            "auxiliary": compared(odd_aux, has_aux=True),
            "raw key": compared(dropped, jax.random.PRNGKey(0), batch_argnums=(1, 2, 3)),
            "rows": compared(dropped, jax.random.PRNGKey(0)),
        },
        "in bfloat16": compared(in_bfloat16),
        "dropout": compared(dropped, jax.random.key(0)),
        "inside jit": inside_jit(),
    }


# --- TensorFlow


def tensorflow_cases():
    import tensorflow as tf

    inner, outer = tf.Variable(INNER), tf.Variable(OUTER)
    words = tf.Variable(INNER.T)
    calls = tf.Variable(0, trainable=False, name="calls")
    x, y, chosen = tf.constant(X), tf.constant(Y), tf.constant(CHOSEN)
    ids = tf.constant([row % 8 for row in range(SAMPLES)])

    def out(x):
        return tf.tanh(x @ inner) @ outer

    def mean(x, y, c):
        return tf.reduce_mean((out(x) - y) ** 2)

    def total(x, y, c):
        return tf.reduce_sum((out(x) - y) ** 2)

    def between(x, y, c):
        z = out(x)
        return tf.reduce_mean(tf.reduce_logsumexp(z @ tf.transpose(z), axis=1))

    def over_chosen(x, y, c):
        return tf.reduce_sum(tf.reduce_sum((out(x) - y) ** 2, 1) * c) / tf.reduce_sum(c)

    def dropped(x, y, c):
        return tf.reduce_mean((tf.nn.dropout(tf.tanh(x @ inner), 0.5) @ outer - y) ** 2)

    def embedded(ids, y, c):
        return tf.reduce_mean((tf.gather(words, ids) @ inner @ outer - y) ** 2)

    def counting(x, y, c):
        calls.assign_add(1)
        return mean(x, y, c)

    def in_bfloat16(x, y, c):
        z = tf.tanh(tf.cast(x, "bfloat16") @ tf.cast(inner, "bfloat16"))
        return tf.reduce_mean((tf.cast(z @ tf.cast(outer, "bfloat16"), "float32") - y) ** 2)

    def compared(loss, weight=None, x=x, variables=(inner, outer), **options):
        guard = whygpu.oom_guard(micro_batch=MICRO, **options)
        before = int(calls)
        try:
            given = guard.gradients(loss, variables, weight=weight)(x, y, chosen)
        except UsageError as error:
            return {"refused": str(error), "clean": int(calls) == before}
        with tf.GradientTape() as tape:
            value = loss(x, y, chosen)
        expected = [value, *tape.gradient(value, variables)]
        told = [tf.convert_to_tensor(each).numpy() for each in (given[0], *given[1])]
        expected = [tf.convert_to_tensor(each).numpy() for each in expected]
        return {
            "gap": gap(told, expected),
            "size": size(expected),
            "differences": guard.report.differences,
            "in_parts": guard.report.steps_in_parts,
        }

    def fails_late(loss):
        """The whole batch fails after it has changed a variable; so does a check of two rows."""
        failures = []

        def failing(x, y, c):
            calls.assign_add(1)
            found = mean(x, y, c)

            def fail(rows):
                failures.append(int(rows))
                if rows > 7:
                    raise MemoryError("Unable to allocate 2.00 GiB for an array")
                return rows

            with tf.control_dependencies([tf.py_function(fail, [tf.shape(x)[0]], tf.int32)]):
                return tf.identity(found)

        before = int(calls)
        guard = whygpu.oom_guard()
        guard.gradients(failing, [inner, outer])(x, y, chosen)
        return {
            "calls": int(calls) - before,
            "parts": guard.report.cuts[0].micro_batches,
            "differences": guard.report.differences,
        }

    def inside_function():
        try:
            tf.function(whygpu.oom_guard().gradients(mean, [inner]))(x, y, chosen)
        except Exception as error:
            # TensorFlow puts an exception of its own around it.
            return str(error)
        return ""

    return {
        "same": {
            "mean": compared(mean),
            "sum": compared(total),
            "weighed": compared(over_chosen, weight=lambda x, y, c: tf.reduce_sum(c)),
            "rows of an embedding": compared(embedded, x=ids, variables=(words, inner)),
            "no part in the loss": compared(embedded, x=ids, variables=(words,)),
            "a mean, unchecked": compared(mean, check=False),
        },
        "refused": {
            "between samples": compared(between),
            "over chosen": compared(over_chosen),
            "exact": compared(counting, exact=True),
            "a loss per sample": compared(lambda x, y, c: (out(x) - y) ** 2),
        },
        "in bfloat16": compared(in_bfloat16),
        "dropout": compared(dropped),
        "fails late": fails_late(mean),
        "inside a graph": inside_function(),
    }


if __name__ == "__main__":
    made_by = {"torch": torch_cases, "jax": jax_cases, "tensorflow": tensorflow_cases}
    print(json.dumps(made_by[sys.argv[1]]()))
