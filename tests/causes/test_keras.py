"""Keras is judged on its own: backend, generation, and the TensorFlow beside it."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run
from whygpu.api import diagnose
from whygpu.model.finding import Finding
from whygpu.model.observed import Known, need
from whygpu.model.snapshot import Snapshot

ON_CPU = "operations = []"


def keras_on(backend: str, by: str = "") -> str:
    """Keras on a backend, both on the CPU, with whatever else by says."""
    return f"""
        {by}
        [target.frameworks.keras.keras]
        backend = "{backend}"
        [probes.keras]
        facts = [["backend", "{backend}"]]
        {ON_CPU}
        [probes.{backend}]
        {ON_CPU}
    """


def without_gpu_support(framework: str) -> str:
    return f'[target.frameworks.{framework}.build]\nkind = "cpu"'


VARIABLE = '[environment.variables.KERAS_BACKEND]\nvalue = "jax"'


def no_gpu_for_keras(text: str) -> list[Finding]:
    return list(run(cause_named("keras-backend-without-gpu"), machine(text)).findings)


def test_the_variable_that_chose_the_backend_is_named_and_changed() -> None:
    (found,) = no_gpu_for_keras(keras_on("jax", VARIABLE + "\n" + without_gpu_support("jax")))
    assert found.subject == "keras"
    assert "its backend is JAX, selected by KERAS_BACKEND=jax" in found.message
    assert "TensorFlow and PyTorch can use the GPU" in found.message
    commands = [command_of(remedy) for remedy in found.remedies]
    assert commands == [
        "export KERAS_BACKEND=tensorflow",
        "export KERAS_BACKEND=torch",
        "python -m pip install 'jax[cuda12]==0.7.2'",
    ]


def test_jax_platforms_is_the_reason_where_it_is() -> None:
    by = '[environment.variables.JAX_PLATFORMS]\nvalue = "cpu"'
    (found,) = no_gpu_for_keras(keras_on("jax", by))
    assert "JAX_PLATFORMS=cpu prevents JAX from using the GPU" in found.message
    assert command_of(found.remedies[-1]) == "unset JAX_PLATFORMS"


def test_a_backend_with_a_fault_of_its_own_is_left_to_that_fault() -> None:
    """libcusolver is missing for TensorFlow, PyTorch is on the GPU: Keras's choice is not it."""
    assert no_gpu_for_keras(keras_on("tensorflow")) == []


def test_a_cpu_only_backend_is_left_to_its_own_cause_where_no_other_has_the_gpu() -> None:
    text = 'only = ["keras", "jax"]\n' + keras_on("jax", without_gpu_support("jax"))
    assert no_gpu_for_keras(text) == []


def test_a_backend_that_has_the_gpu_while_keras_has_not_is_keras_own_matter() -> None:
    (found,) = no_gpu_for_keras(f'only = ["keras", "tensorflow"]\n[probes.keras]\n{ON_CPU}')
    assert "TensorFlow alone computes on the GPU, but Keras on top of it does not" in found.message


def test_numpy_as_a_backend_never_has_a_gpu() -> None:
    text = f"""
        only = ["keras"]
        [target.frameworks.keras.keras]
        backend = "numpy"
        [probes.keras]
        facts = [["backend", "numpy"]]
        {ON_CPU}
    """
    (found,) = no_gpu_for_keras(text)
    assert "has no GPU support" in found.message
    assert found.remedies


def test_keras_that_computed_on_the_gpu_is_not_questioned() -> None:
    assert no_gpu_for_keras(VARIABLE + "\n" + without_gpu_support("jax")) == []


def test_without_probes_the_builds_make_it_likely() -> None:
    text = f"""
        probes_left_out = "--no-probe"
        [target.frameworks.keras.keras]
        backend = "jax"
        {without_gpu_support("jax")}
    """
    (found,) = no_gpu_for_keras(text)
    assert found.confidence == "likely"
    assert "will run on the CPU" in found.message


