"""Mutation testing of the pure modules: break one expression at a time and see a test notice it.

    python -m tools.mutate --module diagnosis/engine
    python -m tools.mutate --module planner --sample 100 --seed 1 --json result.json

One process imports the modules, collects the tests and never runs one. A fork of it runs every test
once and reports which lines each test executes. For each mutant another fork replaces the code of
one function in place and runs the tests that execute its line, until one fails.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import functools
import gc
import importlib
import json
import math
import os
import pathlib
import pickle
import random
import re
import resource
import select
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, NoReturn

import pytest
from _pytest.runner import runtestprotocol

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "whygpu"
INSIDE = SOURCE / "work" / "inside"

SUITES: Mapping[str, tuple[str, ...]] = {
    "differences": ("tests/differences",),
    "diagnosis": ("tests/diagnosis",),
    "planner": ("tests/planner",),
    "memory": ("tests/memory",),
    "comparer": ("tests/comparer",),
    "work": ("tests/comparer",),
}
"""The tests of each package: its own. A fault that only distant tests notice is hard to fix."""

CPU_SECONDS = 3
CPU_TIMES = 3
"""A test of a mutant may use so many seconds more than so many times what it takes (while it is
traced); one that uses more has most likely lost the end of a loop."""
WALL_SECONDS = 240
BASELINE_SECONDS = 1800
MEMORY_BYTES = 4 << 30

Outcome = Literal["killed", "survived", "not covered"]


class Mutant(NamedTuple):
    """One change: in `node`, the field (or the item of it) that becomes `replacement`."""

    node: ast.AST
    field: str
    place: int | None
    replacement: object
    statement: ast.stmt
    """The statement at the top of the module that holds the change."""
    lines: range
    """The lines of the innermost statement: a test that executes none of them sees no change."""
    line: int
    change: str

    def apply(self) -> None:
        if self.place is None:
            setattr(self.node, self.field, self.replacement)
        else:
            getattr(self.node, self.field)[self.place] = self.replacement


class Result(NamedTuple):
    module: str
    line: int
    change: str
    outcome: Outcome


# What is changed


_COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_WORD = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
"""Strings of this form are data (a verdict, the name of a framework); others are text."""


def mutants(tree: ast.Module) -> Iterator[Mutant]:
    """Every change that is made to a module, in the order of its lines."""
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef | ast.Import | ast.ImportFrom | ast.If):
            # The body of a class is not executed again; its methods are functions like others.
            for inner in ast.iter_child_nodes(statement):
                if isinstance(inner, ast.FunctionDef):
                    yield from _inside(inner, inner)
        elif isinstance(statement, ast.FunctionDef | ast.Assign | ast.AnnAssign):
            yield from _inside(statement, statement)


def _inside(
    node: ast.AST, statement: ast.stmt, nearest: ast.stmt | None = None
) -> Iterator[Mutant]:
    nearest = node if isinstance(node, ast.stmt) else nearest or statement
    for field, place, child in _children(node):
        for replacement in _replacements(child):
            lines = _lines_of(child if isinstance(child, ast.stmt) else nearest)
            line = getattr(child, "lineno", lines.start)
            change = f"{_shown(child)} -> {_shown(replacement)}"
            yield Mutant(node, field, place, replacement, statement, lines, line, change)
        yield from _inside(child, statement, nearest)


def _lines_of(statement: ast.stmt) -> range:
    """Its own lines, without those of the statements inside it."""
    inner = [each.lineno for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt)]
    end = statement.end_lineno or statement.lineno
    return range(statement.lineno, min([*inner, end + 1]))


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    """What is executed each time: no annotations, defaults, decorators, docstrings or text."""
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Raise) or _is_literal_type(node):
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "args", "decorator_list") and isinstance(
            node, ast.FunctionDef | ast.AnnAssign | ast.arg
        ):
            continue
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            for place, item in enumerate(value):
                if isinstance(item, ast.AST) and not _is_docstring(item):
                    yield field, place, item


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_literal_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal"


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)]:
                yield _with(node, "ops", [*node.ops[:place], other(), *node.ops[place + 1 :]])
    elif isinstance(node, ast.BoolOp):
        yield _with(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for place in range(len(node.values)):
            left = [*node.values[:place], *node.values[place + 1 :]]
            yield left[0] if len(left) == 1 else _with(node, "values", left)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield _with(node, "op", _ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.Constant):
        yield from (_with(node, "value", value) for value in _other_constants(node.value))
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield _with(node, "value", ast.copy_location(ast.Constant(None), node))
    elif isinstance(node, ast.Expr | ast.Continue | ast.Break):
        yield ast.copy_location(ast.Pass(), node)
    if isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(
        node.test, ast.Compare | ast.BoolOp | ast.UnaryOp
    ):
        yield _with(node, "test", ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test))
    if isinstance(node, ast.comprehension):
        for place in range(len(node.ifs)):
            yield _with(node, "ifs", [*node.ifs[:place], *node.ifs[place + 1 :]])


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _other_constants(value: object) -> Iterator[object]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, float):
        yield value * 1.5 if value else 1.0
    elif isinstance(value, str) and _WORD.fullmatch(value):
        yield f"not-{value}"


def _with(node: ast.AST, field: str, value: object) -> ast.AST:
    changed = copy.copy(node)
    setattr(changed, field, value)
    return changed


def _shown(node: object) -> str:
    assert isinstance(node, ast.AST)
    if isinstance(node, ast.If | ast.While):
        return f"if {ast.unparse(node.test)}"
    if isinstance(node, ast.comprehension):
        return " ".join(f"if {ast.unparse(test)}" for test in node.ifs) or "no condition"
    return " ".join(ast.unparse(node).split())


# How a change is carried out


class Module:
    """A module of ours, loaded, with its source and the functions that were made of it."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.name = str(path.relative_to(SOURCE).with_suffix(""))
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.module = importlib.import_module(_import_name(path))

    @functools.cached_property
    def functions(self) -> list[types.FunctionType]:
        """Also those that a decorator or a class holds."""
        return [
            item
            for item in gc.get_objects()
            if type(item) is types.FunctionType and item.__code__.co_filename == str(self.path)
        ]

    def carry_out(self, mutant: Mutant) -> None:
        mutant.apply()
        tree = ast.fix_missing_locations(self.tree)
        if isinstance(mutant.statement, ast.FunctionDef):
            self._replace_code(compile(tree, str(self.path), "exec"))
        else:
            self._assign_again(mutant.statement)

    def _replace_code(self, module: types.CodeType) -> None:
        fresh = {(code.co_name, code.co_firstlineno): code for code in _codes(module)}
        for function in self.functions:
            code = function.__code__
            function.__code__ = fresh.get((code.co_name, code.co_firstlineno), code)

    def _assign_again(self, statement: ast.stmt) -> None:
        """Execute an assignment of the module once more, and renew what others imported of it."""
        before = dict(vars(self.module))
        code = compile(ast.Module([statement], []), str(self.path), "exec")
        exec(code, vars(self.module))
        for name, value in before.items():
            new = vars(self.module)[name]
            if new is value:
                continue
            for other in list(sys.modules.values()):
                if getattr(other, "__dict__", {}).get(name) is value:
                    setattr(other, name, new)


