"""The answer for recorded profiles: shares, the verdict, and what is not claimed."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.cases import each
from tests.profiling import made
from whygpu.model.profile import (
    Category,
    CodePlace,
    FrameworkProfile,
    ProcessProfile,
    ProfileAnswer,
    ProfileOptions,
    ProgramFunction,
    StageTime,
    StepMarks,
    WorkerUse,
)
from whygpu.profiling.judge import judged
from whygpu.render.profile_text import render


def answer(profile: ProcessProfile, *, on_gpu: bool = False) -> ProfileAnswer:
    return judged([profile], ProfileOptions(), on_gpu=on_gpu)


def test_time_is_divided_as_it_was_sampled() -> None:
    found = answer(made.profile([(made.COMPUTING, 3), (made.ONE_PROCESS, 7)]))
    assert found.verdict == "waiting"
    assert found.total("input") == pytest.approx(0.7, abs=0.01)
    assert found.total("computing") == pytest.approx(0.3, abs=0.01)
    assert sum(share.share for share in found.shares) == pytest.approx(1)
    assert found.headline == (
        "The program computed for 30 % of the time. It waited for input for 70 %."
    )


def test_an_input_names_the_loop_and_the_line_that_works() -> None:
    found = answer(made.profile([(made.COMPUTING, 3), (made.ONE_PROCESS, 7)]))
    share = found.shares[0]
    assert share.where is not None
    assert share.where.line == 20
    assert share.inside is not None
    assert share.inside.text == "decode(path)"
    assert share.detail == "the DataLoader has no worker processes"


def test_a_program_that_computes_is_not_told_what_to_change() -> None:
    found = answer(made.profile([(made.COMPUTING, 19), (made.ONE_PROCESS, 1)]))
    assert found.verdict == "computing"
    assert found.gains == ()
    assert "nothing else takes a noticeable share" in found.headline


TELLING = (
    CodePlace("library", "keras/src/callbacks/callback_list.py", "on_train_batch_end", 160),
    CodePlace("library", "keras/src/backend/jax/trainer.py", "fit", 480),
    CodePlace("program", "/home/me/train.py", "<module>", 23, "model.fit(x, y)"),
)
PREDICTS = CodePlace(
    "program", "/home/me/train.py", "on_epoch_end", 12, "self.model.predict(x, verbose=0)"
)
WRAPPER = CodePlace("library", "keras/src/utils/traceback_utils.py", "error_handler", 117)
TENSORBOARD = CodePlace("library", "keras/src/callbacks/tensorboard.py", "on_train_batch_end", 9)
FORKING = (
    CodePlace("standard", "logging/__init__.py", "_releaseLock", 237),
    CodePlace("standard", "multiprocessing/popen_fork.py", "_launch", 66),
    CodePlace("library", "torch/utils/data/dataloader.py", "__init__", 1176),
    made.LOOP,
)
COPYING = (
    CodePlace("library", "torch/_tensor.py", "__deepcopy__", 120),
    CodePlace("standard", "copy.py", "deepcopy", 144),
    CodePlace("standard", "copy.py", "_deepcopy_dict", 221),
    CodePlace("standard", "copy.py", "deepcopy", 137),
)
AVERAGING = CodePlace("library", "torch/optim/swa_utils.py", "__init__", 230)
KINDS: dict[str, tuple[tuple[CodePlace, ...], Category]] = {
    "a function for batches": (made.own("load_batch"), "input"),
    "a generator": (made.own("numbers", generator=True), "input"),
    "validation": (made.own("validate"), "evaluation"),
    "a test set": (made.own("run_test"), "evaluation"),
    "a development set": (made.own("dev_step"), "evaluation"),
    "a device": (made.own("copy_to_dev"), "program"),
    "saving by name": (made.own("write_checkpoint"), "checkpointing"),
    "own code": (made.own("rewards"), "program"),
    "copying a model": ((*COPYING, made.LOOP), "program"),
    "a framework that copies a model": ((*COPYING, AVERAGING, made.LOOP), "computing"),
    "showing data": (made.own("plot_batch"), "program"),
    "print": (made.calling("builtins.print"), "logging"),
    "torch.save": (made.calling("torch.save"), "checkpointing"),
    "a hook of a trainer": (made.own("on_train_batch_end"), "program"),
    "numpy": (made.calling("numpy.random.rand"), "program"),
    "a matrix product": (made.calling("torch.matmul"), "computing"),
    "a jitted function": (made.calling("jaxlib._jax.PjitFunction"), "computing"),
    "a copy": (made.calling("torch.Tensor.to"), "copies"),
    "a callback of the program": (made.own("on_train_batch_end")[:1] + TELLING, "logging"),
    "the end of predict()": ((WRAPPER, PREDICTS, *TELLING), "evaluation"),
    "the end of another method": (
        (WRAPPER, PREDICTS._replace(text="self.model.save_all(x)"), *TELLING),
        "logging",
    ),
    "telling callbacks": (TELLING, "computing"),
    "TensorBoard's callback": ((TENSORBOARD, *TELLING), "logging"),
    "starting a worker": (FORKING, "input"),
    "something unknown": (made.calling("?"), "unknown"),
}


@each("name", KINDS)
def test_stacks_have_the_kind_of_what_they_do(name: str) -> None:
    stack, category = KINDS[name]
    found = answer(made.profile([(made.COMPUTING, 5), (stack, 5)]))
    expected = 1.0 if category == "computing" else 0.5
    assert found.total(category) == pytest.approx(expected, abs=0.02)


def test_waiting_for_a_value_counts_as_computing_without_a_gpu() -> None:
    profile = made.profile([(made.COMPUTING, 5), (made.calling("jaxlib._jax.ArrayImpl.item"), 5)])
    assert answer(profile).total("synchronisation") == 0
    assert answer(profile).verdict == "computing"
    assert answer(profile, on_gpu=True).total("synchronisation") == pytest.approx(0.5, abs=0.02)


def test_reading_values_that_the_cpu_has_computed_is_work_of_the_program() -> None:
    """On a CPU, PyTorch computes at once. So a program that is often found there reads many."""
    profile = made.profile([(made.COMPUTING, 5), (made.calling("torch.Tensor.item"), 5)])
    assert answer(profile).total("program") == pytest.approx(0.5, abs=0.02)
    assert answer(profile, on_gpu=True).total("synchronisation") == pytest.approx(0.5, abs=0.02)


def test_what_overlaps_with_a_gpu_is_not_called_a_bottleneck() -> None:
    item = made.calling("torch.Tensor.item")
    alone = answer(made.profile([(made.COMPUTING, 2), (item, 8)]), on_gpu=True)
    assert alone.verdict == "computing"
    assert "GPU" in alone.headline
    starved = answer(made.profile([(made.ONE_PROCESS, 9), (made.COMPUTING, 1)]), on_gpu=True)
    assert starved.verdict == "unclear"
    assert starved.headline == (
        "What takes the time is not clear: it waited for input for 90 %, but whether the GPU "
        "computed meanwhile was not measured."
    )
    assert starved.gains == ()


def test_a_function_that_contains_the_training_is_no_evaluation() -> None:
    test = CodePlace("program", "/home/me/train.py", "test_everything", 2, "loss.backward()")
    found = answer(made.profile([((made.BACKWARD, test), 10)]))
    assert found.total("evaluation") == 0
    assert found.verdict == "computing"


def test_an_evaluate_that_each_step_calls_is_a_part_of_the_step() -> None:
    """As in reinforcement learning, where policy.evaluate() gives what the loss is made of."""
    forward = CodePlace("library", "torch/nn/modules/module.py", "_call_impl", 1700)
    evaluating = (forward, *made.own("evaluate"))
    found = answer(made.profile([(evaluating, 4), (made.COMPUTING, 6)]))
    assert found.total("computing") == pytest.approx(1, abs=0.02)
    assert found.gains == ()
    (note,) = (note for note in found.notes if "evaluate()" in note)
    assert note == (
        "evaluate() in train.py is called in each step, so it counts as a part of the step, not as "
        "evaluation"
    )


def test_an_evaluate_that_some_steps_call_is_an_evaluation() -> None:
    """Whether or not its steps have a sample of it: here, two of three steps do not call it."""
    rare = made.profile(
        [(made.COMPUTING, 6), (made.own("evaluate"), 6), (made.COMPUTING, 12)], steps=60
    )
    marks = rare.marks[0]
    every = [end - made.PERIOD * 6 * part for end in marks.times for part in (2, 1, 0)]
    rare = rare._replace(marks=(marks._replace(seen=len(every), times=tuple(every)),))
    found = answer(rare)
    assert found.total("evaluation") == pytest.approx(0.25, abs=0.02)
    assert not any("evaluate()" in note for note in found.notes)


def test_of_a_line_with_two_statements_the_one_that_took_long_is_shown() -> None:
    step = [
        (made.COMPUTING, 6),
        (made.calling("time.sleep", "time.sleep(1)", 40), 4),
        (made.calling("", "model(a_long_name).sum().backward()", 40), 1),
    ]
    (shown,) = (
        share.where for share in answer(made.profile(step)).shares if share.category == "program"
    )
    assert shown is not None
    assert shown.text == "time.sleep(1)"


def test_an_estimate_of_the_loss_is_an_evaluation() -> None:
    step = [(made.COMPUTING, 6), (made.own("estimate_loss"), 4)]
    assert answer(made.profile(step)).total("evaluation") == pytest.approx(0.4, abs=0.02)
    step = [(made.COMPUTING, 6), (made.own("estimate_depth"), 4)]
    assert answer(made.profile(step)).total("evaluation") == 0


def test_no_pipeline_is_offered_for_arrays_in_memory() -> None:
    """Keras makes the batches of them, in its own code or in a pipeline of tf.data."""
    fit = CodePlace("program", "/home/me/train.py", "<module>", 9, "model.fit(x, y)")
    slicing = CodePlace("library", "keras/src/trainers/data_adapters/array_slicing.py", "get", 7)
    python = answer(made.profile([(made.COMPUTING, 6), ((slicing, fit), 4)], key="keras fit"))
    assert python.total("input") == pytest.approx(0.4, abs=0.02)
    assert python.gains == ()

    step = CodePlace("library", "tensorflow/python/eager/context.py", "call_function", 7)
    making = CodePlace(
        "library", "keras/src/trainers/data_adapters/array_data_adapter.py", "get_tf_dataset", 9
    )
    compiled = made.profile([((step, fit), 10)], key="keras fit")._replace(
        framework=FrameworkProfile(1.0, 0.4, (StageTime("ParallelMapV2", 0.4),))
    )
    assert answer(compiled).gains
    of_arrays = answer(compiled._replace(places=(*compiled.places, making)))
    assert of_arrays.total("input") == pytest.approx(0.4, abs=0.02)
    assert of_arrays.gains == ()
    recorded = compiled._replace(data_adapters=("ArrayDataAdapter",))
    assert answer(recorded).gains == ()
    mixed = compiled._replace(data_adapters=("ArrayDataAdapter", "TFDatasetAdapter"))
    assert answer(mixed._replace(places=(*compiled.places, making))).gains


@pytest.mark.parametrize(
    ("adapter", "share", "verdict"),
    [
        ("ArrayDataAdapter", 0.25, "computing"),
        ("ArrayDataAdapter", 0.5, "waiting"),
        ("TFDatasetAdapter", 0.25, "waiting"),
    ],
)
def test_what_arrays_in_memory_cost_a_short_step_is_no_bottleneck(
    adapter: str, share: float, verdict: str
) -> None:
    fit = CodePlace("program", "/home/me/train.py", "<module>", 9, "model.fit(x, y)")
    step = CodePlace("library", "tensorflow/python/eager/context.py", "call_function", 7)
    recorded = made.profile([((step, fit), 10)], key="keras fit")._replace(
        framework=FrameworkProfile(1.0, share), data_adapters=(adapter,)
    )
    assert answer(recorded).verdict == verdict


def test_what_comes_after_the_last_step_is_mentioned() -> None:
    """Such as the evaluation of the only epoch, which no step follows."""
    steps = made.profile([(made.COMPUTING, 10)], steps=40)
    later = made.profile([(made.own("validate"), 10)], steps=40)
    moved = len(steps.places)
    both = steps._replace(
        seconds=steps.seconds + later.seconds,
        places=steps.places + later.places,
        stacks=(*steps.stacks, tuple(place + moved for place in later.stacks[0])),
        times=steps.times + tuple(steps.seconds + time for time in later.times[1:]),
        stack_of=steps.stack_of + (len(steps.stacks),) * (len(later.times) - 1),
        thread_seconds=steps.thread_seconds + later.thread_seconds[1:],
        process_seconds=steps.process_seconds + later.process_seconds[1:],
    )
    found = answer(both)
    assert found.total("evaluation") == 0
    assert found.after_seconds == pytest.approx(later.seconds, abs=0.02)
    assert found.after_mainly == "evaluation"
    said = " ".join(render(found).split())
    assert "2.0 s after them are not counted, most of it evaluation" in said
    assert "after them" not in render(answer(steps))


def test_a_fork_is_not_called_logging() -> None:
    """It takes the locks of logging."""
    fork = CodePlace("program", "/home/me/train.py", "<module>", 30, "os.fork()", "posix.fork")
    lock = CodePlace("standard", "logging/__init__.py", "_acquireLock", 220)
    handle = CodePlace("standard", "logging/__init__.py", "handle", 1600)
    info = CodePlace("program", "/home/me/train.py", "<module>", 31, "logging.info(loss)")
    forks = answer(made.profile([(made.COMPUTING, 6), ((lock, fork), 4)]))
    assert forks.total("logging") == 0
    logs = answer(made.profile([(made.COMPUTING, 6), ((lock, handle, info), 4)]))
    assert logs.total("logging") == pytest.approx(0.4, abs=0.02)


def test_what_an_event_loop_waits_for_is_not_known() -> None:
    run = CodePlace("program", "/home/me/train.py", "<module>", 30, "asyncio.run(main())")
    loop = CodePlace("standard", "asyncio/base_events.py", "_run_once", 1922)
    select = CodePlace("standard", "selectors.py", "select", 468)
    found = answer(made.profile([(made.COMPUTING, 4), ((select, loop, run), 6)]))
    assert found.verdict == "unclear"
    assert "60 % of it is of unknown kind" in found.headline
    assert found.gains == ()


def test_a_tf_function_that_looks_for_its_trace_does_not_compile() -> None:
    compilation = "tensorflow/python/eager/polymorphic_function/tracing_compilation.py"
    looks = (
        CodePlace("library", compilation, "_maybe_define_function", 230),
        CodePlace("library", compilation, "trace_function", 178),
        CodePlace("program", "/home/me/train.py", "<module>", 9, "train_step(x)"),
    )
    traces = (CodePlace("library", compilation, "_create_concrete_function", 310), *looks)
    step = [(looks, 6), (traces, 4)]
    found = answer(made.profile(step, key="tensorflow train_step"))
    assert found.total("computing") == pytest.approx(0.6, abs=0.02)
    assert found.total("compilation") == pytest.approx(0.4, abs=0.02)


def test_operations_of_jax_are_no_steps() -> None:
    """A program that JAX compiles for operation by operation has not begun to train."""
    compiles = CodePlace("library", "jax/_src/compiler.py", "backend_compile", 300)
    line = CodePlace("program", "/home/me/train.py", "<module>", 8, "model.init(key, x)")
    found = answer(made.profile([((compiles, line), 10)], key="jax-operation"))
    assert found.verdict == "no-steps"
    assert "no step was seen" in found.notes[-1]


def test_small_shares_that_add_up_are_mentioned() -> None:
    parts = [made.ONE_PROCESS, made.own("validate"), made.calling("builtins.print")]
    found = answer(made.profile([(made.COMPUTING, 14), *((part, 2) for part in parts)]))
    assert found.verdict == "computing"
    assert found.headline == (
        "The program computed for 70 % of the time: the other 30 % have no main reason."
    )


def test_a_share_that_a_few_samples_show_is_not_named() -> None:
    step = [(made.COMPUTING, 4), (made.ONE_PROCESS, 1)]
    few = answer(made.profile(step, steps=12))
    assert few.total("input") > 0.15
    assert few.verdict == "unclear"
    assert "let it run for longer" in few.headline
    assert answer(made.profile(step, steps=100)).verdict == "waiting"


def test_much_of_unknown_kind_is_not_clear() -> None:
    found = answer(made.profile([(made.COMPUTING, 5), (made.calling("?"), 5)]))
    assert found.verdict == "unclear"
    assert "of unknown kind" in found.headline
    assert found.gains == ()


def test_few_samples_are_not_clear() -> None:
    found = answer(made.profile([(made.COMPUTING, 1), (made.ONE_PROCESS, 2)], steps=8))
    assert found.verdict == "unclear"
    assert "samples" in found.headline


def test_few_samples_of_unknown_kind_are_few_samples() -> None:
    """ "39 % of it is of unknown kind" was three samples."""
    found = answer(made.profile([(made.COMPUTING, 1), (made.calling("?"), 1)], steps=10))
    assert "samples of the steps; let it run for longer" in found.headline


def test_without_steps_nothing_is_claimed() -> None:
    profile = made.profile([(made.COMPUTING, 5)])._replace(marks=())
    found = answer(profile)
    assert found.verdict == "no-steps"
    assert found.shares == ()
    assert any("no step was seen" in note for note in found.notes)


def test_no_profile_at_all() -> None:
    assert judged([], ProfileOptions(), on_gpu=False).verdict == "nothing-recorded"


def test_the_first_steps_are_left_out() -> None:
    slow = made.profile([(made.calling("torch.save"), 50)], steps=10)
    steady = made.profile([(made.COMPUTING, 5)], steps=40)
    shift = slow.seconds
    places = (*slow.places, *steady.places)
    moved = tuple(tuple(n + len(slow.places) for n in stack) for stack in steady.stacks)
    joined = steady._replace(
        places=places,
        stacks=(*slow.stacks, *moved),
        times=(*slow.times, *(shift + time for time in steady.times[1:])),
        stack_of=(*slow.stack_of, *(n + len(slow.stacks) for n in steady.stack_of[1:])),
        thread_seconds=(0.0,) * (len(slow.times) + len(steady.times) - 1),
        process_seconds=(0.0,) * (len(slow.times) + len(steady.times) - 1),
        marks=(
            StepMarks(
                "torch SGD 1",
                50,
                1,
                (*slow.marks[0].times, *(shift + t for t in steady.marks[0].times)),
            ),
        ),
    )
    found = answer(joined)
    assert found.verdict == "computing"
    assert found.before_seconds == pytest.approx(shift)


def test_the_steps_can_be_chosen() -> None:
    profile = made.profile([(made.COMPUTING, 5)], steps=100)
    found = judged([profile], ProfileOptions(20, 60), on_gpu=False)
    assert found.window is not None
    assert (found.window.first, found.window.last) == (20, 60)


def test_jax_computes_while_the_program_prepares_the_next_batch() -> None:
    step = [(made.calling("numpy.random.rand"), 5), (made.calling("jaxlib._jax.PjitFunction"), 5)]
    alone = made.profile(step, key="jax train_step", busy_cores=1.0)
    assert answer(alone).total("program") == pytest.approx(0.5, abs=0.02)
    behind = made.profile(step, key="jax train_step", busy_cores=2.0)
    assert answer(behind).total("program") == 0


COMPILE = CodePlace("library", "jax/_src/compiler.py", "backend_compile", 9)


def test_compilation_that_comes_once_is_left_out() -> None:
    again = made.profile([(made.COMPUTING, 5), ((COMPILE, made.LOOP), 5)])
    assert answer(again).total("compilation") == pytest.approx(0.5, abs=0.02)
    compiling = again.stack_of[-1]
    other = 1 - compiling
    once = tuple(n if 200 <= place < 300 else other for place, n in enumerate(again.stack_of))
    found = answer(again._replace(stack_of=once))
    assert found.total("compilation") == 0
    assert found.verdict == "computing"
    assert any("came once" in note for note in found.notes)


def test_a_crowded_machine_is_mentioned() -> None:
    profile = made.profile([(made.COMPUTING, 10)])
    waited = WorkerUse(1, profile.times, tuple(0.4 * time for time in profile.times))
    found = answer(profile._replace(waited=waited))
    (note,) = [note for note in found.notes if "core" in note]
    assert "40 %" in note
    assert "more runs on this machine than its 4 cores can do" in note
    assert "waited for a free core for 40 % of the time" in found.headline
    assert not [note for note in answer(profile).notes if "core" in note]
    assert "nothing else takes a noticeable share" in answer(profile).headline


def test_a_program_that_fills_the_machine_waits_for_itself() -> None:
    """As with torch.set_num_threads(32) on a machine with four cores."""
    profile = made.profile([(made.COMPUTING, 10)], busy_cores=3.9)
    waited = WorkerUse(1, profile.times, tuple(0.4 * time for time in profile.times))
    (note,) = [note for note in answer(profile._replace(waited=waited)).notes if "core" in note]
    assert "the program's own threads and processes use 3.9 of 4 cores" in note


def test_one_compilation_that_takes_longer_than_all_steps_came_once() -> None:
    """As a first evaluation in JAX does in a short run."""
    tracing = CodePlace("library", "jax/_src/compiler.py", "compile", 5)
    short = made.profile([(made.COMPUTING, 5)])
    long = made.profile([((tracing, made.LOOP), 400)], steps=1)
    moved, half = len(short.places), len(short.times) // 2
    seconds = long.times[-1]
    middle = short.times[half]
    times = (
        *short.times[: half + 1],
        *(middle + time for time in long.times[1:]),
        *(seconds + time for time in short.times[half + 1 :]),
    )
    stack_of = (*short.stack_of[: half + 1], *[1] * 400, *short.stack_of[half + 1 :])
    ends = short.marks[0].times
    marks = short.marks[0]._replace(
        times=tuple(time if time <= middle else time + seconds for time in ends)
    )
    found = answer(
        short._replace(
            seconds=times[-1],
            places=short.places + long.places,
            stacks=(*short.stacks, tuple(place + moved for place in long.stacks[0])),
            times=times,
            stack_of=stack_of,
            thread_seconds=times,
            process_seconds=times,
            marks=(marks,),
        )
    )
    assert found.verdict == "computing"
    assert any("of compilation came once" in note for note in found.notes)


def test_a_progress_bar_around_a_loader_waits_for_the_loader() -> None:
    """It was called logging, because the bar is on the stack whenever the next batch is made."""
    bar = CodePlace("library", "tqdm/std.py", "__iter__", 1181)
    shown = CodePlace("library", "tqdm/std.py", "display", 1495)
    loop = CodePlace("program", "/home/me/train.py", "<module>", 20, "for x in tqdm(loader):")
    loading = (*made.ONE_PROCESS[:-1], bar, loop)
    found = answer(made.profile([(made.COMPUTING, 4), (loading, 6)]))
    assert found.shares[0].category == "input"
    assert found.shares[0].detail == "the DataLoader has no worker processes"
    found = answer(made.profile([(made.COMPUTING, 4), ((shown, bar, loop), 6)]))
    assert found.shares[0].category == "logging"


def expression_at(text: str, *between: CodePlace) -> tuple[CodePlace, ...]:
    """A generator expression of the program, made or taken on this line of the training loop."""
    file = "/home/me/train.py"
    made_here = CodePlace("program", file, "<genexpr>", 21, "cost(x)", generator=True)
    return (made_here, *between, CodePlace("program", file, "<module>", 21, text))


@each("text", ["for x, y in batches:", "x, y = next(batches)"])
def test_batches_may_come_from_a_generator_expression(text: str) -> None:
    found = answer(made.profile([(made.COMPUTING, 4), (expression_at(text), 6)]))
    assert found.shares[0].category == "input"


def test_a_generator_expression_is_a_part_of_the_code_around_it() -> None:
    """A sum in a function that computes rewards was called input."""
    rewards = CodePlace("program", "/home/me/train.py", "rewards", 7, "sum(cost(x) for x in found)")
    for stack in (
        expression_at("rewards()", rewards),
        expression_at("sum(cost(x) for x in found)"),
    ):
        found = answer(made.profile([(made.COMPUTING, 4), (stack, 6)]))
        assert found.shares[0].category == "program"


def test_a_generator_that_a_function_of_the_step_uses_is_a_part_of_it() -> None:
    file = "/home/me/train.py"
    walk = CodePlace("program", file, "walk", 3, "yield node", generator=True)
    rewards = CodePlace("program", file, "rewards", 7, "for node in walk(tree):")
    loop = CodePlace("program", file, "<module>", 21, "rewards()")
    found = answer(made.profile([(made.COMPUTING, 4), ((walk, rewards, loop), 6)]))
    assert found.shares[0].category == "program"


def waiting_for_cores(profile: ProcessProfile, share: float) -> ProcessProfile:
    """While it waits for something, the thread computes nothing."""
    waited = WorkerUse(1, profile.times, tuple(share * time for time in profile.times))
    return profile._replace(waited=waited, thread_seconds=(0.0,) * len(profile.times))


def test_time_for_which_the_thread_may_have_waited_for_a_core_is_not_named() -> None:
    profile = made.profile([(made.COMPUTING, 6), (made.WORKERS, 4)])
    assert answer(waiting_for_cores(profile, 0.2)).verdict == "waiting"
    found = answer(waiting_for_cores(profile, 0.5))
    assert (found.verdict, found.gains) == ("unclear", ())
    assert "waited for a free core for 50 % of the time" in found.headline
    assert "waited for input for 40 %" in found.headline


def test_threads_that_waited_for_a_core_may_hide_what_else_takes_time() -> None:
    """PyTorch computed for 90 %, because each of its operations waited for its slowest thread."""
    profile = made.profile([(made.COMPUTING, 18), (made.own("rewards"), 2)])
    for waited, verdict in ((0.2, "computing"), (0.6, "unclear")):
        curve = WorkerUse(0, profile.times, tuple(waited * time for time in profile.times))
        found = answer(profile._replace(threads_waited=curve))
        assert found.verdict == verdict
    assert "what took 10 % here may take up to 25 %" in found.headline
    assert any("fewer threads may be faster" in note for note in found.notes)


def test_what_took_processor_time_is_named_on_a_crowded_machine_too() -> None:
    profile = made.profile([(made.COMPUTING, 6), (made.own("rewards"), 4)])
    crowded = waiting_for_cores(profile, 0.9)
    half = tuple(time / 10 for time in profile.times)
    assert answer(crowded).verdict == "unclear"
    assert answer(crowded._replace(thread_seconds=half)).verdict == "waiting"


def test_threads_that_make_batches_of_arrays_may_have_waited_for_a_core() -> None:
    fit = CodePlace("program", "/home/me/train.py", "<module>", 9, "model.fit(x, y)")
    step = CodePlace("library", "tensorflow/python/eager/context.py", "call_function", 7)
    recorded = made.profile([((step, fit), 10)], key="keras fit")._replace(
        framework=FrameworkProfile(1.0, 0.5), data_adapters=("ArrayDataAdapter",)
    )
    full = WorkerUse(0, recorded.times, tuple(0.1 * time for time in recorded.times))
    assert answer(recorded).verdict == "waiting"
    found = answer(recorded._replace(idle=full))
    assert found.verdict == "unclear"
    assert "no core of the machine was idle" in found.headline


BROKEN = {
    "a stack that is not there": {"stack_of": (99,) * 401},
    "a place that is not there": {"stacks": ((99,),)},
    "columns of different length": {"stack_of": (0,)},
    "a negative number": {"stack_of": (-1,) * 401},
}


@each("name", BROKEN)
def test_a_record_that_contradicts_itself_is_not_judged(name: str) -> None:
    profile = made.profile([(made.COMPUTING, 10)])._replace(**BROKEN[name])  # type: ignore[arg-type]
    assert answer(profile).verdict == "nothing-recorded"


def test_without_an_optimizer_calls_of_backward_are_the_steps() -> None:
    alone = made.profile([(made.COMPUTING, 5)], key="torch backward")
    window = answer(alone).window
    assert window is not None
    assert window.made_by == "calls of backward()"
    early = StepMarks("torch backward", 90, 1, alone.marks[0].times)
    optimized = made.profile([(made.COMPUTING, 5)])
    window = answer(optimized._replace(marks=(early, *optimized.marks))).window
    assert window is not None
    assert window.made_by == "steps of an optimizer"


QUEUE_GET = CodePlace("standard", "queue.py", "get", 171)
LOCKED = CodePlace("standard", "threading.py", "wait", 327)
JOINED = CodePlace("standard", "threading.py", "join", 1100)
TAKING = CodePlace("program", "/home/me/train.py", "<module>", 20, "batches.get()")
JOINING = CodePlace("program", "/home/me/train.py", "<module>", 20, "saver.join()")


def test_a_batch_from_another_thread_is_waited_for() -> None:
    """It was called the program's own code, to be made to "work on whole arrays"."""
    taking = (LOCKED, QUEUE_GET, TAKING)
    found = answer(made.profile([(made.COMPUTING, 4), (taking, 6)]))
    assert found.shares[0].category == "input"
    assert found.shares[0].detail == "another thread or process prepares it"
    (gain,) = found.gains
    assert gain.at_most
    assert "more threads or processes" in gain.change


