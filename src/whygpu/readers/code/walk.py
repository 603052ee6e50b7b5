"""Walks a module's statements in the order of execution, and functions at their calls."""

from __future__ import annotations

import ast
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from whygpu.model.events import Call, Event, Frame, Import, Setting
from whygpu.model.program import Followed
from whygpu.model.values import Constant, Defined, Definition, Instance, Name, Result, Value
from whygpu.readers import limits
from whygpu.readers.code.evaluate import Evaluator, not_empty, parameters_of
from whygpu.readers.code.scope import Scope, joined, recovered

DEEPEST = 3
"""How many calls deep functions of the file are followed."""
MOST_EVENTS = 30_000
"""The limit on following calls."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINING = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, *_FUNCTIONS)
"""What the functions of an imported file may use; the rest of that file is not walked."""
_ENDINGS = frozenset({ast.Return, ast.Raise, ast.Continue, ast.Break})
_EXITS = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit"})


class ImportedModule(NamedTuple):
    """Another file of the project, with the functions that are followed where they are called."""

    path: str
    tree: ast.Module
    wrappers: frozenset[str]


FindModule = Callable[[str, int], "ImportedModule | None"]
"""By the name of the module and the number of dots before it in the import statement."""


class Walked(NamedTuple):
    events: tuple[Event, ...]
    followed: dict[ast.AST, Followed]
    """The functions of other files that were walked."""


def walk(
    tree: ast.Module,
    wanted_lines: Sequence[int] | None = None,
    find_module: FindModule = lambda module, level: None,
) -> Walked:
    """Everything that the module does, then what the functions do that it does not call.

    Functions that nothing calls are left out if none of the wanted lines, in order, is in them.
    """
    walker = Walker(tree, wanted_lines, find_module)
    walker.block(tree.body)
    walker.uncalled()
    walker.finish()
    return Walked(tuple(walker.events), walker.followed)


class Walker(Evaluator):
    def __init__(
        self,
        tree: ast.Module,
        wanted_lines: Sequence[int] | None,
        find_module: FindModule = lambda module, level: None,
    ) -> None:
        super().__init__(tree)
        self._find_module = find_module
        self._there: dict[ast.AST, str] = {}
        """The functions of imported files, with their file."""
        self._site: ast.Call | None = None
        """The call in this file that has led into another one."""
        self.followed: dict[ast.AST, Followed] = {}
        self._wanted_lines = wanted_lines
        self.definitions: list[Definition] = []
        """The functions of this file, in order."""
        self._others: list[Definition] = []
        """Its classes, and the definitions of imported files."""
        self.walked: set[ast.AST] = set()
        """Functions whose body was walked. A nested one is defined anew each time it is passed."""
        self.stack: list[Definition] = []
        self.returned: list[Value] = []
        self.owning_class: Definition | None = None

    def block(self, body: list[ast.stmt]) -> bool:
        """Walk statements; returns whether the end of the block cannot be reached."""
        before = self.context
        ended = False
        for statement in body:
            kind = type(statement)
            handler = _STATEMENTS.get(kind)
            if handler is not None:
                ended = bool(handler(self, statement)) or ended
            else:
                for child in ast.iter_child_nodes(statement):
                    if isinstance(child, ast.expr):
                        self.value(child)
            if kind in _ENDINGS:
                ended = True
        self.context = before
        return ended

    def uncalled(self) -> None:
        """Each function that nothing here has called; it may be called after the module is read."""
        done = 0
        while done < len(self.definitions):
            definition = self.definitions[done]
            done += 1
            node = definition.node
            if node in self.walked or not isinstance(node, _FUNCTIONS) or not self._is_wanted(node):
                continue
            bound = Instance(definition.owner) if definition.owner else None
            self.context = (Frame("function", node),)
            self._run(definition, bound, (), {})

    def finish(self) -> None:
        for definition in (*self.definitions, *self._others):
            definition.finish()

    def _is_wanted(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        lines = self._wanted_lines
        if lines is None:
            return True
        return bisect_left(lines, node.lineno) < bisect_right(lines, node.end_lineno or node.lineno)

    # Calls of functions that this file defines.

    def run_definition(self, target: Defined, call: Call) -> Value:
        definition = target.definition
        if definition in self.stack or len(self.stack) >= DEEPEST:
            return Result(call)
        if len(self.events) > MOST_EVENTS or self.evaluated > limits.FOLLOWED_NODES:
            return Result(call)
        outer = self._site
        if definition.node in self._there:
            if definition.node in self.followed:
                # Once: a finding in it is shown at one call.
                return Result(call)
            self._site = outer or call.node
            self.followed[definition.node] = Followed(self._there[definition.node], self._site)
        before = self.context
        self.context = (*before, Frame("call", call.node))
        if isinstance(definition.node, ast.ClassDef):
            instance = Instance(definition)
            start = definition.members.get("__init__")
            if start is not None:
                self._run(start, instance, call.arguments, call.keywords)
            value: Value = instance
        else:
            value = self._run(definition, target.bound_to, call.arguments, call.keywords)
        self.context, self._site = before, outer
        return value

    def _run(
        self,
        definition: Definition,
        bound: Instance | None,
        arguments: tuple[Value, ...],
        keywords: dict[str, Value],
    ) -> Value:
        node = definition.node
        assert isinstance(node, _FUNCTIONS)
        self.walked.add(node)
        saved = (self.scope, self.owner, self.returned, self.owning_class)
        self.scope, self.owner, self.returned = Scope(definition.scope), node, []
        self.owning_class = None
        self._parameters(node.args, bound, arguments, keywords)
        self.stack.append(definition)
        self.block(node.body)
        self.stack.pop()
        returned = self.returned
        self.scope, self.owner, self.returned, self.owning_class = saved
        first = returned[0] if returned else None
        return first if all(value == first for value in returned) else None

    def _parameters(
        self,
        parameters: ast.arguments,
        bound: Instance | None,
        arguments: tuple[Value, ...],
        keywords: dict[str, Value],
    ) -> None:
        for parameter in parameters_of(parameters):
            self.scope.names[parameter.arg] = keywords.get(parameter.arg)
        given = arguments if bound is None else (bound, *arguments)
        for parameter, value in zip((*parameters.posonlyargs, *parameters.args), given):  # noqa: B905
            self.scope.names[parameter.arg] = value

    # Definitions and imports.

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.value(decorator)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            self.value(default)
        definition = Definition(node, self._visible_scope(), self.owning_class)
        self.definitions.append(definition)
        if self.owning_class is not None:
            self.owning_class.members[node.name] = definition
        self.scope.bind(node.name, Defined(definition))

    def _visible_scope(self) -> Scope:
        """Functions do not see the names of the class they are defined in."""
        if self.owning_class is not None and self.scope.outer is not None:
            return self.scope.outer
        return self.scope

    def _class(self, node: ast.ClassDef) -> None:
        definition = Definition(node, self.scope, None)
        self._others.append(definition)
        definition.bases = tuple(self.value(base) for base in node.bases)
        for base in definition.bases:
            if isinstance(base, Defined):
                definition.members.update(base.definition.members)
        outer_class, outer_scope = self.owning_class, self.scope
        self.owning_class, self.scope = definition, Scope(outer_scope)
        self.block(node.body)
        self.owning_class, self.scope = outer_class, outer_scope
        self.scope.bind(node.name, Defined(definition))

    def _wrappers(self, module: str, level: int) -> dict[str, Defined]:
        """The functions to follow of a file of the project; mostly there are none."""
        found = self._find_module(module, level)
        if found is None:
            return {}
        other = Walker(found.tree, None)
        other.block([node for node in found.tree.body if isinstance(node, _DEFINING)])
        self._others += (*other.definitions, *other._others)
        self._there |= {definition.node: found.path for definition in other.definitions}
        names = other.scope.names
        return {
            name: value for name in found.wrappers if isinstance(value := names.get(name), Defined)
        }

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.note(Import, alias.name, node)
            for name, value in self._wrappers(alias.name, 0).items():
                self.imported[f"{alias.name}.{name}"] = value
            if alias.asname is not None:
                self.scope.bind(alias.asname, Name(alias.name))
            else:
                top = alias.name.partition(".")[0]
                self.scope.bind(top, Name(top))

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        wrappers = self._wrappers(module, node.level)
        if not node.level:
            self.note(Import, module, node)
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name in wrappers:
                self.scope.bind(name, wrappers[alias.name])
            elif node.level:
                self.scope.bind(name, None)
            elif alias.name != "*":
                self.scope.bind(name, Name(f"{module}.{alias.name}"))

    # Plain statements.

    def _expression(self, node: ast.Expr) -> bool:
        value = self.value(node.value)
        return isinstance(value, Result) and value.call.path in _EXITS

    def _assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.bind(target, value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.bind(node.target, self.value(node.value))

    def _augmented(self, node: ast.AugAssign) -> None:
        self.value(node.value)
        # os.environ["XLA_FLAGS"] += " --more" sets it as well.
        self.bind(node.target, None)

    def _return(self, node: ast.Return) -> bool:
        self.returned.append(self.value(node.value))
        return True

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.scope.bind(target.id, None)
            elif isinstance(target, ast.Subscript):
                of, index = self.value(target.value), self.value(target.slice)
                if of == Name("os.environ") and isinstance(index, Constant):
                    self.note(Setting, str(index.value), target, value=None, unset=True)

    def _global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scope.declare_global(node.names)

    def _assert(self, node: ast.Assert) -> None:
        self.value(node.test)
        self.value(node.msg)
        facts = self.facts(node.test, True)
        self.context = (*self.context, Frame("if", node, 0, facts, node.test))

    # Branches.

    def _if(self, node: ast.If) -> bool:
        self.value(node.test)
        before, names = self.context, self.scope.names
        ends: list[bool] = []
        arms: list[dict[str, Value]] = []
        for arm, body in enumerate((node.body, node.orelse)):
            facts = self.facts(node.test, arm == 0)
            self.context = (*before, Frame("if", node, arm, facts, node.test))
            self.scope.names = dict(names)
            ends.append(self.block(body))
            arms.append(self.scope.names)
        self.context = before
        reached = [arm for arm, ended in zip(arms, ends, strict=True) if not ended]
        self.scope.names = names
        merged = joined(reached or arms)
        names.clear()
        names.update(merged)
        for arm, ended in enumerate(ends):
            if ended and not all(ends):
                # Only the other branch reaches what follows.
                facts = self.facts(node.test, arm == 1)
                self.context = (*before, Frame("if", node, 1 - arm, facts, node.test))
        return all(ends)

    def _loop(self, node: ast.For | ast.AsyncFor) -> None:
        over = self.value(node.iter)
        before = self.context
        self.context = (*before, Frame("loop", node, 0, not_empty(over)))
        self.bind(node.target, self.item_of(over))
        self.block(node.body)
        self.context = before
        self.block(node.orelse)

    def _while(self, node: ast.While) -> None:
        self.value(node.test)
        before = self.context
        facts = self.facts(node.test, True)
        self.context = (*before, Frame("loop", node, 0, facts, node.test))
        self.block(node.body)
        self.context = before
        self.block(node.orelse)

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        values = []
        for item in node.items:
            value = self.value(item.context_expr)
            values.append(value)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value)
        before = self.context
        self.context = (*before, Frame("with", node, values=tuple(values)))
        ended = self.block(node.body)
        self.context = before
        return ended

    def _try(self, node: Any) -> bool:
        before = self.context
        self.context = (*before, Frame("try", node))
        names = self.scope.names
        start = dict(names)
        ended = self.block(node.body)
        self.context = before
        ended = self.block(node.orelse) or ended
        merged = dict(names)
        for handler in node.handlers:
            self.scope.names = dict(start)
            self.context = before
            if handler.type is not None:
                self.value(handler.type)
            self.context = (*before, Frame("handler", handler))
            if handler.name:
                self.scope.bind(handler.name, None)
            if not self.block(handler.body):
                merged = self.scope.names if ended else recovered(merged, self.scope.names)
                ended = False
        self.context = before
        self.scope.names = names
        names.clear()
        names.update(merged)
        return self.block(node.finalbody) or ended

    def _match(self, node: ast.Match) -> None:
        self.value(node.subject)
        before, names = self.context, self.scope.names
        arms = [dict(names)]
        for arm, case in enumerate(node.cases):
            self.context = (*before, Frame("case", node, arm))
            self.scope.names = dict(names)
            if not self.block(case.body):
                arms.append(self.scope.names)
        self.context, self.scope.names = before, names
        merged = joined(arms)
        names.clear()
        names.update(merged)


_STATEMENTS: dict[type[ast.stmt], Callable[[Walker, Any], bool | None]] = {
    ast.FunctionDef: Walker._function,
    ast.AsyncFunctionDef: Walker._function,
    ast.ClassDef: Walker._class,
    ast.Import: Walker._import,
    ast.ImportFrom: Walker._import_from,
    ast.Expr: Walker._expression,
    ast.Assign: Walker._assign,
    ast.AnnAssign: Walker._annotated,
    ast.AugAssign: Walker._augmented,
    ast.Return: Walker._return,
    ast.Delete: Walker._delete,
    ast.Global: Walker._global,
    ast.Nonlocal: Walker._global,
    ast.Assert: Walker._assert,
    ast.If: Walker._if,
    ast.For: Walker._loop,
    ast.AsyncFor: Walker._loop,
    ast.While: Walker._while,
    ast.With: Walker._with,
    ast.AsyncWith: Walker._with,
    ast.Try: Walker._try,
    ast.Match: Walker._match,
}
if sys.version_info >= (3, 11):
    _STATEMENTS[ast.TryStar] = Walker._try
