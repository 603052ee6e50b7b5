"""The releases that can satisfy a wish, each with the requirements of its GPU build."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from whygpu.model.install_plan import Candidate, TableEdition
from whygpu.model.release import Release
from whygpu.tables.distributions import PROVIDERS
from whygpu.tables.metal_builds import OTHERWISE, WITHOUT, MetalBuild, metal_build
from whygpu.tables.platform_builds import build_without_cuda
from whygpu.tables.tensorflow_builds import build_of
from whygpu.tables.torch_indexes import build_code, cuda_of, indexes_for, tag_of
from whygpu.tables.versions import release_numbers

AND_CUDA = "and-cuda"
_HAS_AND_CUDA = re.compile(r"""extra\s*==\s*['"]and[-_]cuda['"]""")
_JAX_EXTRA = re.compile(
    r"jax[-_]cuda(\d+)[-_]plugin\s*(?:\[with[-_]cuda\])?[^\[;]*;.*extra\s*==\s*['\"](cuda\d+)['\"]"
)
"""Up to 0.4.29 the extra names NVIDIA's packages itself, later the plug-in's own extra does."""
_NO_PLUGIN = "its GPU builds were never on the package index, only on the project's own page"


class Table:
    """The release table, by package; versions from old to new."""

    def __init__(
        self,
        versions_of: Callable[[str], Sequence[Release]],
        edition: TableEdition | None = None,
        installed: Sequence[Release] = (),
    ) -> None:
        """`installed` are releases newer than the table, as their installed files describe them."""
        self._versions_of = versions_of
        self.edition = edition
        self._installed: dict[str, list[Release]] = {}
        for row in installed:
            self._installed.setdefault(row.package, []).append(row)

    def versions(self, package: str) -> Sequence[Release]:
        rows = self._versions_of(package)
        newer = self._installed.get(package)
        return (*rows, *newer) if newer else rows

    def __contains__(self, package: str) -> bool:
        return bool(self.versions(package))

    @property
    def name(self) -> str:
        return f"this table of {self.edition.date}" if self.edition else "this table"

    def remark(self, row: Release) -> str:
        """What to know about a row that is not from the table; empty for the others."""
        if row not in self._installed.get(row.package, ()):
            return ""
        return f"is newer than {self.name}, and was judged by its installed files"


def candidates(
    framework: str, table: Table, platform: str = "linux_x86_64"
) -> tuple[Candidate, ...]:
    """Every build of a framework for a platform, newest release first.

    The releases that have no build there are among them too, so that the answer can say why.
    """
    if framework == "torch":
        found = _torch(table, platform)
    else:
        found = _FINDERS[framework](table)
        if platform.startswith("macosx") and framework != "keras":
            # Builds for several CUDA releases are one build on a Mac.
            by_version = {item.version: item for item in found}
            found = (on_mac(item, platform) for item in by_version.values())
    return tuple(item._replace(remark=table.remark(item.parts[0])) for item in found)


def on_mac(candidate: Candidate, platform: str) -> Candidate:
    """The build of a release on a Mac, which uses Metal instead of CUDA."""
    plain = candidate._replace(
        extra="",
        parts=candidate.parts[:1],
        cuda="",
        cudnn="",
        architectures=(),
        unsearched=(),
        uses="metal",
        unread="",
    )
    found = metal_build(candidate.package, candidate.version, platform)
    if found is None:
        without = WITHOUT.get(candidate.framework, OTHERWISE)
        return plain._replace(no_build=f"cannot use the GPU on macOS: {without}")
    plugins = (_plugin(found),) if found.plugin else ()
    return plain._replace(parts=(*plain.parts, *plugins), no_build="")


def _plugin(build: MetalBuild) -> Release:
    return Release(
        package="tensorflow-metal",
        version=build.plugin,
        file=build.source,
        pythons=build.plugin_pythons,
        requires_python="",
        platforms=tuple(f"macosx_12_0_{machine}" for machine in build.machines),
        glibc="",
        cuda="",
        cudnn="",
        architectures=(),
        requires=(),
        unsearched=(),
    )