def test_what_a_joined_thread_does_is_not_known() -> None:
    joining = (LOCKED, JOINED, JOINING)
    found = answer(made.profile([(made.COMPUTING, 4), (joining, 6)]))
    assert found.total("unknown") == pytest.approx(0.6, abs=0.01)
    assert found.verdict == "unclear"


def test_a_function_about_results_does_not_load_data() -> None:
    """transform_predictions() was called waiting for input, to be done in another process."""
    for name in ("transform_predictions", "batch_statistics", "decode_outputs"):
        found = answer(made.profile([(made.COMPUTING, 4), (made.own(name), 6)]))
        assert found.shares[0].category == "program", name


def test_a_function_around_the_steps_loads_no_data() -> None:
    """train_batch() was called waiting for input: it collects garbage, and beside that its training
    was too short to be sampled."""
    collecting = made.own("train_batch")
    profile = made.profile([(collecting, 10)])
    assert answer(profile).total("input") == pytest.approx(1, abs=0.01)
    around = (ProgramFunction("/home/me/train.py", "train_batch"),)
    marks = profile.marks[0]._replace(around=(around,))
    assert answer(profile._replace(marks=(marks,))).total("program") == pytest.approx(1, abs=0.01)


def test_an_evaluation_that_a_jitted_function_is_called_in_stays_one() -> None:
    evaluating = made.own("validate_all")
    profile = made.profile([(made.COMPUTING, 5), (evaluating, 5)], key="jax predict")
    around = (ProgramFunction("/home/me/train.py", "validate_all"),)
    marks = profile.marks[0]._replace(around=(around,))
    found = answer(profile._replace(marks=(marks,)))
    assert found.total("evaluation") == pytest.approx(0.5, abs=0.02)