def test_without_probes_an_unknown_build_of_the_backend_is_a_gap() -> None:
    text = """
        probes_left_out = "--no-probe"
        [target.frameworks.tensorflow.build]
        kind = {unknown = "build_info.py: permission denied"}
    """
    outcome = run(cause_named("keras-backend-without-gpu"), machine(text))
    assert outcome.status == "undetermined"


def test_no_gpu_no_question() -> None:
    text = 'start = "no-gpu"\n' + keras_on("jax", without_gpu_support("jax"))
    assert run(cause_named("keras-backend-without-gpu"), machine(text)).status == "not-applicable"


def missing(text: str) -> list[Finding]:
    return list(run(cause_named("keras-backend-missing"), machine(text)).findings)


NO_PROBE = 'probes_left_out = "--no-probe"'


def configured(backend: str) -> str:
    return f'[target.frameworks.keras.keras]\nbackend = "{backend}"'


def test_keras_alone_misses_its_default_backend() -> None:
    (found,) = missing(f'start = "no-gpu"\nonly = ["keras"]\n{NO_PROBE}')
    assert "installed: none" in found.message
    assert [command_of(remedy) for remedy in found.remedies] == ["python -m pip install tensorflow"]


def test_a_machine_with_a_gpu_is_offered_the_gpu_build() -> None:
    (found,) = missing(f'only = ["keras", "torch"]\n{NO_PROBE}')
    assert [command_of(remedy) for remedy in found.remedies] == [
        "export KERAS_BACKEND=torch",
        "python -m pip install 'tensorflow[and-cuda]==2.20.0'",
    ]


def test_a_name_that_is_no_backend_cannot_be_installed() -> None:
    (found,) = missing(f"{NO_PROBE}\n{configured('garbage')}")
    assert "which is not a backend of Keras" in found.message
    assert all("garbage" not in (command_of(remedy) or "") for remedy in found.remedies)


@each("backend", ["numpy", "torch", "jax", "tensorflow"])
def test_a_backend_that_is_there_is_fine(backend: str) -> None:
    assert missing(f"{NO_PROBE}\n{configured(backend)}") == []


def test_openvino_is_a_package_and_not_a_framework() -> None:
    text = f"{NO_PROBE}\n{configured('openvino')}"
    assert len(missing(text)) == 1
    assert missing(f'{text}\n[target.packages.openvino]\nversion = "2025.3"') == []


def test_a_backend_of_the_future_that_imports_is_not_refused() -> None:
    assert missing(configured("mlx")) == []


def test_keras_2_has_no_choice() -> None:
    text = f'{NO_PROBE}\n{configured("theano")}\ngeneration = "keras-2"'
    assert missing(text) == []


def test_a_hollow_tensorflow_is_no_matter_of_versions() -> None:
    """`pip uninstall tensorflow-cpu` leaves the folder that tensorflow shared with it empty."""
    text = f"""
        [probes.tensorflow]
        ended = "exception"
        stage = "import"
        how = "AttributeError: module 'tensorflow' has no attribute '__version__'"
        [probes.keras]
        ended = "exception"
        stage = "import"
        how = "AttributeError: module 'tensorflow' has no attribute 'compat'"
        traceback = ['{FRAME}']
    """
    assert mismatch(text) == []


def mismatch(text: str) -> list[Finding]:
    return list(run(cause_named("keras-tf-version-mismatch"), machine(text)).findings)


FRAME = '  File "/venv/lib/python3.11/site-packages/keras/src/saving/x.py", line 68, in <module>'