def _loaded(path: pathlib.Path) -> Module | None:
    try:
        return Module(path)
    except ModuleNotFoundError as error:
        # Some modules of work/inside need a framework that is not installed beside whygpu.
        print(f"left out: {path.relative_to(SOURCE)}: {error}", file=sys.stderr)
        return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _import_name(path: pathlib.Path) -> str:
    base = INSIDE if path.is_relative_to(INSIDE) else SOURCE.parent
    return ".".join(path.relative_to(base).with_suffix("").parts)


# How tests are run


class Known(NamedTuple):
    """What the tests do without a mutant."""

    lines: Mapping[int, frozenset[tuple[str, int]]]
    """By the place of a test: the lines of our modules that it executes."""
    seconds: Mapping[int, float]


class Campaign:
    """A plugin of pytest that runs mutants in place of the tests that were collected."""

    def __init__(self, paths: Sequence[pathlib.Path], options: argparse.Namespace) -> None:
        self.paths = paths
        self.options = options
        self.results: list[Result] = []
        self.collected = self.interrupted = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.collected = not session.testsfailed
        if not self.collected:
            return True
        items = session.items
        gc.unfreeze()  # pytest has hidden from it what was there before
        modules = [module for path in self.paths if (module := _loaded(path)) is not None]
        known, failing = _forked(lambda: _baseline(items, self.paths), BASELINE_SECONDS)
        for module in modules:
            _ = module.functions  # found once, here, and not in every fork
        gc.freeze()  # a collection in a fork would copy every page
        for place in failing:
            print("left out, because it fails anyway:", items[place].nodeid, file=sys.stderr)
        chosen = [(module, mutant) for module in modules for mutant in mutants(module.tree)]
        if self.options.sample and self.options.sample < len(chosen):
            draw = random.Random(self.options.seed)
            places = sorted(draw.sample(range(len(chosen)), self.options.sample))
            chosen = [chosen[place] for place in places]
        progress = Progress(len(chosen))
        try:
            for module, mutant in chosen:
                covering = _covering(module, mutant, items, known)
                tests = [(items[place], known.seconds[place]) for place in covering]
                outcome = _judge(module, mutant, tests)
                self.results.append(Result(module.name, mutant.line, mutant.change, outcome))
                progress.add(self.results[-1])
        except KeyboardInterrupt:
            self.interrupted = True
        progress.close()
        return True