def test_what_each_evaluation_compiles_is_a_part_of_it() -> None:
    """predict() of Keras traces a new pipeline in each call: no shape of a step is to blame."""
    tracing = CodePlace(
        "library", "tensorflow/python/framework/func_graph.py", "func_graph_from_py_func", 9
    )
    predict = CodePlace("library", "keras/src/backend/tensorflow/trainer.py", "predict", 600)
    fit = CodePlace("program", "/home/me/train.py", "<module>", 9, "model.fit(x, y)")
    profile = made.profile([(made.COMPUTING, 5), ((tracing, predict, fit), 5)], key="keras fit")
    found = answer(profile)
    assert found.total("evaluation") == pytest.approx(0.5, abs=0.02)
    assert "evaluate half as often" in found.gains[0].change
    alone = made.profile([(made.COMPUTING, 5), ((tracing, fit), 5)], key="keras fit")
    assert answer(alone).total("compilation") == pytest.approx(0.5, abs=0.02)


def test_a_part_of_a_model_is_no_checkpoint_and_no_evaluation() -> None:
    """Activations may be checkpointed by a function of the model."""
    model = CodePlace("library", "torch/nn/modules/module.py", "_call_impl", 1789)
    loop = CodePlace("program", "/home/me/train.py", "<module>", 22, "model(x)")
    for name in ("checkpoint_block", "val_embedding"):
        leaf = CodePlace("program", "/home/me/net.py", name, 5, "a @ b", "torch.Tensor.operator")
        found = answer(made.profile([(made.COMPUTING, 4), ((leaf, model, loop), 6)]))
        assert found.total("computing") == pytest.approx(1, abs=0.01), name


