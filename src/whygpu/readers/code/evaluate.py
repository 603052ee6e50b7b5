"""Evaluates expressions to values, and records the calls that they make."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from whygpu.model.events import (
    Assignment,
    Call,
    Combination,
    Context,
    Event,
    Fact,
    Frame,
    Mention,
    Setting,
    Taking,
)
from whygpu.model.values import (
    Combined,
    Constant,
    Defined,
    Either,
    Filtered,
    Instance,
    Item,
    Length,
    Member,
    Name,
    Result,
    Several,
    Value,
)
from whygpu.readers import limits
from whygpu.readers.code.facts import facts_of
from whygpu.readers.code.scope import Scope
from whygpu.readers.code.value_sizes import ValueSizes, is_short

FRAMEWORKS = frozenset({"tensorflow", "keras", "tf_keras", "torch", "jax"})
_ENVIRON = Name("os.environ")


class TooComplex(Exception):
    """Following the program would exceed a limit; the message says which."""


class Evaluator:
    """Walks expressions in the order of evaluation and records what they do."""

    def __init__(self, tree: ast.Module) -> None:
        self.sizes = ValueSizes()
        self._quiet = False
        self._frames = 0
        self._counted: Context = ()
        self.evaluated = 0
        """The number of expressions that were evaluated, again at each call."""
        self.events: list[Event] = []
        self.scope = Scope(None)
        self.context: Context = ()
        self.owner: ast.AST = tree
        self._names: dict[str, Value] = {}
        self.imported: dict[str, Defined] = {}
        """The functions of other files of the project that are followed, by their full name."""

    def note(self, event: type[Event], path: str, node: ast.AST, **more: Any) -> None:
        self._record(event(path, node, len(self.events), self.context, self.owner, **more))

    def _record(self, made: Event) -> None:
        self.events.append(made)
        if self.context is not self._counted:
            self._counted = self.context
            self._frames += len(self.context)
            if self._frames > limits.CONTEXT_FRAMES:
                raise TooComplex("it has too many conditions one after the other")

    def value(self, node: ast.expr | None) -> Value:
        if node is None:
            return None
        self.evaluated += 1
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return None

    def quietly(self, node: ast.expr) -> Value:
        """The value of an expression that was already walked."""
        length, quiet = len(self.events), self._quiet
        self._quiet = True
        value = self.value(node)
        self._quiet = quiet
        del self.events[length:]
        return value

    def facts(self, test: ast.expr, holds: bool) -> tuple[Fact, ...]:
        """What is known if a test holds, or if it does not.

        Discarded events need no facts. Computing them anyway would double the work with every
        level of nesting.
        """
        return () if self._quiet else facts_of(test, holds, self.quietly)

    def run_definition(self, target: Defined, call: Call) -> Value:
        """Walk the body of a function of this file at its call."""
        raise NotImplementedError

    # One method for each kind of expression.

    def _name(self, node: ast.Name) -> Value:
        value = self.scope.lookup(node.id)
        if type(value) is Name and value.path.partition(".")[0] in FRAMEWORKS:
            self._mention(value.path, node)
        return value

    def _mention(self, path: str, node: ast.expr) -> None:
        self._record(Mention(path, node, len(self.events), self.context, self.owner))

    def _attribute(self, node: ast.Attribute) -> Value:
        value = self.chain(node)
        if type(value) is Name and value.path.partition(".")[0] in FRAMEWORKS:
            self._mention(value.path, node)
        return value

    def chain(self, node: ast.expr) -> Value:
        """The value of a name or a chain of attributes, without recording that it was read."""
        attributes: list[str] = []
        while type(node) is ast.Attribute:
            attributes.append(node.attr)
            node = node.value
        of = self.scope.lookup(node.id) if type(node) is ast.Name else self.value(node)
        if type(of) is Name and attributes:
            return self._name_of(".".join((of.path, *reversed(attributes))))
        for attribute in reversed(attributes):
            of = self._member(of, attribute)
        return of

    def _member(self, of: Value, name: str) -> Value:
        kind = type(of)
        if kind is Name:
            return self._name_of(f"{of.path}.{name}")  # type: ignore[union-attr]
        if kind is Instance:
            return self._instance_attribute(of, name)  # type: ignore[arg-type]
        return self.sizes.bounded(Member(of, name))

    def _name_of(self, path: str) -> Value:
        """A name, made once: programs repeat the same names hundreds of times."""
        known = self._names.get(path)
        if known is None:
            known = self._names[path] = self.sizes.bounded(Name(path))
        return known

    def _instance_attribute(self, of: Instance, name: str) -> Value:
        if name in of.definition.members:
            return Defined(of.definition.members[name], of)
        if name in of.definition.attributes:
            return of.definition.attributes[name]
        return Member(of, name)

    def _constant(self, node: ast.Constant) -> Value:
        return Constant(node.value) if is_short(node.value) else None

    def _formatted(self, node: ast.JoinedStr) -> Value:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.value(part.value)
        return None

    def _several(self, node: ast.List | ast.Tuple) -> Value:
        items = tuple(self.value(item) for item in node.elts)
        if not items:
            return Constant(())
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return None
        return self.sizes.bounded(Several(items))

    def _subscript(self, node: ast.Subscript) -> Value:
        of = self.value(node.value)
        index = self.value(node.slice)
        if of is None or isinstance(node.slice, ast.Slice):
            return None
        if isinstance(index, Constant) and type(index.value) is int:
            if isinstance(of, Several) and -len(of.items) <= index.value < len(of.items):
                return of.items[index.value]
            item = self.sizes.bounded(Item(of, index.value))
            if isinstance(node.ctx, ast.Load) and isinstance(item, Item):
                self.note(Taking, "", node, value=item)
            return item
        return None

    def _unary(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(value, Constant):
            return Constant(-value.value) if isinstance(value.value, (int, float)) else None
        return None

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, Constant) and isinstance(right, Constant):
            texts = isinstance(left.value, str) and isinstance(right.value, str)
            if not texts or not isinstance(node.op, ast.Add):
                return None
            return self.sizes.bounded(Constant(left.value + right.value))
        if left is None or right is None or Combined in (type(left), type(right)):
            return None
        value = self.sizes.bounded(Combined(left, right))
        if isinstance(value, Combined):
            self.note(Combination, "", node, value=value)
        return value

    # Comparisons and dictionaries are frequent; walking them as any other node takes twice as long.

    def _comparison(self, node: ast.Compare) -> Value:
        self.value(node.left)
        for side in node.comparators:
            self.value(side)
        return None

    def _dictionary(self, node: ast.Dict) -> Value:
        for key, value in zip(node.keys, node.values, strict=True):
            self.value(key)
            self.value(value)
        return None

    def _boolean(self, node: ast.BoolOp) -> Value:
        values = []
        before = self.context
        for part in node.values:
            values.append(self.value(part))
            facts = self.facts(part, isinstance(node.op, ast.And))
            self.context = (*self.context, Frame("if", node, 0, facts, part))
        self.context = before
        return None

    def _choice(self, node: ast.IfExp) -> Value:
        self.value(node.test)
        before = self.context
        arms = []
        for arm, branch in enumerate((node.body, node.orelse)):
            facts = self.facts(node.test, arm == 0)
            self.context = (*before, Frame("if", node, arm, facts, node.test))
            arms.append(self.value(branch))
        self.context = before
        return arms[0] if arms[0] == arms[1] else self.sizes.bounded(Either(tuple(arms)))

    def _lambda(self, node: ast.Lambda) -> Value:
        scope, context = self.scope, self.context
        self.scope = Scope(scope)
        for argument in parameters_of(node.args):
            self.scope.names[argument.arg] = None
        self.context = (*context, Frame("function", node))
        self.value(node.body)
        self.scope, self.context = scope, context
        return None

    def _comprehension(self, node: Any) -> Value:
        scope, context = self.scope, self.context
        self.scope = Scope(scope)
        over: Value = None
        for generator in node.generators:
            over = self.value(generator.iter)
            self.bind(generator.target, self.item_of(over))
            self.context = (*self.context, Frame("loop", node, 0, not_empty(over)))
            for test in generator.ifs:
                self.value(test)
                facts = self.facts(test, True)
                self.context = (*self.context, Frame("if", test, 0, facts, test))
        if isinstance(node, ast.DictComp):
            self.value(node.key)
            self.value(node.value)
            element: Value = None
        else:
            element = self.value(node.elt)
        self.scope, self.context = scope, context
        return self.sizes.bounded(_filtered(node, over)) if element == Item(over, None) else None

    def _walrus(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.bind(node.target, value)
        return value

    def _awaited(self, node: ast.Await) -> Value:
        return self.value(node.value)

    # Calls.

    def _call(self, node: ast.Call) -> Value:
        target = self.chain(node.func)
        arguments = [self.value(argument) for argument in node.args]
        keywords = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
        path = target.path if type(target) is Name else ""
        if path == "builtins.len" and len(arguments) == 1:
            return self.sizes.bounded(Length(arguments[0])) if arguments[0] is not None else None
        method = node.func.attr if type(node.func) is ast.Attribute else path.rpartition(".")[2]
        call = Call(
            path,
            node,
            len(self.events),
            self.context,
            self.owner,
            receiver=target.of if type(target) is Member else None,
            method=method,
            target=target,
            arguments=tuple(arguments),
            keywords=keywords,
        )
        self._record(call)
        if type(target) is Defined:
            return self.run_definition(target, call)
        if not path:
            return Result(call)
        if path in self.imported:
            return self.run_definition(self.imported[path], call)
        if path.startswith(("os.environ.", "os.putenv", "os.unsetenv")):
            self._environment(call)
        elif path in _TRANSPARENT and arguments:
            return arguments[0]
        return Result(call)

    def _environment(self, call: Call) -> None:
        name = call.argument(0)
        verb = call.method
        if verb == "update":
            for argument in call.node.args:
                if isinstance(argument, ast.Dict):
                    for key, node in zip(argument.keys, argument.values, strict=True):
                        if isinstance(key, ast.Constant) and isinstance(key.value, str):
                            self.note(Setting, key.value, key, value=self.quietly(node))
            for keyword, given in call.keywords.items():
                self.note(Setting, keyword, call.node, value=given)
        elif isinstance(name, Constant) and isinstance(name.value, str):
            if verb in ("setdefault", "putenv"):
                default = verb == "setdefault"
                value = call.argument(1)
                self.note(Setting, name.value, call.node, value=value, default=default)
            elif verb in ("pop", "unsetenv"):
                self.note(Setting, name.value, call.node, value=None, unset=True)

    def item_of(self, value: Value, number: int | None = None) -> Value:
        return self.sizes.bounded(Item(value, number)) if value is not None else None

    # Assignment to targets of any shape.

    def bind(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.scope.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, None)
        elif isinstance(target, ast.Attribute):
            self._set_attribute(target, value)
        elif isinstance(target, ast.Subscript):
            of, index = self.value(target.value), self.value(target.slice)
            if of == _ENVIRON and isinstance(index, Constant) and isinstance(index.value, str):
                self.note(Setting, index.value, target, value=value)

    def _unpack(self, targets: list[ast.expr], value: Value) -> None:
        if isinstance(value, Several) and len(value.items) == len(targets):
            for place, target in enumerate(targets):
                self.bind(target, value.items[place])
            return
        enumerated = (
            value.of.call.argument(0)
            if isinstance(value, Item)
            and isinstance(value.of, Result)
            and value.of.call.path == "builtins.enumerate"
            else None
        )
        for place, target in enumerate(targets):
            if enumerated is not None:
                self.bind(target, self.item_of(enumerated) if place == 1 else None)
            else:
                self.bind(target, self.item_of(value, place))

    def _set_attribute(self, target: ast.Attribute, value: Value) -> None:
        of = self.chain(target.value)
        if isinstance(of, Instance):
            held = of.definition.attributes
            same = target.attr not in held or held[target.attr] == value
            held[target.attr] = value if same else None
        place = Name(f"{of.path}.{target.attr}") if isinstance(of, Name) else None
        self.note(
            Assignment,
            place.path if place else "",
            target,
            target=place or Member(of, target.attr),
            value=value,
        )


_TRANSPARENT = frozenset(f"builtins.{name}" for name in ("list", "tuple", "sorted", "reversed"))
"""Functions that return their argument in another container."""


def not_empty(value: Value) -> tuple[Fact, ...]:
    """What is known about a value inside a loop over it."""
    return (Fact(value, 1),) if value is not None else ()


def parameters_of(arguments: ast.arguments) -> list[ast.arg]:
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return found + [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]


def _filtered(node: Any, over: Value) -> Value:
    """[d for d in over if d.device_type == "CPU"] are the CPUs among them."""
    tests = [test for generator in node.generators for test in generator.ifs]
    if not tests:
        return over
    if len(tests) > 1 or not isinstance(tests[0], ast.Compare):
        return None
    test = tests[0]
    sides = (test.left, *test.comparators)
    attributes = [side.attr for side in sides if isinstance(side, ast.Attribute)]
    words = [side.value for side in sides if isinstance(side, ast.Constant)]
    if attributes == ["device_type"] and isinstance(test.ops[0], ast.Eq) and len(words) == 1:
        return Filtered(over, str(words[0]))
    return None


_HANDLERS: dict[type[ast.expr], Callable[[Evaluator, Any], Value]] = {
    ast.Name: Evaluator._name,
    ast.Attribute: Evaluator._attribute,
    ast.Constant: Evaluator._constant,
    ast.JoinedStr: Evaluator._formatted,
    ast.List: Evaluator._several,
    ast.Tuple: Evaluator._several,
    ast.Subscript: Evaluator._subscript,
    ast.UnaryOp: Evaluator._unary,
    ast.BinOp: Evaluator._binary,
    ast.Compare: Evaluator._comparison,
    ast.Dict: Evaluator._dictionary,
    ast.BoolOp: Evaluator._boolean,
    ast.IfExp: Evaluator._choice,
    ast.Lambda: Evaluator._lambda,
    ast.ListComp: Evaluator._comprehension,
    ast.SetComp: Evaluator._comprehension,
    ast.GeneratorExp: Evaluator._comprehension,
    ast.DictComp: Evaluator._comprehension,
    ast.NamedExpr: Evaluator._walrus,
    ast.Await: Evaluator._awaited,
    ast.Call: Evaluator._call,
}