class Progress:
    """One line on standard error that is written over and over."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = self.survived = 0
        self.start = time.monotonic()

    def add(self, result: Result) -> None:
        self.done += 1
        self.survived += result.outcome != "killed"
        left = (time.monotonic() - self.start) / self.done * (self.total - self.done)
        if sys.stderr.isatty() or self.done % 50 == 0:
            end = "\r" if sys.stderr.isatty() else "\n"
            text = f"{self.done}/{self.total} mutants, {self.survived} survive, {left:.0f} s left"
            print(f"{text:<70}", end=end, file=sys.stderr, flush=True)

    def close(self) -> None:
        if sys.stderr.isatty():
            print(file=sys.stderr)


def _baseline(
    items: Sequence[pytest.Item], paths: Sequence[pathlib.Path]
) -> tuple[Known, list[int]]:
    """Run every test once: which lines it executes, how long it takes, and whether it passes."""
    files = frozenset(map(str, paths))
    lines: dict[int, frozenset[tuple[str, int]]] = {}
    seconds: dict[int, float] = {}
    failing: list[int] = []
    caches = [item for item in gc.get_objects() if isinstance(item, functools._lru_cache_wrapper)]
    for place, item in enumerate(items):
        # What an earlier test left in a cache would hide what this one executes.
        for cache in caches:
            cache.cache_clear()
        start = time.process_time()
        with _traced(files) as executed:
            passes = _passes(item)
        seconds[place] = time.process_time() - start
        lines[place] = frozenset(executed if passes else ())
        if not passes:
            failing.append(place)
    return Known(lines, seconds), failing


@contextlib.contextmanager
def _traced(files: frozenset[str]) -> Iterator[set[tuple[str, int]]]:
    executed: set[tuple[str, int]] = set()

    def on_line(frame: types.FrameType, event: str, argument: object) -> Any:
        executed.add((frame.f_code.co_filename, frame.f_lineno))
        return on_line

    def on_call(frame: types.FrameType, event: str, argument: object) -> Any:
        return on_line(frame, event, argument) if frame.f_code.co_filename in files else None

    sys.settrace(on_call)
    try:
        yield executed
    finally:
        sys.settrace(None)


def _covering(
    module: Module, mutant: Mutant, items: Sequence[pytest.Item], known: Known
) -> list[int]:
    """The tests that execute a mutant's line: those of the module's own test file first."""
    # An assignment of the module is executed by the import: any function may depend on it.
    in_function = isinstance(mutant.statement, ast.FunctionDef)
    lines = mutant.lines if in_function else range(1, sys.maxsize)
    own = f"test_{module.path.stem}.py"
    found = [
        place
        for place, item in enumerate(items)
        if any(path == str(module.path) and line in lines for path, line in known.lines[place])
        # A test may look at what the module assigns without calling anything of it.
        or (item.path.name == own and not in_function)
    ]
    return sorted(found, key=lambda place: (items[place].path.name != own, known.seconds[place]))


def _judge(module: Module, mutant: Mutant, tests: Sequence[tuple[pytest.Item, float]]) -> Outcome:
    """By these tests, each with the seconds that it takes."""
    if not tests:
        return "not covered"

    def survives() -> bool:
        module.carry_out(mutant)
        for item, seconds in tests:
            limit = math.ceil(time.process_time() + CPU_SECONDS + CPU_TIMES * seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            if not _passes(item):
                return False
        return True

    try:
        return "survived" if _forked(survives) else "killed"
    except ChildDied:
        return "killed"


def _passes(item: pytest.Item) -> bool:
    return not any(report.failed for report in runtestprotocol(item, nextitem=None, log=False))


class ChildDied(Exception):
    """A fork ended without an answer: an endless loop, a crash, too much memory."""


def _forked(work: Callable[[], Any], wall_seconds: float = WALL_SECONDS) -> Any:
    """What `work` returns in a fork of this process, which has limits and prints nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _answer(work, writer)
    os.close(writer)
    answer = b""
    deadline = time.monotonic() + wall_seconds
    try:
        while select.select([reader], [], [], max(deadline - time.monotonic(), 0))[0]:
            part = os.read(reader, 1 << 20)
            if not part:
                break
            answer += part
    finally:
        os.close(reader)
        # The fork leads a session of its own, with whatever its tests have started.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if not answer:
        raise ChildDied
    return pickle.loads(answer)