def test_writing_to_the_disk_for_sure_is_logging() -> None:
    found = answer(made.profile([(made.COMPUTING, 4), (made.calling("os.fsync"), 6)]))
    assert found.shares[0].category == "logging"


def test_evaluations_of_trainers_are_evaluations() -> None:
    step = CodePlace("program", "/home/me/train.py", "forward_only", 5, "x @ w", "torch.matmul")
    loop = CodePlace("library", "lightning/pytorch/loops/evaluation_loop.py", "run", 100)
    fit = CodePlace("program", "/home/me/train.py", "<module>", 22, "trainer.fit(model)")
    found = answer(made.profile([(made.COMPUTING, 4), ((step, loop, fit), 6)]))
    assert found.shares[0].category == "evaluation"


def test_gradients_outside_of_a_tf_function_are_steps() -> None:
    profile = made.profile([(made.COMPUTING, 4)], key="tensorflow GradientTape.gradient")
    found = answer(profile)
    assert found.window is not None
    assert found.window.made_by == "calls of GradientTape.gradient()"
    act = StepMarks("tensorflow act", 400, 1, tuple(n * 0.002 for n in range(400)), busy=5.0)
    found = answer(profile._replace(marks=(act, *profile.marks)))
    assert found.window is not None
    assert found.window.made_by == "calls of GradientTape.gradient()"
    named = act._replace(key="tensorflow train_step")
    found = answer(profile._replace(marks=(named, *profile.marks)))
    assert found.window is not None
    assert found.window.made_by == "calls of a tf.function (train_step)"