def _plain(framework: str, row: Release, extra: str = "", no_build: str = "") -> Candidate:
    return Candidate(
        framework=framework,
        package=row.package,
        version=row.version,
        extra=extra,
        parts=(row,),
        cuda=row.cuda,
        cudnn=row.cudnn,
        architectures=row.architectures,
        unsearched=row.unsearched,
        no_build="" if row.unread else no_build,
        unread=row.unread,
    )


def _tensorflow(table: Table) -> Iterator[Candidate]:
    """Before 2.1 the package with CUDA was tensorflow-gpu."""
    by_version = {row.version: row for row in table.versions("tensorflow-gpu") if row.cuda}
    both = {row.version: row for row in table.versions("tensorflow")}
    # 2.15.0.post1 has the same numbers as 2.15.0, and comes after it.
    versions = sorted(by_version.keys() | both.keys(), key=lambda v: (release_numbers(v), v))
    for version in reversed(versions):
        row = both.get(version)
        if row is None or (not row.cuda and version in by_version):
            row = by_version[version]
        yield tensorflow_build(row)


def tensorflow_build(row: Release) -> Candidate:
    """The GPU build of a release of tensorflow or tensorflow-gpu."""
    brings_cuda = any(_HAS_AND_CUDA.search(line) for line in row.requires)
    no_build = "" if row.cuda else "is built without CUDA"
    found = _plain("tensorflow", row, AND_CUDA if brings_cuda else "", no_build)
    return found._replace(cuda=_exact_cuda(row))


def _exact_cuda(row: Release) -> str:
    """The exact CUDA release: linked binaries show only the major number."""
    known = build_of(row.version)
    if known is None or not row.cuda or "." in row.cuda:
        return row.cuda
    return known.cuda


def _jax(table: Table) -> Iterator[Candidate]:
    for row in reversed(table.versions("jax")):
        yield from jax_builds(row, table)


def jax_builds(row: Release, table: Table) -> Iterator[Candidate]:
    """The GPU builds of a release of JAX, one for each extra, newest CUDA first."""
    extras = {
        match.group(2): int(match.group(1))
        for line in row.requires
        if (match := _JAX_EXTRA.search(line))
    }
    for extra, cuda in sorted(extras.items(), key=lambda item: -item[1]):
        yield _jax_with(row, extra, cuda, table)
    if not extras:
        yield _plain("jax", row, no_build=_NO_PLUGIN)


def _jax_with(row: Release, extra: str, cuda: int, table: Table) -> Candidate:
    plugin = _companion(table.versions(f"jax-cuda{cuda}-plugin"), row.version)
    pjrt = _companion(table.versions(f"jax-cuda{cuda}-pjrt"), row.version)
    parts = tuple(part for part in (row, plugin, pjrt) if part is not None)
    if plugin is None:
        return _plain("jax", row, extra, f"its jax-cuda{cuda}-plugin is not on the package index")
    codes = plugin.architectures or (pjrt.architectures if pjrt else ())
    return Candidate(
        framework="jax",
        package="jax",
        version=row.version,
        extra=extra,
        parts=parts,
        cuda=plugin.cuda or (pjrt.cuda if pjrt else "") or str(cuda),
        cudnn=plugin.cudnn or (pjrt.cudnn if pjrt else ""),
        architectures=codes,
        unsearched=(),
        unread=plugin.unread,
    )


def _companion(rows: Sequence[Release], version: str) -> Release | None:
    """The newest release of a plugin that is not newer than the framework."""
    limit = release_numbers(version)
    return next((row for row in reversed(rows) if release_numbers(row.version) <= limit), None)


def _cupy(table: Table) -> Iterator[Candidate]:
    packages = [row.name for row in PROVIDERS if row.name.startswith("cupy-cuda")]
    rows = [row for package in packages for row in table.versions(package)]
    rows.sort(key=lambda row: (release_numbers(row.version), _cupy_cuda(row)), reverse=True)
    yield from map(cupy_build, rows)


