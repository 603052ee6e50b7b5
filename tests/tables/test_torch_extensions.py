"""The table of PyTorch's extensions is sound, and knows which releases belong together."""

from __future__ import annotations

from tests.cases import each
from whygpu.tables.torch_extensions import (
    EXTENSIONS,
    companion_release,
    extension_named,
    extension_that_registers,
    extension_with,
    is_only_native,
)


def test_every_row_has_a_source_and_no_name_stands_twice() -> None:
    assert all(row.source.startswith("https://") for row in EXTENSIONS)
    names = [name for row in EXTENSIONS for name in (*row.modules, *row.compiled)]
    assert len(set(names)) == len(names)
    operators = [name for row in EXTENSIONS for name in row.operators]
    assert len(set(operators)) == len(operators)


def test_an_extension_is_found_by_module_by_operator_and_by_name() -> None:
    flash = extension_named("flash-attn")
    assert flash is not None
    assert extension_with("flash_attn.bert_padding") is flash
    assert extension_with("flash_attn_2_cuda") is flash
    assert extension_that_registers("_moe_C") is extension_named("vllm")
    assert extension_with("torch") is extension_that_registers("aten") is None


def test_only_compiled_files_are_native() -> None:
    assert is_only_native("flash_attn_2_cuda")
    assert not is_only_native("flash_attn")
    assert not is_only_native("numpy")


@each(
    ("name", "torch", "release"),
    [
        ("torchvision", "2.1.0+cu121", "0.16"),
        ("torchvision", "2.0.1", "0.15"),
        ("torchvision", "1.13.1", "0.14"),
        ("torchvision", "1.4.0", "0.5"),
        ("torchvision", "1.3.0", ""),
        ("torchvision", "3.0.0", ""),
        ("torchvision", "2", ""),
        ("torchaudio", "2.8.0", "2.8"),
        ("torchaudio", "1.13.0", "0.13"),
        ("torchaudio", "1.6.0", ""),
        ("torchaudio", "3.0.0", ""),
        ("flash-attn", "2.1.0", ""),
        ("torchvision", "", ""),
    ],
)
def test_the_release_that_belongs_to_a_pytorch(name: str, torch: str, release: str) -> None:
    assert companion_release(name, torch) == release