def test_too_few_steps_are_counted_without_the_calls_of_backward_before_them() -> None:
    """LBFGS calls backward() many times before its first step ends: "only 10 steps, at least 7"."""
    profile = made.profile([(made.COMPUTING, 4)], steps=10, key="torch backward")
    steps = StepMarks("torch LBFGS 1", 3, 1, (0.05, 0.1, 0.15))
    found = answer(profile._replace(marks=(*profile.marks, steps)))
    assert found.verdict == "no-steps"
    assert any(note.startswith("only 3 steps") for note in found.notes)


TRAINS = made.own("run_epoch")[0]._replace(text="loss.backward()")
FORWARD = CodePlace("library", "torch/nn/modules/linear.py", "forward", 120)


def in_epochs(
    evaluation: int, *, gradients: bool = False, after: tuple[CodePlace, ...] = ()
) -> ProcessProfile:
    """Epochs of ten steps; after each, run_epoch(train=False) computes for some samples."""
    call = made.own("run_epoch")[-1]
    backward = (made.BACKWARD, TRAINS, call)
    forward = (FORWARD, TRAINS._replace(line=6), call)
    after = after or (backward if gradients else forward)
    whole = [(backward, 3), (forward, 3)] * 9 + [(backward, 3), (forward, 3), (after, evaluation)]
    profile = made.profile(whole, steps=8)
    ends = []
    for epoch in range(8):
        begin = epoch * (60 + evaluation) * made.PERIOD
        ends += [begin + 6 * made.PERIOD * (number + 1) for number in range(10)]
    return profile._replace(marks=(StepMarks("torch SGD 1", 80, 1, tuple(ends)),))


