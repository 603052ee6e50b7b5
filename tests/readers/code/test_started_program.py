"""What single statements of a program show about its needs."""

from __future__ import annotations

import pytest

from whygpu.readers.code.started_program import started_program


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import torch\nmodel.cuda()\n", 2),
        ("x = x.to('cuda:1')\n", 1),
        ("d = torch.device('cuda')\n", 1),
        ("torch.cuda.set_device(0)\n", 1),
        ("x = x.to(device)  # cuda\n", None),
        ("if torch.cuda.is_available():\n    model.cuda()\n", None),
        ("device = args.device or 'cpu'\nmodel.cuda()\n", None),
        ("print 'cuda'\n", None),
    ],
)
def test_statements_that_need_a_gpu(text: str, line: int | None) -> None:
    program = started_program("train.py", text)
    place = program.needs_gpu if program is not None else None
    assert (place.line if place is not None else None) == line


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("DataLoader(data, num_workers=4)", True),
        ("torch.utils.data.DataLoader(data, num_workers=1)", True),
        ("DataLoader(data, num_workers=0)", False),
        ("DataLoader(data, num_workers=args.workers)", False),
        ("Pool(num_workers=4)", False),
    ],
)
def test_data_loaders_with_workers(call: str, found: bool) -> None:
    program = started_program("train.py", f"loader = {call}\n")
    assert (program is not None and program.workers is not None) is found


def test_programs_that_are_too_large_or_nested_are_left_alone() -> None:
    assert started_program("a.py", "model.cuda()\n" + "#" * (1 << 20)) is None
    assert started_program("a.py", f"cuda = {'(' * 5000}{')' * 5000}\n") is None