@each(
    "how",
    [
        "AttributeError: module 'tensorflow._api.v2.compat.v2.__internal__' has no attribute "
        "'register_load_context_function'",
        "ImportError: cannot import name 'dtensor' from 'tensorflow.compat.v2.experimental'",
        "ModuleNotFoundError: No module named 'tensorflow.python.keras.engine'",
        "ImportError: Keras requires TensorFlow 2.2 or higher.",
        "RecursionError: maximum recursion depth exceeded in comparison",
    ],
)
@each("name", ["keras", "tensorflow"])
def test_errors_about_each_others_insides_are_certain(how: str, name: str) -> None:
    """TensorFlow 2.6 to 2.15 import Keras themselves, so that it is they who fail."""
    text = f"""
        [probes.{name}]
        ended = "exception"
        stage = "import"
        how = "{how}"
        traceback = ['{FRAME}']
    """
    (found,) = mismatch(text)
    assert (found.subject, found.confidence) == (name, "certain")


def test_the_same_words_from_outside_keras_are_not_about_keras() -> None:
    text = """
        [probes.tensorflow]
        ended = "exception"
        stage = "import"
        how = "AttributeError: module 'tensorflow' has no attribute '__version__'"
    """
    assert mismatch(text) == []


def test_a_half_imported_module_is_another_fault() -> None:
    text = f"""
        [probes.keras]
        ended = "exception"
        stage = "import"
        how = "AttributeError: partially initialized module 'keras' has no attribute 'x'"
        traceback = ['{FRAME}']
    """
    assert mismatch(text) == []


@pytest.mark.parametrize(
    ("tensorflow", "distribution", "wanted"),
    [
        ("2.15.1", "keras", "keras==2.15.*"),
        ("2.16.1", "keras", "keras>=3"),
        ("2.19.0", "tf-keras", "tf-keras==2.19.*"),
    ],
)
def test_without_metadata_the_numbers_say_what_belongs_together(
    tensorflow: str, distribution: str, wanted: str
) -> None:
    text = f"""
        [target.packages.tensorflow]
        version = "{tensorflow}"
        requires = []
        [target.frameworks.tensorflow]
        version = "{tensorflow}"
        [target.frameworks.keras]
        distribution = "{distribution}"
        [probes.keras]
        ended = "exception"
        stage = "import"
        how = "RecursionError: maximum recursion depth exceeded"
        traceback = ['{FRAME}']
    """
    (found,) = mismatch(text)
    assert command_of(found.remedies[0]) == f"python -m pip install '{wanted}'"


@each(
    ("value", "status"),
    [("1", "found"), ("true", "found"), ("True", "found"), ("0", "passed"), ("yes", "passed")],
)
def test_the_legacy_switch_knows_three_spellings(value: str, status: str) -> None:
    text = f'[environment.variables.TF_USE_LEGACY_KERAS]\nvalue = "{value}"'
    assert run(cause_named("keras-legacy-missing"), machine(text)).status == status


def test_an_old_tensorflow_does_not_know_the_switch() -> None:
    text = """
        [environment.variables.TF_USE_LEGACY_KERAS]
        value = "1"
        [target.frameworks.tensorflow]
        version = "2.14.1"
    """
    assert run(cause_named("keras-legacy-missing"), machine(text)).status == "passed"


def test_what_the_probe_saw_of_tf_keras_is_shown() -> None:
    text = """
        [environment.variables.TF_USE_LEGACY_KERAS]
        value = "1"
        [probes.keras]
        facts = [["backend", "tensorflow"], ["tf.keras", "failed: ImportError: Keras cannot be"]]
    """
    (found,) = run(cause_named("keras-legacy-missing"), machine(text)).findings
    assert found.evidence[-1].text == "tf.keras: failed: ImportError: Keras cannot be"
    assert command_of(found.remedies[0]) == "python -m pip install 'tf-keras==2.20.*'"


@pytest.mark.parametrize(("more", "effect"), [("", "none"), (NO_PROBE, "broken")])
def test_a_keras_that_was_seen_to_work_is_not_called_broken(more: str, effect: str) -> None:
    text = f'{more}\n[environment.variables.TF_USE_LEGACY_KERAS]\nvalue = "1"'
    (found,) = run(cause_named("keras-legacy-missing"), machine(text)).findings
    assert (found.severity, found.effect) == ("error", effect)