def test_computing_without_gradients_between_steps_is_not_clear() -> None:
    found = answer(in_epochs(60))
    assert found.verdict == "unclear"
    assert "an evaluation" in found.headline
    assert "%" in found.headline
    assert found.gains == ()


def test_a_longer_step_that_computes_gradients_is_a_step() -> None:
    assert answer(in_epochs(60, gradients=True)).verdict == "computing"


def test_a_short_evaluation_changes_nothing() -> None:
    assert answer(in_epochs(6)).verdict == "computing"


def test_short_evaluations_count_together() -> None:
    """Each has too few samples to show by itself that it does not train."""
    often = in_epochs(14)
    columns = ("times", "stack_of", "thread_seconds", "process_seconds")
    seldom = often._replace(**{name: getattr(often, name)[::3] for name in columns})
    assert answer(often).verdict == answer(seldom).verdict == "unclear"


MODULE = CodePlace("library", "torch/nn/modules/module.py", "_call_impl", 1751)
CALLS_MODEL = TRAINS._replace(line=6, text="model(x)")


def in_mode(
    mode: Literal["training", "evaluation"], place: CodePlace = CALLS_MODEL
) -> ProfileAnswer:
    """A model whose parts are in evaluation mode; after each epoch, it is in this mode itself."""
    part = MODULE._replace(mode="evaluation")
    after = (FORWARD, part, MODULE._replace(mode=mode), place, made.own("run_epoch")[-1])
    return answer(in_epochs(60, after=after))