def cupy_build(row: Release) -> Candidate:
    return _plain("cupy", row)._replace(cuda=row.cuda or ".".join(map(str, _cupy_cuda(row))))


def _cupy_cuda(row: Release) -> tuple[int, ...]:
    """The CUDA release in its name: cupy-cuda12x is 12, cupy-cuda102 is 10.2."""
    digits = row.package.removeprefix("cupy-cuda")
    if digits.endswith("x"):
        return (int(digits[:-1]),)
    return (int(digits[:-1]), int(digits[-1]))


def _torch(table: Table, platform: str) -> Iterator[Candidate]:
    """Each release with the build of the default package index, then those of PyTorch's indexes."""
    for row in reversed(table.versions("torch")):
        default = tag_of(row.cuda)
        tags = () if row.unread else indexes_for(platform, _minor(row.version))
        if not tags or build_without_cuda("torch", row.version, platform) is None:
            yield torch_build(row, platform)
            tags = tuple(tag for tag in tags if tag != default)
        # The CUDA of the default index is the one that PyTorch tests most.
        for tag in sorted(tags, key=lambda tag: (tag != default, -tags.index(tag))):
            yield torch_build(row, platform, tag)


def torch_build(row: Release, platform: str, tag: str = "") -> Candidate:
    """The build of a release on the default package index, or on one of PyTorch's indexes."""
    plain = _plain("torch", row, no_build="" if row.cuda else "is built without CUDA")
    if platform.startswith("macosx"):
        return on_mac(plain, platform)
    return _on_index(plain, tag, platform) if tag else _with_code(plain, tag_of(row.cuda), platform)


def _minor(version: str) -> tuple[int, int]:
    major, minor = (*release_numbers(version), 0)[:2]
    return major, minor


def _with_code(candidate: Candidate, tag: str, platform: str) -> Candidate:
    """The candidate with the GPU code of that platform: rows were read from x86_64 wheels."""
    if platform == "linux_x86_64":
        return candidate
    code = build_code(platform, _minor(candidate.version), tag)
    return candidate._replace(architectures=code.architectures if code else ())


def _on_index(plain: Candidate, tag: str, platform: str) -> Candidate:
    (row,) = plain.parts
    code = build_code(platform, _minor(row.version), tag)
    wheel = row._replace(
        file=f"{row.file}; the build on index {tag}: {code.source if code else 'not read'}",
        # The index has wheels for every platform that has a row, the default index may not.
        platforms=row.platforms if row.has_wheel_for(platform) else (platform,),
        requires=requires_on(row, tag),
    )
    return plain._replace(
        parts=(wheel,),
        cuda=cuda_of(tag),
        cudnn=plain.cudnn if tag == tag_of(row.cuda) else "",
        architectures=code.architectures if code else (),
        no_build="",
        torch_index=tag,
        doubt=(
            f"likely has a build on PyTorch's index {tag} for this platform ({code.source})"
            if code and not code.is_certain
            else ""
        ),
    )


def requires_on(row: Release, tag: str) -> tuple[str, ...]:
    """What the build of a release on another index requires, as far as it is known.

    Builds for other CUDA releases require other packages of NVIDIA, which were not read.
    """
    if tag == tag_of(row.cuda):
        return row.requires
    return without_nvidia(row.requires)


def without_nvidia(requires: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(line for line in requires if not line.startswith(("nvidia-", "cuda-")))


def _onnxruntime(table: Table) -> Iterator[Candidate]:
    yield from map(onnxruntime_build, reversed(table.versions("onnxruntime-gpu")))


def onnxruntime_build(row: Release) -> Candidate:
    return _plain("onnxruntime", row)


def _keras(table: Table) -> Iterator[Candidate]:
    for row in reversed(table.versions("keras")):
        yield _plain("keras", row)


_FINDERS = {
    "tensorflow": _tensorflow,
    "jax": _jax,
    "cupy": _cupy,
    "onnxruntime": _onnxruntime,
    "keras": _keras,
}