def configured_in_file(
    snapshot: Snapshot, backend: str, source: str = "~/.keras/keras.json"
) -> Snapshot:
    """The same machine with a keras.json; an example's facts all have the source "example"."""
    frameworks = tuple(
        item._replace(keras=item.keras._replace(backend=Known(backend, source)))
        if item.keras is not None
        else item
        for item in need(snapshot.target.frameworks)
    )
    return snapshot._replace(target=snapshot.target._replace(frameworks=Known(frameworks, "x")))


@pytest.mark.parametrize(
    ("backend", "tensorflow", "status"),
    [("jax", "2.20.0", "found"), ("tensorflow", "2.20.0", "passed"), ("jax", "2.15.1", "passed")],
)
def test_a_file_that_moves_tf_keras_is_told(backend: str, tensorflow: str, status: str) -> None:
    snapshot = machine(f'[target.frameworks.tensorflow]\nversion = "{tensorflow}"')
    outcome = run(cause_named("keras-generations-mixed"), configured_in_file(snapshot, backend))
    assert outcome.status == status


def test_the_file_that_chose_the_backend_is_named_and_edited() -> None:
    snapshot = machine(keras_on("jax", without_gpu_support("jax")))
    (found,) = run(
        cause_named("keras-backend-without-gpu"), configured_in_file(snapshot, "jax")
    ).findings
    assert 'selected by "backend" in ~/.keras/keras.json' in found.message
    assert command_of(found.remedies[1]) == (
        """sed -i 's/"backend": *"jax"/"backend": "tensorflow"/' ~/.keras/keras.json"""
    )


@pytest.mark.parametrize(
    "source",
    [
        "Keras's default; there is no ~/.keras/keras.json",
        "Keras's default; ~/.keras/keras.json is not valid JSON and Keras ignores it",
    ],
)
def test_a_file_that_says_nothing_is_not_edited(source: str) -> None:
    snapshot = machine(f'only = ["keras", "jax"]\n{NO_PROBE}')
    snapshot = configured_in_file(snapshot, "tensorflow", source)
    (found,) = run(cause_named("keras-backend-missing"), snapshot).findings
    assert "its backend is tensorflow, the default, which is not installed" in found.message
    assert [command_of(remedy) for remedy in found.remedies] == [
        "export KERAS_BACKEND=jax",
        "python -m pip install 'tensorflow[and-cuda]==2.20.0'",
    ]


def test_a_variable_outranks_the_file() -> None:
    text = keras_on("jax", VARIABLE + "\n" + without_gpu_support("jax"))
    snapshot = configured_in_file(machine(text), "torch")
    (found,) = run(cause_named("keras-backend-without-gpu"), snapshot).findings
    assert "selected by KERAS_BACKEND=jax" in found.message


def test_tensorflow_fails_with_the_keras_that_it_imports() -> None:
    failed = """
        ended = "exception"
        stage = "import"
        how = "ValueError: Unable to import backend : nonsense"
        facts = []
    """
    found = machine(f"""
        [environment.variables.KERAS_BACKEND]
        value = "nonsense"
        [target.frameworks.keras.keras]
        backend = "nonsense"
        [probes.keras]{failed}
        [probes.tensorflow]{failed}
    """)
    report = diagnose(found)
    roots = [finding for finding in report.findings if finding.explained_by is None]
    assert {(root.cause, root.subject) for root in roots} == {
        ("keras-backend-missing", "keras"),
        ("keras-backend-missing", "tensorflow"),
    }


def test_both_generations_of_keras_are_what_code_for_keras_2_needs() -> None:
    text = """
        [environment.variables.TF_USE_LEGACY_KERAS]
        value = "1"
        [target.packages.tf-keras]
        version = "2.20.1"
    """
    (found,) = run(cause_named("keras-generations-mixed"), machine(text)).findings
    assert found.severity == "info"
