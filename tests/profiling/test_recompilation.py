"""Why a function was compiled again, from what its compilations recorded."""

from __future__ import annotations

from tests.profiling import made
from whygpu.model.profile import CodePlace, Compilation, CompiledArgument, ProfileOptions
from whygpu.profiling.judge import judged
from whygpu.profiling.recompilation import why_recompiled


def array(name: str, *shape: int, type: str = "float32") -> CompiledArgument:
    return CompiledArgument(name, type, shape=shape)


def compiled(
    *arguments: CompiledArgument, at: float, made: int = 1, reason: str = ""
) -> Compilation:
    return Compilation("step", at, 0.1, "/home/me/train.py", 31, made, arguments, reason)


def why(before: Compilation, now: Compilation) -> str:
    found = why_recompiled([before, now], 1.5, 9.0)
    begins = "step (train.py:31) was compiled once: "
    assert found.text.startswith(begins)
    return found.text[len(begins) :]


def test_the_argument_that_changed_is_named_with_both_states() -> None:
    w = array("w", 10)
    cases = {
        "x had shape (32, 10), then (32, 11)": (array("x", 32, 10), array("x", 32, 11)),
        "x had shape (?,), then (7,)": (array("x", -1), array("x", 7)),
        "x was an array of float32, then an array of float64": (
            array("x", 4),
            array("x", 4, type="float64"),
        ),
        "n was 1, then 2": (
            CompiledArgument("n", "int", value="1"),
            CompiledArgument("n", "int", value="2"),
        ),
        "n was int, then float": (
            CompiledArgument("n", "int", value="1"),
            CompiledArgument("n", "float", value="1.0"),
        ),
        "m is another Model object each time": (
            CompiledArgument("m", "Model", identity=1),
            CompiledArgument("m", "Model", identity=2),
        ),
    }
    for expected, (before, now) in cases.items():
        assert why(compiled(w, before, at=1), compiled(w, now, at=2)) == expected


def test_arguments_that_come_and_go_are_named() -> None:
    x, mask = array("x", 4), array("mask", 4)
    assert why(compiled(x, at=1), compiled(x, mask, at=2)) == "mask was not there before"
    assert why(compiled(x, mask, at=1), compiled(x, at=2)) == "mask is no longer there"


def test_a_function_that_is_made_in_each_step_is_the_reason_whatever_else_changed() -> None:
    before, now = array("x", 4), array("x", 5)
    text = why(compiled(before, at=1), compiled(now, at=2, made=2))
    assert text == "a new function is made each time, so nothing compiled is used again"


def test_if_nothing_visible_changed_nothing_is_claimed() -> None:
    x = array("x", 4)
    found = why_recompiled([compiled(x, at=1), compiled(x, at=2)], 1.5, 9.0)
    assert found.change == "unknown"
    assert "looked the same as before" in found.text


def test_reasons_of_torch_compile_are_read() -> None:
    comment = "  # return x*k  # train.py:9 in g\nUser stack trace:\n  File ..."
    cases = {
        "0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5": (
            "axis 0 of x had length 4, then 5"
        ),
        "0/3: tensor 'x' dtype mismatch. expected Float, actual Double": (
            "the dtype of x was Float, then Double"
        ),
        f"1/0: k == 0.5    {comment}": "k was 0.5, and then another value",
        f"1/1: ___check_type_id(k, 140314), type=<class 'float'>{comment}": (
            "k is no longer of type float"
        ),
        f"2/0: ___check_obj_id(self.f, 123), type=<class 'function'>{comment}": (
            "self.f is another object each time"
        ),
        "2/0: GLOBAL_STATE changed: grad_mode ": (
            "torch.compile says: GLOBAL_STATE changed: grad_mode"
        ),
    }
    for reason, expected in cases.items():
        assert why(compiled(at=1), compiled(at=2, reason=reason)) == expected


def test_the_usual_change_is_shown_and_not_the_last_one() -> None:
    history = [compiled(array("x", size), at=size) for size in range(2, 6)]
    history.append(compiled(array("x", 5, type="float64"), at=6))
    found = why_recompiled(history, 2.5, 9.0)
    assert (found.change, found.argument) == ("shape", "x")
    assert found.text.endswith("compiled 4 times: x had shape (4,), then (5,)")


def test_a_first_compilation_is_not_called_a_second_one() -> None:
    found = why_recompiled([compiled(array("x", 4), at=2)], 1, 9)
    assert found.text == "step (train.py:31) was compiled once"


def test_the_answer_shows_the_reason_and_the_cure() -> None:
    tracing = made.calling("?", "step(x, n)")
    compiling = (CodePlace("library", "jax/_src/compiler.py", "compile", 1), *tracing)
    recorded = made.profile([(made.COMPUTING, 3), (compiling, 7)], key="jax step")
    numbers = [CompiledArgument("n", "int", value=str(n)) for n in range(40)]
    recorded = recorded._replace(
        compilations=tuple(compiled(n, at=0.049 * at) for at, n in enumerate(numbers, start=1))
    )
    answer = judged([recorded], ProfileOptions(), on_gpu=False)
    share = next(each for each in answer.shares if each.category == "compilation")
    assert share.detail.endswith("n was 38, then 39")
    assert answer.gains[0].change == "keep n the same, or do not make it a static argument"
