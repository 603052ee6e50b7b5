"""Names, order of execution, and the conditions that code stands under."""

from __future__ import annotations

import ast

from tests.cases import each
from whygpu.model.events import Call, Event, Setting
from whygpu.model.program import Program, exclusive, known_length
from whygpu.model.values import Item
from whygpu.readers.code.source import Source, parse, program


def read(text: str) -> Program:
    source = Source("example.py", text)
    return program(source, parse(source))


def paths(text: str) -> list[str]:
    return [call.path for call in read(text).calls()]


def call(made: Program, path: str) -> Call:
    (found,) = made.calls(path)
    return found


@each(
    "text",
    [
        "import tensorflow as tf\ntf.config.list_physical_devices()",
        "import tensorflow\ntensorflow.config.list_physical_devices()",
        "from tensorflow import config\nconfig.list_physical_devices()",
        "from tensorflow import config as c\nc.list_physical_devices()",
        "from tensorflow.config import list_physical_devices as lpd\nlpd()",
        "import tensorflow as tf\nt = tf\nt.config.list_physical_devices()",
        "import tensorflow as tf\nc = tf.config\nc.list_physical_devices()",
        "def f():\n    import tensorflow as tf\n    tf.config.list_physical_devices()\nf()",
        "import tensorflow as tf\nlook = tf.config.list_physical_devices\nlook()",
        "try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\n"
        "tf.config.list_physical_devices()",
    ],
    ids=range(10),
)
def test_names_are_followed_to_what_they_stand_for(text: str) -> None:
    assert "tensorflow.config.list_physical_devices" in paths(text)


@each(
    "text",
    [
        "import tensorflow as tf\ntf = load()\ntf.constant(1)",
        "import tensorflow as tf\ndef f(tf):\n    tf.constant(1)\nf(other)",
        "if new:\n    import tensorflow.compat.v1 as tf\nelse:\n    import tensorflow as tf\n"
        "tf.constant(1)",
        "from .models import tf\ntf.constant(1)",
        "import tensorflow as tf\ndel tf\ntf.constant(1)",
        "import tensorflow as tf\nfor tf in things:\n    tf.constant(1)",
    ],
    ids=["assigned", "parameter", "two imports", "relative", "deleted", "loop"],
)
def test_a_name_that_stands_for_something_else_is_not_mistaken(text: str) -> None:
    assert not any("constant" in path for path in paths(text))


def test_functions_run_where_they_are_called() -> None:
    made = read(
        "import torch\n"
        "def late():\n    torch.cuda.init()\n"
        "torch.manual_seed(1)\n"
        "late()\n"
        "torch.cuda.synchronize()\n"
    )
    order = [call.path for call in made.calls() if call.path]
    assert order == ["torch.manual_seed", "torch.cuda.init", "torch.cuda.synchronize"]


def test_methods_are_followed_through_self() -> None:
    text = (
        "import torch\n"
        "class Trainer:\n"
        "    def __init__(self):\n        self.prepare()\n"
        "    def prepare(self):\n        torch.cuda.init()\n"
        "Trainer()\ntorch.cuda.synchronize()\n"
    )
    made = read(text)
    assert made.surely_before(call(made, "torch.cuda.init"), call(made, "torch.cuda.synchronize"))


def test_what_a_function_of_the_file_returns_is_known() -> None:
    made = read(
        "import tensorflow as tf\n"
        "def gpus():\n    return tf.config.list_physical_devices('GPU')\n"
        "first = gpus()[0]\n"
    )
    (taking,) = made.takings()
    assert isinstance(taking.value, Item)
    assert taking.value.of.call.path == "tensorflow.config.list_physical_devices"  # type: ignore[union-attr]


def test_a_function_that_is_never_called_happens_after_the_module() -> None:
    made = read(
        "import torch\ndef f():\n    torch.cuda.init()\ndef g():\n    torch.cuda.synchronize()\n"
        "torch.manual_seed(1)\n"
    )
    seed, init, wait = (
        call(made, f"torch.{name}") for name in ("manual_seed", "cuda.init", "cuda.synchronize")
    )
    assert made.surely_before(seed, init)
    assert not made.surely_before(init, wait)
    assert not made.surely_before(wait, init)


def test_recursion_ends() -> None:
    assert paths("def f():\n    g()\ndef g():\n    f()\nf()\nprint()")


def test_nested_functions_do_not_multiply() -> None:
    """Each walk over a function defines those inside of it anew; they are still walked once."""
    text = "import torch\n"
    for depth in range(12):
        text += "    " * depth + f"def f{depth}():\n" + "    " * (depth + 1) + "torch.one()\n"
    text += "".join(f"def g{n}():\n    f0()\n    f0()\n" for n in range(20))
    assert len(read(text).events) < 1500


@each(
    ("text", "sure"),
    [
        ("a.one()\na.two()", True),
        ("a.two()\na.one()", False),
        ("if x:\n    a.one()\na.two()", False),
        ("if x:\n    a.one()\n    a.two()", True),
        ("if x:\n    a.one()\nelse:\n    a.two()", False),
        ("a.one()\nif x:\n    a.two()", True),
        ("try:\n    a.one()\nexcept E:\n    pass\na.two()", True),
        ("try:\n    pass\nexcept E:\n    a.one()\na.two()", False),
        ("for x in y:\n    a.one()\na.two()", False),
        ("with x:\n    a.one()\na.two()", True),
        ("if x:\n    raise E\na.one()\na.two()", True),
        ("def f():\n    if x:\n        return\n    a.one()\nf()\na.two()", False),
        ("x and a.one()\na.two()", False),
        ("f = lambda: a.one()\na.two()", False),
    ],
)
def test_what_surely_comes_first(text: str, sure: bool) -> None:
    made = read("import torch as a\n" + text)
    assert made.surely_before(call(made, "torch.one"), call(made, "torch.two")) is sure


