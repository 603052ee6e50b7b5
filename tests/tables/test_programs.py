"""The tables behind lint hold together."""

from __future__ import annotations

from tests.cases import each
from whygpu.causes.evidence.runtime_starts import MOMENTS
from whygpu.tables.device_names import ROWS as WRONG_NAMES
from whygpu.tables.device_names import right_jax_option, right_name
from whygpu.tables.tensorflow_names import EVER, REMOVED, SESSION_API, SINCE_2
from whygpu.tables.torch_names import MODULES as TORCH_NAMES
from whygpu.tables.variable_moments import ROWS
from whygpu.tables.variables import row_of


@each("row", ROWS, ids=lambda row: f"{row.variable} {row.moment}")
def test_every_moment_is_found_in_programs_and_says_what_shows_it(row: object) -> None:
    assert row.moment in MOMENTS  # type: ignore[attr-defined]
    assert row.seen  # type: ignore[attr-defined]
    assert row_of(row.variable) is not None  # type: ignore[attr-defined]


def test_every_moment_is_of_use() -> None:
    assert {row.moment for row in ROWS} == set(MOMENTS)


def test_no_row_is_there_twice() -> None:
    assert len({(row.variable, row.moment) for row in ROWS}) == len(ROWS)


def test_a_name_is_not_removed_and_new_at_once() -> None:
    assert SESSION_API <= REMOVED
    assert not REMOVED & {name.partition(".")[0] for name in SINCE_2}


@each(("wrong", "right"), WRONG_NAMES.items())
def test_what_is_meant_by_a_wrong_name_is_not_wrong_itself(wrong: str, right: str) -> None:
    assert right_name(wrong) == right
    assert right_name(right) is None


@each(
    ("path", "right"),
    [
        ("tensorflow.config.set_memory_growth", "tensorflow.config.experimental.set_memory_growth"),
        (
            "tensorflow.config.experimental_set_memory_growth",
            "tensorflow.config.experimental.set_memory_growth",
        ),
        ("tensorflow.config.list_phyiscal_devices", "tensorflow.config.list_physical_devices"),
        ("tensorflow.config.nonsense", ""),
        ("tensorflow.config.experimental.nonsense", None),
        ("tensorflow.config.list_physical_devices", None),
        ("tensorflow.config.__name__", None),
        ("tensorflow.nn.relu", None),
        ("torch.cuda.is_available", None),
        ("torch.cuda.emtpy_cache", "torch.cuda.empty_cache"),
        ("torch.cuda.nonsense", None),
        ("torch.cuda.amp.autocast", None),
        ("torch.backends.cudnn.benckmark", "torch.backends.cudnn.benchmark"),
        ("torch.backend.cudnn.deterministic", "torch.backends.cudnn.deterministic"),
    ],
)
def test_corrections(path: str, right: str | None) -> None:
    assert right_name(path) == right


@each(
    ("option", "right"),
    [
        ("jax_platfrom_name", "jax_platform_name"),
        ("jax_enable_x_64", "jax_enable_x64"),
        ("jax_platforms", ""),
        ("jax_explain_cache_misses", ""),
        ("platform_name", ""),
    ],
)
def test_options_of_jax(option: str, right: str) -> None:
    assert right_jax_option(option) == right


def test_every_name_that_there_ever_was_is_right() -> None:
    for module, names in EVER.items():
        for name in names:
            assert right_name(f"tensorflow.{module}.{name}") is None
    for module, names in TORCH_NAMES.items():
        for name in names:
            assert right_name(f"{module}.{name}") is None
