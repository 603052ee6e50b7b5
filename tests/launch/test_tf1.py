"""Who sees which TensorFlow under --tf1, with small packages in TensorFlow's place."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import textwrap
import types

import pytest

from tests.cases import each
from tests.patience import PATIENCE
from whygpu import launch

BOOTSTRAP = pathlib.Path(launch.__file__).parent / "bootstrap"
PACKAGE = BOOTSTRAP / "whygpu_bootstrap"

TENSORFLOW_2 = {
    "tensorflow/__init__.py": """
        __version__ = "2.99.0"
        import numpy
        class optimizers: pass
        from tensorflow import compat
    """,
    "tensorflow/compat/__init__.py": "from tensorflow.compat import v1",
    "tensorflow/compat/v1/__init__.py": """
        __version__ = "2.99.0"
        GRAPHS = []
        def disable_v2_behavior(): GRAPHS.append("graphs")
        def placeholder(): return "a placeholder"
        nothing = None
        from tensorflow.compat.v1 import compat, nn
    """,
    "tensorflow/compat/v1/compat.py": "def as_bytes(text): return text.encode()",
    "tensorflow/compat/v1/nn.py": "def static_rnn(): return 'rnn'",
    "tensorflow/python/__init__.py": "",
    "tensorflow/python/ops.py": "inner = 'inside'",
    "tensorflow/python/util/__init__.py": "",
    "tensorflow/python/util/deprecation.py": "import contextlib\nsilence = contextlib.nullcontext",
    "keras/__init__.py": "__version__ = '3.99'",
    "numpy.py": """
        float64 = 'float64'
        def reshape(a, shape): return (a, shape)
        def array(rows, dtype=None):
            if dtype is None and len({len(row) for row in rows}) > 1:
                raise ValueError("The array has an inhomogeneous shape")
            return (rows, dtype)
        asarray = array
    """,
    "library.py": "import tensorflow as tf",
    "installed/__init__.py": "",
    "installed/__main__.py": "import tensorflow as tf; print(tf.placeholder())",
}


class Machine:
    """A folder of installed packages, and programs that run beside it."""

    def __init__(self, folder: pathlib.Path, packages: dict[str, str]) -> None:
        self.folder = folder
        self.packages = folder / "lib" / "site-packages"
        self.records = folder / "reports"
        self.records.mkdir()
        for name, text in packages.items():
            path = self.packages / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        settings = self.folder / "settings.json"
        content = {"calls": [], "readings": [], "trace": False, "tf1": True}
        settings.write_text(json.dumps(content))
        environment = {
            **os.environ,
            "PYTHONPATH": f"{BOOTSTRAP}{os.pathsep}{self.packages}",
            "WHYGPU_BOOTSTRAP_SETTINGS": str(settings),
        }
        command = [sys.executable, *arguments]
        return subprocess.run(
            command,
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def program(self, text: str) -> list[str]:
        """The lines that a program prints."""
        path = self.folder / "program.py"
        path.write_text(textwrap.dedent(text))
        done = self.python(str(path))
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def notes(self) -> list[str]:
        records = [json.loads(path.read_text()) for path in self.records.glob("*.json")]
        return [note for record in records for note in record["notes"]]


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Machine:
    return Machine(tmp_path, TENSORFLOW_2)


def test_the_program_sees_tensorflow_1_and_a_library_tensorflow_2(machine: Machine) -> None:
    lines = machine.program("""
        import tensorflow as tf
        import library, sys
        print(tf.placeholder(), tf.GRAPHS, tf.__version__)
        print(library.tf is sys.modules["tensorflow"], hasattr(library.tf, "optimizers"))
        print(tf.nothing, tf.compat.as_bytes("b"))
    """)
    assert lines == ["a placeholder ['graphs'] 2.99.0", "True True", "None b'b'"]


@pytest.mark.slow
@each(
    "main",
    [
        "import outer",
        "import tensorflow as tf\nimport importlib\nimportlib.import_module('outer')",
        "try:\n    import outer\nexcept ValueError as error:\n    raise KeyError(3) from error",
        "import absent",
    ],
)
def test_a_traceback_has_no_frame_of_ours(machine: Machine, main: str) -> None:
    (machine.folder / "outer.py").write_text("import inner\n")
    (machine.folder / "inner.py").write_text("raise ValueError(3)\n")
    program = machine.folder / "program.py"
    program.write_text(main)
    ours = machine.python(str(program))
    environment = {**os.environ, "PYTHONPATH": str(machine.packages)}
    command = [sys.executable, str(program)]
    bare = subprocess.run(
        command,
        env=environment,
        cwd=machine.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "Error" in bare.stderr
    assert ours.stderr == bare.stderr


def test_our_own_refusal_shows_the_line_of_the_program_only(machine: Machine) -> None:
    program = machine.folder / "program.py"
    program.write_text("import tensorflow.contrib.nothing_there")
    files = [line for line in machine.python(str(program)).stderr.splitlines() if "File" in line]
    assert files == [f'  File "{program}", line 1, in <module>']


def test_notes_survive_a_signal(machine: Machine) -> None:
    program = machine.folder / "program.py"
    program.write_text("import os, tensorflow\nos.kill(os.getpid(), 15)")
    assert machine.python(str(program)).returncode == -15
    assert any("behaves as TensorFlow 1" in note for note in machine.notes())


def test_every_way_to_import(machine: Machine) -> None:
    lines = machine.program("""
        import importlib
        import tensorflow as tf
        import tensorflow.compat.v1 as v1
        import tensorflow.contrib.rnn
        from tensorflow import nn
        from tensorflow.compat import v1 as again
        from tensorflow.contrib import rnn
        from tensorflow.contrib.rnn.python.ops import core_rnn
        from tensorflow.python import ops
        from tensorflow.python.ops import inner
        print(v1 is tf, again is tf, tensorflow is tf, importlib.import_module("tensorflow") is tf)
        print(nn.static_rnn(), rnn.static_rnn(), core_rnn.static_rnn(), ops.inner, inner)
        print(tf.contrib.rnn is rnn, tf.compat.v2.optimizers.__name__)
    """)
    assert lines == ["True True True True", "rnn rnn rnn inside inside", "True optimizers"]
    assert "--tf1: tf.contrib.rnn.static_rnn -> tf.nn.static_rnn" in machine.notes()


def test_modules_of_the_program_and_its_own_package_see_tensorflow_1(machine: Machine) -> None:
    (machine.folder / "helper.py").write_text("import tensorflow as tf\nmade = tf.placeholder()")
    assert machine.program("import helper\nprint(helper.made)") == ["a placeholder"]
    assert machine.python("-m", "installed").stdout == "a placeholder\n"


@pytest.mark.slow
def test_processes_that_the_program_starts_see_tensorflow_1(machine: Machine) -> None:
    lines = machine.program("""
        import multiprocessing, subprocess, sys

        def child():
            import tensorflow as tf
            print(tf.placeholder(), flush=True)

        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                process = multiprocessing.get_context(method).Process(target=child)
                process.start()
                process.join()
            code = "import tensorflow as tf; print(tf.placeholder())"
            subprocess.run([sys.executable, "-c", code])
    """)
    assert lines == ["a placeholder"] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("tf.optimizers", "AttributeError", "run the program without --tf1"),
        ("tf.nowhere", "AttributeError", "module 'tensorflow' has no attribute 'nowhere'"),
        ("tf.contrib.nowhere", "AttributeError", "tf.contrib was removed in TensorFlow 2.0"),
        ("import tensorflow.contrib.nowhere", "ModuleNotFoundError", "no counterpart"),
        ("from tensorflow.contrib.rnn import nowhere", "ImportError", "cannot import name"),
        ("from tensorflow import nowhere", "ImportError", "cannot import name 'nowhere'"),
        ("import tensorflow.python.nowhere", "ModuleNotFoundError", "tensorflow.python.nowhere"),
    ],
)
def test_a_name_that_is_nowhere_says_so(
    machine: Machine, statement: str, error: str, words: str
) -> None:
    (machine.folder / "program.py").write_text(f"import tensorflow as tf\n{statement}")
    done = machine.python("program.py")
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith(error + ":")
    assert words in last


def test_nothing_is_loaded_for_a_program_without_tensorflow(machine: Machine) -> None:
    lines = machine.program("""
        import json, sys
        print([name for name in ("tensorflow", "numpy", "whygpu_bootstrap.tf1.surface")
               if name in sys.modules])
    """)
    assert lines == ["[]"]


def test_an_installed_tensorflow_1_is_left_alone(tmp_path: pathlib.Path) -> None:
    machine = Machine(tmp_path, {"tensorflow/__init__.py": "__version__ = '1.15.5'"})
    lines = machine.program("""
        import sys, tensorflow as tf
        print(tf is sys.modules["tensorflow"])
    """)
    assert lines == ["True"]
    assert "--tf1: TensorFlow 1.15.5 needs no help" in machine.notes()


def test_without_tensorflow_the_error_is_the_usual_one(tmp_path: pathlib.Path) -> None:
    machine = Machine(tmp_path, {})
    (tmp_path / "program.py").write_text("import tensorflow")
    done = machine.python("program.py")
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'tensorflow'"


def test_what_breaks_in_our_part_leaves_the_program_what_it_would_have(
    tmp_path: pathlib.Path,
) -> None:
    broken = {**TENSORFLOW_2, "tensorflow/python/util/deprecation.py": "1 / 0"}
    machine = Machine(tmp_path, broken)
    lines = machine.program("""
        import sys, tensorflow as tf
        print(tf is sys.modules["tensorflow"])
    """)
    assert lines == ["True"]
    assert any("ZeroDivisionError" in note for note in machine.notes())


def test_numpy_answers_to_its_old_names(machine: Machine) -> None:
    lines = machine.program("""
        import tensorflow, numpy as np
        print(np.int, np.float_, np.reshape([1], newshape=2), np.reshape(a=[1], newshape=2))
        try:
            np.nowhere
        except AttributeError as error:
            print(error)
    """)
    assert lines == [
        "<class 'int'> float64 ([1], 2) ([1], 2)",
        "module 'numpy' has no attribute 'nowhere'",
    ]
    assert "--tf1: numpy.int -> Python's int" in machine.notes()


def test_ragged_rows_make_objects_for_the_program_alone(machine: Machine) -> None:
    (machine.packages / "user.py").write_text("import numpy\ndef make(): numpy.array([[1], []])")
    lines = machine.program("""
        import tensorflow, numpy as np, user
        print(np.array([[1], [2]]), np.asarray([[1], []]))
        try:
            user.make()
        except ValueError as error:
            print(error)
    """)
    assert lines == [
        "([[1], [2]], None) ([[1], []], <class 'object'>)",
        "The array has an inhomogeneous shape",
    ]
    assert "--tf1: numpy.asarray of ragged rows -> an array of objects" in machine.notes()


SCIPY = {
    "scipy/__init__.py": "",
    "scipy/special.py": "def logsumexp(): return 'special'",
    "scipy/sparse/__init__.py": "",
    "scipy/sparse/linalg/__init__.py": "def eigsh(): return 'moved'",
    "scipy/sparse/linalg/eigen.py": "",
    "PIL/__init__.py": "",
    "PIL/Image.py": """
        def frombytes(mode, size, data): return ("frombytes", mode, size, len(data))
    """,
}


@pytest.mark.parametrize("misc", [True, False])
def test_scipy_answers_to_its_old_names(tmp_path: pathlib.Path, misc: bool) -> None:
    pytest.importorskip("numpy")
    packages = {name: text for name, text in TENSORFLOW_2.items() if name != "numpy.py"}
    left = {"scipy/misc.py": "def kept(): return 1"} if misc else {}
    machine = Machine(tmp_path, {**packages, **SCIPY, **left})
    lines = machine.program("""
        from scipy.sparse.linalg.eigen.arpack import eigsh
        from scipy.misc import toimage, logsumexp
        import scipy.misc, numpy
        print(eigsh(), logsumexp(), scipy.misc.toimage is toimage)
        print(toimage(numpy.zeros((3, 5, 7))))
        print(scipy.misc.bytescale(numpy.array([-1.0, 0.0, 1.0])))
        try:
            scipy.misc.nowhere
        except AttributeError as error:
            print(error)
    """)
    assert lines == [
        "moved special True",
        "('frombytes', 'RGB', (7, 5), 105)",
        "[  0 128 255]",
        "module 'scipy.misc' has no attribute 'nowhere'",
    ]
    assert "--tf1: scipy.misc.logsumexp -> scipy.special.logsumexp" in machine.notes()


def test_one_channel_becomes_a_picture_as_the_mode_says(tmp_path: pathlib.Path) -> None:
    """Scaled to 0 ... 255 for whole numbers, as it is for floats, and by a threshold for bits."""
    pytest.importorskip("numpy")
    packages = {name: text for name, text in TENSORFLOW_2.items() if name != "numpy.py"}
    pillow = {"PIL/Image.py": "def fromarray(data): return data.tolist()"}
    machine = Machine(tmp_path, {**packages, **SCIPY, **pillow})
    lines = machine.program("""
        from scipy.misc import toimage
        import numpy
        numbers = numpy.array([[0.0, 2.0, 10.0]])
        print(toimage(numbers), toimage(numbers, mode="F"), toimage(numbers, mode="I"))
        print(toimage(numbers, mode="I", high=20, cmax=20), toimage(numbers, mode="1", high=5))
    """)
    assert lines == [
        "[[0, 51, 255]] [[0.0, 2.0, 10.0]] [[0, 51, 255]]",
        "[[0, 2, 10]] [[False, False, True]]",
    ]


def test_scipy_is_not_loaded_for_a_library(machine: Machine) -> None:
    (machine.packages / "scipy.py").write_text("")
    (machine.packages / "user.py").write_text("import scipy")
    assert machine.program("import user, sys; print('scipy.misc' in sys.modules)") == ["False"]


def file_of(module: str) -> pathlib.Path:
    return (PACKAGE / "tf1").joinpath(*module.split(".")).with_suffix(".py")


def part(name: str) -> types.ModuleType:
    """A module of the bootstrap that needs no other."""
    spec = importlib.util.spec_from_file_location(name, file_of(name))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = part("name_tables")


@each(
    ("path", "home"),
    [
        ("tf.nn.relu", "tf.nn.relu"),
        ("tf.compat.v1", "tf"),
        ("tf.compat.v1.nn", "tf.nn"),
        ("tf.compat.v1beta", "tf.compat.v1beta"),
        ("tf.contrib.rnn.python.ops.rnn_cell", "tf.contrib.rnn"),
        ("tf.contrib.tpu.python.tpu.tpu_config", "tf.contrib.tpu"),
        ("tf.python.tpu.tpu_estimator", "tf.contrib.tpu"),
        ("tf.python.ops.constant_op", "tf.python.framework.constant_op"),
        ("tf.contrib.learn.python.learn.datasets.mnist", "tf.contrib.learn.datasets.mnist"),
        ("tf.keras.backend.tensorflow_backend", "tf.keras.backend"),
        ("tf.keras.layers.core", "tf.keras.layers"),
        ("tf.keras.utils.np_utils", "tf.keras.utils"),
        ("tf.python.estimator.model_fn", "tf.estimator"),
        ("tf.python.estimator.canned.head", "tf.estimator"),
        ("tf.python.estimator.inputs.numpy_io", "tf.estimator.inputs"),
        ("tf.python.layers.normalization", "tf.layers"),
    ],
)
def test_old_homes_of_modules(path: str, home: str) -> None:
    assert NAMES.home_of(path) == home


def own_targets() -> list[str]:
    sources = [source for listed in NAMES.SOURCES.values() for source in listed]
    targets = {*sources, *NAMES.RENAMED.values()}
    return sorted(target[len("own:") :] for target in targets if target.startswith("own:"))


@each("target", own_targets())
def test_what_the_tables_name_as_ours_is_there(target: str) -> None:
    module, _, name = target.partition(":")
    tree = ast.parse(file_of(module).read_text(), feature_version=(3, 6))
    defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    targets = [node.targets for node in tree.body if isinstance(node, ast.Assign)]
    defined |= {each.id for listed in targets for each in listed if isinstance(each, ast.Name)}
    assert (name or "__all__") in defined


def test_arg_scope_gives_defaults_and_takes_them_back() -> None:
    scope = part("contrib.scope")

    def plain(width: int, height: int = 1, *, unit: str = "m") -> str:
        return f"{width * height} {unit}"

    area = scope.add_arg_scope(plain)

    with scope.arg_scope([area], height=3, unit="cm") as kept:
        assert [area(2), area(2, 5), area(2, unit="km")] == ["6 cm", "10 cm", "6 km"]
        with scope.arg_scope([area], height=4):
            assert area(2) == "8 cm"
        assert area(2) == "6 cm"
    assert area(2) == "2 m"
    with scope.arg_scope(kept):
        assert area(2) == "6 cm"
    assert scope.arg_scoped_arguments(area) == ("height", "unit")


def test_arg_scope_refuses_what_it_cannot_do() -> None:
    scope = part("contrib.scope")
    with pytest.raises(ValueError, match="add_arg_scope"), scope.arg_scope([len], a=1):
        pass
    with pytest.raises(TypeError, match="list"), scope.arg_scope(len, a=1):
        pass
    with pytest.raises(ValueError, match="kwargs"), scope.arg_scope({}, a=1):
        pass