def test_arms_of_one_condition_exclude_each_other() -> None:
    made = read("import torch as a\nif x:\n    a.one()\nelse:\n    a.two()\na.three()")
    one, two, three = (call(made, f"torch.{name}") for name in ("one", "two", "three"))
    assert exclusive(one, two)
    assert not exclusive(one, three)


@each(
    ("around", "known"),
    [
        ("if g:\n    g[9]", 1),
        ("if len(g) > 1:\n    g[9]", 2),
        ("if len(g) >= 3:\n    g[9]", 3),
        ("if 1 < len(g):\n    g[9]", 2),
        ("if len(g) == 4:\n    g[9]", 4),
        ("if not g:\n    pass\nelse:\n    g[9]", 1),
        ("if not g:\n    raise E\ng[9]", 1),
        ("if len(g) < 2:\n    raise E\ng[9]", 2),
        ("if len(g) == 0:\n    sys.exit()\ng[9]", 1),
        ("assert len(g) > 2\ng[9]", 3),
        ("if x and len(g) > 1:\n    g[9]", 2),
        ("if x or len(g) > 1:\n    g[9]", 0),
        ("n = len(g)\nif n > 1:\n    g[9]", 2),
        ("for d in g:\n    g[9]", 1),
        ("g[9] if len(g) > 1 else None", 2),
        ("len(g) > 1 and g[9]", 2),
        ("if bool(g):\n    g[9]", 1),
        ("if g != []:\n    g[9]", 1),
        ("while len(g) > 5:\n    g[9]", 6),
        ("if not len(g) > 1:\n    g[9]", 0),
        ("if len(h) > 1:\n    g[9]", 0),
        ("g[9]", 0),
    ],
)
def test_what_is_known_of_a_length(around: str, known: int) -> None:
    made = read(f"import sys\ng = list_of()\nh = other()\n{around}")
    (taking,) = [taking for taking in made.takings() if taking.value.number == 9]
    assert known_length(taking, taking.value.of) == known


def settings(text: str) -> list[tuple[str, object]]:
    made = [event for event in read("import os\n" + text).events if isinstance(event, Setting)]
    return [(event.path, getattr(event.value, "value", None)) for event in made]


@each(
    "text",
    [
        "os.environ['A'] = '1'",
        "from os import environ\nenviron['A'] = '1'",
        "os.environ.setdefault('A', '1')",
        "os.environ.update({'A': '1'})",
        "os.environ.update(A='1')",
        "os.putenv('A', '1')",
        "e = os.environ\ne['A'] = '1'",
        "def f():\n    os.environ['A'] = '1'",
    ],
)
def test_every_way_to_set_a_variable(text: str) -> None:
    assert settings(text) == [("A", "1")]


def test_reading_a_variable_sets_nothing() -> None:
    assert settings("x = os.environ['A']\ny = os.environ.get('A')\nd = {}\nd['A'] = 1") == []


def test_everything_in_the_language_is_walked() -> None:
    """Each construct, once: none may crash, and what stands inside of it is seen."""
    text = """
import torch as a
async def f(x, *args, y=a.default(), **more):
    async with a.w() as z:
        await a.awaited()
    async for i in a.i():
        yield a.yielded()
    return [a.listed(q) async for q in x if a.tested(q)]
@a.decorated
class C(a.base()):
    attribute: int = a.annotated()
    def m(self):
        global g
        g = a.globbed()
        self.x, *self.y = a.starred(), 2
match a.subject():
    case 1 if True:
        a.case()
    case _:
        a.other_case()
while a.condition():
    a.body()
else:
    a.otherwise()
(w := a.walrus())
{a.key(): a.value() for k in {*a.spread()}}
x = a.one() if a.test() else a.two()
del x
x = f"{a.formatted()!r:>{a.width()}}"
x[a.low():a.high()] += a.added()
assert a.asserted(), a.message()
try:
    pass
except* a.Group() as e:
    a.handled()
finally:
    a.final()
nonsense = lambda v: a.inside(v)
type(a.last())
"""
    if not hasattr(ast, "TryStar"):
        text = text.replace("except*", "except")
    seen = {path.removeprefix("torch.") for path in paths(text)}
    expected = """default w awaited i yielded listed tested base annotated globbed starred subject
        case other_case condition body otherwise walrus key value spread one test two formatted
        low high added asserted message Group handled final inside last"""
    assert seen >= set(expected.split()), set(expected.split()) - seen


def test_the_place_of_a_node_counts_characters() -> None:
    made = read("import torch\nx = 'ä' + torch.cuda.init()\n")
    assert made.place(call(made, "torch.cuda.init").node).start == (2, 11)
    assert made.source(call(made, "torch.cuda.init").node) == "torch.cuda.init()"


def test_events_are_numbered_in_order() -> None:
    events: tuple[Event, ...] = read("import torch\ntorch.one()\ntorch.two()\n").events
    assert [event.index for event in events] == list(range(len(events)))