def test_a_model_in_evaluation_mode_between_steps_evaluates() -> None:
    found = in_mode("evaluation")
    assert found.verdict == "waiting"
    assert found.total("evaluation") == pytest.approx(0.5, abs=0.03)
    assert found.shares[1].where is not None
    assert found.shares[1].where.text == "model(x)"
    assert "evaluate half as often" in found.gains[0].change


def test_a_part_of_a_model_in_evaluation_mode_shows_no_evaluation() -> None:
    """Layers that are not trained stay in it."""
    assert in_mode("training").verdict == "unclear"


def test_an_agent_that_acts_in_evaluation_mode_does_not_evaluate() -> None:
    collecting = CALLS_MODEL._replace(function="collect_rollouts")
    assert in_mode("evaluation", collecting).verdict == "unclear"
    assert (
        in_mode("evaluation", CALLS_MODEL._replace(text="policy(env.state)")).verdict == "unclear"
    )


def called_for(evaluation: str, *, in_each_step: bool = False) -> ProfileAnswer:
    """run() trains where one line calls it; for this expression of another line, it does not."""
    train = made.own("run")[-1]._replace(text="run(data, optimizer)")
    evaluate = train._replace(line=40, text=evaluation)
    inside = made.own("run")[0]._replace(text="model(x)")
    backward, forward = (made.BACKWARD, TRAINS._replace(function="run"), train), (FORWARD, inside)
    other = (*forward, evaluate)
    if in_each_step:
        return answer(made.profile([(backward, 3), ((*forward, train), 3), (other, 6)], steps=80))
    whole = [(backward, 3), ((*forward, train), 3)] * 10 + [(other, 40)]
    profile = made.profile(whole, steps=8)
    ends = [(epoch * 100 + 6 * (n + 1)) * made.PERIOD for epoch in range(8) for n in range(10)]
    return answer(profile._replace(marks=(StepMarks("torch SGD 1", 80, 1, tuple(ends)),)))


def test_a_call_that_never_trains_evaluates_if_another_of_the_function_trains() -> None:
    found = called_for("run(held_out)")
    assert found.verdict == "waiting"
    (share,) = (each for each in found.shares if each.category == "evaluation")
    assert share.share == pytest.approx(0.4, abs=0.05)
    assert share.where is not None
    assert share.where.text == "run(held_out)"
    assert "evaluate half as often" in found.gains[0].change


def test_a_call_without_training_in_each_step_is_a_part_of_the_step() -> None:
    """As that of a teacher."""
    assert called_for("run(teacher)", in_each_step=True).total("evaluation") == 0


def test_an_agent_that_acts_by_the_function_that_trains_does_not_evaluate() -> None:
    assert called_for("run(env.state)").verdict == "unclear"