def _answer(work: Callable[[], Any], writer: int) -> NoReturn:
    """In the fork: do the work, send what it returns, and end without any clean-up."""
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        data = pickle.dumps(work())
        while data:
            data = data[os.write(writer, data) :]
    finally:
        os._exit(0)


# The command


def chosen_modules(words: Sequence[str]) -> list[pathlib.Path]:
    """The files that `--module` names: a module or a folder below src/whygpu."""
    found: list[pathlib.Path] = []
    for word in words:
        path = SOURCE / word.removesuffix(".py")
        folder = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        found += [each for each in folder if each.name != "__init__.py"]
        if not all(each.is_file() for each in folder):
            sys.exit(f"there is no module {path}")
    return found


def summary(results: Sequence[Result]) -> str:
    """What survives, and the share of the mutants of each module that tests notice."""
    lines = [
        f"{each.module}.py:{each.line}: {each.change}  [{each.outcome}]"
        for each in results
        if each.outcome != "killed"
    ]
    for module in dict.fromkeys(each.module for each in results):
        own = [each for each in results if each.module == module]
        killed = sum(each.outcome == "killed" for each in own)
        lines.append(f"{module:<40} {killed:>5} of {len(own):>5} killed ({killed / len(own):.1%})")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("--module", action="append", required=True, help="such as planner/changes")
    parser.add_argument("--tests", action="append", help="in place of the tests of the package")
    parser.add_argument("--sample", type=int, default=0, help="only so many mutants, drawn")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--json", type=pathlib.Path, help="write every result here")
    options = parser.parse_args(words)
    paths = chosen_modules(options.module)
    packages = dict.fromkeys(path.relative_to(SOURCE).parts[0] for path in paths)
    tests = options.tests or [test for package in packages for test in SUITES[package]]
    sys.path.append(str(INSIDE))
    campaign = Campaign(paths, options)
    plugins = ("cacheprovider", "xdist", "terminal")
    without = [word for plugin in plugins for word in ("-p", f"no:{plugin}")]
    # `-q`, which the project sets, is an option of the terminal.
    set_anew = ["-o", "addopts=", "--import-mode=importlib"]
    pytest.main([*without, *set_anew, *dict.fromkeys(tests)], plugins=[campaign])
    if not campaign.collected:
        print("the tests could not be collected", file=sys.stderr)
        return 2
    print(summary(campaign.results))
    if options.json:
        rows = [result._asdict() for result in campaign.results]
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 130 if campaign.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
