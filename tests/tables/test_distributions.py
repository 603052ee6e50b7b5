"""The table of distributions is sound, and says what matters."""

from __future__ import annotations

from tests.cases import each
from whygpu.tables.distributions import PROVIDERS, Distribution, matters, normalised, provider


def test_names_are_unique_and_normalised() -> None:
    names = [row.name for row in PROVIDERS]
    assert len(set(names)) == len(names)
    assert [normalised(name) for name in names] == names


@each("row", PROVIDERS, ids=lambda row: row.name)
def test_every_row_is_complete(row: Distribution) -> None:
    assert provider(row.name) is row
    assert row.source.startswith("https://")
    assert row.module.isidentifier()


@each("name", ["tensorflow", "nvidia-cudnn-cu12", "jax-cuda13-plugin", "cupy-cuda12x", "ml-dtypes"])
def test_what_takes_part_in_gpu_use_matters(name: str) -> None:
    assert matters(name)


@each("name", ["flask", "tensorboard", "tensorflow-estimator", "jaxtyping"])
def test_what_does_not_take_part_does_not_matter(name: str) -> None:
    assert not matters(name)
