"""How the memory of an XLA program is modelled from its text: small programs, sizes by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.comparer.inside import part

MIB = 1 << 20
ARRAY = "f32[1024,1024]{1,0}"
"""4 MiB."""


def modelled(body: str, before: str = "") -> Any:
    return part("estimates.xla.program_memory").model(
        f"HloModule test\n\n{before}\nENTRY main {{\n{body}\n}}\n", (9, 0)
    )


def mib(body: str, before: str = "") -> float:
    return float(modelled(body, before).size) / MIB


def test_a_chain_of_elementwise_work_takes_no_memory() -> None:
    assert (
        mib(f"""
  x = {ARRAY} parameter(0)
  a = {ARRAY} exponential(x)
  b = {ARRAY} negate(a)
  ROOT c = {ARRAY} add(b, x)""")
        == 0
    )


def test_what_a_matrix_product_reads_is_written_and_freed_when_it_has_been_read() -> None:
    product = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    assert mib(f"""
  x = {ARRAY} parameter(0)
  a = {ARRAY} tanh(x)
  b = {ARRAY} dot(a, x), {product}
  c = {ARRAY} tanh(b)
  d = {ARRAY} dot(c, x), {product}
  e = {ARRAY} tanh(d)
  ROOT f = {ARRAY} dot(e, x), {product}""") == pytest.approx(8)


def test_what_is_expensive_to_do_again_is_written_where_two_kernels_want_it() -> None:
    work = f"""
  x = {ARRAY} parameter(0)
  first = {ARRAY} OPERATION(x)
  a = {ARRAY} OPERATION(first)
  z = f32[] constant(0)
  s = f32[1024]{{0}} reduce(a, z), dimensions={{1}}, to_apply=sum
  t = {ARRAY} broadcast(s), dimensions={{0}}
  u = {ARRAY} subtract(a, t)
  v = f32[1024]{{0}} reduce(u, z), dimensions={{1}}, to_apply=sum
  w = {ARRAY} broadcast(v), dimensions={{0}}
  ROOT y = {ARRAY} divide(a, w)"""
    assert mib(work.replace("OPERATION", "negate")) < 0.1
    assert mib(work.replace("OPERATION", "erf")) == pytest.approx(4, abs=0.1)


def test_a_bias_is_added_by_the_product_itself() -> None:
    assert (
        mib(f"""
  x = {ARRAY} parameter(0)
  bias = f32[1024]{{0}} parameter(1)
  a = {ARRAY} dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  b = {ARRAY} broadcast(bias), dimensions={{1}}
  ROOT c = {ARRAY} add(a, b)""")
        == 0
    )


LOOP = f"""body {{
  state = (s32[], {ARRAY}, {ARRAY}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  kept = {ARRAY} get-tuple-element(state), index=1
  made = {ARRAY} get-tuple-element(state), index=2
  row = f32[1,1024]{{1,0}} slice(kept), slice={{[0:1], [0:1024]}}
  z = s32[] constant(0)
  next = {ARRAY} dynamic-update-slice(made, row, i, z)
  ROOT out = (s32[], {ARRAY}, {ARRAY}) tuple(i, kept, next)
}}

condition {{
  state = (s32[], {ARRAY}, {ARRAY}) parameter(0)
  ROOT go = pred[] constant(true)
}}
"""


def test_a_loop_works_in_place_on_what_it_changes_and_copies_nothing_that_it_only_reads() -> None:
    assert mib(
        f"""
  x = {ARRAY} parameter(0)
  z = f32[] constant(0)
  i = s32[] constant(0)
  room = {ARRAY} broadcast(z), dimensions={{}}
  all = (s32[], {ARRAY}, {ARRAY}) tuple(i, x, room)
  loop = (s32[], {ARRAY}, {ARRAY}) while(all), condition=condition, body=body
  read = {ARRAY} get-tuple-element(loop), index=1
  made = {ARRAY} get-tuple-element(loop), index=2
  a = {ARRAY} dot(made, read), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT out = {ARRAY} negate(a)""",
        LOOP,
    ) == pytest.approx(8)


def test_what_stands_behind_a_barrier_is_computed_again() -> None:
    product = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    work = f"""
  x = {ARRAY} parameter(0)
  a = {ARRAY} dot(x, x), {product}
  b = {ARRAY} dot(a, x), {product}
  c = {ARRAY} dot(b, x), {product}
  d = {ARRAY} dot(b, c), {product}
  AGAIN
  e = {ARRAY} dot(again, again), {product}
  ROOT f = {ARRAY} dot(e, d), {product}"""
    kept = work.replace("AGAIN", f"again = {ARRAY} dot(x, x), {product}")
    barrier = f"behind = {ARRAY} opt-barrier(x)\n  again = {ARRAY} dot(behind, behind), {product}"
    assert mib(kept) == pytest.approx(16)
    assert mib(work.replace("AGAIN", barrier)) == pytest.approx(12)


def test_tuples_in_tuples_are_taken_apart() -> None:
    text = part("estimates.xla.hlo_text")
    written = "(s32[], (f32[2,3]{1,0:T(8,128)}, /*index=2*/pred[]), f32[4]{0})"
    assert text.structure(written) == [0, [1, 2], 3]
    assert text.shapes(written)[1] == ("f32", (2, 3))


def test_a_text_that_is_not_understood_is_no_estimate() -> None:
    with pytest.raises(Exception, match="cannot be read") as raised:
        modelled("  ROOT a = f32[2]{0} add(gone, gone)")
    assert type(raised.value).__name__ == "CannotTell"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((256, 256, 64, 200, 1), (89850624, 65536256)),
        ((512, 64, 1, 20, 1), (9119776, 25856)),
        ((128, 1024, 16, 100, 2), (56099200 + 100 * 4 * 16 * 14464, 4 * 10 * 1024 * 1600 + 256)),
    ],
)
def test_cudnn_asks_for_what_it_asked_for_on_an_h200(
    sizes: tuple[int, ...], expected: tuple[int, int]
) -> None:
    found = part("estimates.xla.libraries").lstm_sizes(*sizes)
    assert found == pytest.approx(expected, rel=1e-5)


def test_only_products_of_some_size_are_given_to_cublas() -> None:
    work = """
  x = f32[{rows},4096]{{1,0}} parameter(0)
  w = f32[4096,4096]{{1,0}} parameter(1)
  a = f32[{rows},4096]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT b = f32[{rows},4096]{{1,0}} tanh(a)"""
    assert modelled(work.format(rows=512)).workspace == 32 * MIB
    assert modelled(work.format(rows=8)).workspace == 0


def test_a_transpose_that_moves_nothing_is_not_between_a_product_and_its_bias() -> None:
    work = """
  x = f32[8192,192]{{1,0}} parameter(0)
  w = f32[192,12000]{{1,0}} parameter(1)
  b = f32[12000]{{0}} parameter(2)
  a = f32[8192,12000]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[{shape}]{{1,0}} transpose(a), dimensions={{{order}}}
  s = f32[{shape}]{{1,0}} broadcast(b), dimensions={{{bias}}}
  ROOT c = f32[{shape}]{{1,0}} add(t, s)"""
    same = modelled(work.format(shape="8192,12000", order="0,1", bias="1"))
    turned = modelled(work.format(shape="12000,8192", order="1,0", bias="0"))
    assert same.size == 0
    assert turned.size >= 8192 * 12000 * 4
