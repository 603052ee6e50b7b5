"""People paste what they see in their own words, with or without output around it."""

from __future__ import annotations

import re

from tests.cases import each
from whygpu import api
from whygpu.model.remedy import Command
from whygpu.tables.topics import topics, topics_in
from whygpu.tables.topics_told import IDLE, NOT_USED
from whygpu.tables.vocabulary import FIGURES, WORDS

DESCRIBED = (
    ("nvidia-smi is fine, but TensorFlow does not see my RTX 4090", "sees no GPU"),
    ("PyTorch doesnt detect cuda on the new laptop", "sees no GPU"),
    ("tf.config.list_physical_devices('GPU') returns []", "sees no GPU"),
    ("tf.config.list_physical_devices('GPU') gives an empty list", "sees no GPU"),
    ("list_physical_devices is empty", "sees no GPU"),
    ("torch.cuda.device_count() gives 0", "sees no GPU"),
    ("jax in wsl, no gpu", "sees no GPU"),
    ("pytorch says no cuda", "sees no GPU"),
    ("get_available_gpus gives an empty list", "sees no GPU"),
    ("为什么 keras 不用显卡", "not done on the GPU"),
    ("no python process in nvidia-smi although I train", "nvidia-smi lists no process"),
    ("training works but nothing appears in nvidia-smi", "nvidia-smi lists no process"),
    ("my video memory is full, utilization zero", "hardly used"),
    ("GPU-Util always 0 although memory is allocated", "hardly used"),
    ("no speedup with MirroredStrategy on 2 gpus", "several GPUs are slower than one, or no"),
    ("importing torch takes 40 seconds", "takes long to import"),
    ("the session failed", "cannot create a session"),
    ("can't start a session on the card", "cannot create a session"),
    ("two a5000 no faster than one", "several GPUs are slower than one, or no"),
    ("deaktiviere gpu in keras", "how to run a program without the GPU"),
    ("CUDA worked until the driver update", "since something was updated"),
    ("torch.version.cuda says 11.7 but nvcc says 12.2", "show different CUDA releases"),
    ("GPU idle 10%", "hardly used"),
    ("jax.devices() shows only CpuDevice(id=0)", "works on the CPU"),
    ("Keras not using gpu", "not done on the GPU"),
    ("Why isn't my code running on GPU?", "not done on the GPU"),
    ("During training the GPU usage stays at 7 % most of the time", "hardly used"),
    ("Device: cuda. But my GPU usage is 0%", "hardly used"),
    ("I watched nvidia-smi: the load is below 10%", "hardly used"),
    ("训练的时候GPU利用率很低", "hardly used"),
    ("One epoch takes longer on the GPU than on the CPU", "longer on the GPU"),
    ("I am using the GPU for training and it is slow", "is slow"),
    ("On my GTX 1080 it hangs at epoch 1", "does not go on"),
    ("I get NaN on the GPU and numbers on the CPU", "not those of the CPU"),
    ("Training on the GPU restarts my computer", "the computer stops"),
    ("My RTX 5090 is not supported by this PyTorch", "is not supported"),
    ("I have a GeForce 940M and did as the guide says. But it is not detected.", "sees no GPU"),
    (
        "Can TensorFlow 1's tf.Session ignore GPU certification requirements?",
        "how to use a GPU that does not meet the requirements",
    ),
    ("Why does TensorFlow throw exceptions when using a GPU?", "fails when it uses the GPU"),
    ("I get an error when I train on the GPU", "fails when it uses the GPU"),
    ("Why is TensorFlow failing to create a session?", "cannot create a session"),
    ("TensorFlow cannot create a tf.Session", "cannot create a session"),
    ("Can Keras/TensorFlow disable CuDNN?", "how to run a program without cuDNN"),
    ("How do I turn off cuDNN in Keras", "how to run a program without cuDNN"),
    ("Why does TensorFlow detect my GPU but Keras does not?", "Keras does not use the GPU that"),
    ("Keras does not see my GPU, TensorFlow does", "Keras does not use the GPU that"),
    (
        "tf.test.is_gpu_available() gives True but keras only uses the CPU.",
        "Keras does not use the GPU that",
    ),
    (
        "Our IT says the GPU is not certified. Will tf.Session ignore that in TensorFlow 1?",
        "how to use a GPU that does not meet the requirements",
    ),
    ("Why does it throw exceptions as soon as I switch to the GPU?", "fails when it uses the GPU"),
    ("tensorflow.keras does not use the GPU", "not done on the GPU"),
    ("How can I limit the GPU memory that Keras takes?", "how to limit the GPU memory"),
    ("How do I run this without the GPU?", "how to run a program without"),
    ("How do I make Keras use only one GPU?", "how to choose the GPU"),
    ("How do I know if Keras is using the gpu?", "whether a program uses its GPU"),
    ("how to train on my GPU", "how to let a program use the GPU"),
    ("how do I prevent keras from using the GPU", "how to run a program without the GPU"),
    ("how to train on the GPU without sudo", "how to let a program use the GPU"),
    ("how to hide log lines when running on GPU", "how to let a program use the GPU"),
    ("how to use only gpu 2 of 4", "how to choose the GPU"),
    ("How to avoid OOM while training on GPU?", "memory runs out"),
    ("Why is the GPU memory full as soon as it starts?", "takes all of the GPU's memory"),
    ("nvidia-smi says 14 GB used and no process is shown", "stays in use although no program"),
    ("it only uses GPU 0 but the node has 8 V100s", "only one of several GPUs"),
    ("I get different outputs each time on the same GPU", "same result in every run"),
    ("force keras onto cpu only", "how to run a program without the GPU"),
    ("How can my script use the CPU and not the GPU?", "how to run a program without the GPU"),
    ("how to train on two GPUs with Keras", "how to use several GPUs at once"),
    ("The other GPU stays idle, JAX only takes the first", "only one of several GPUs is used"),
    ("2x RTX 3090 but one is idle", "only one of several GPUs is used"),
    ("8 GB of GPU memory are still used after I closed the notebook", "memory stays in use"),
    ("GPU memory is never released by my script", "memory is not freed"),
    ("how do I clear the VRAM between two models", "how to free GPU memory"),
    ("What CUDA does TensorFlow 2.15 need?", "which releases of a framework"),
    ("set up pytorch for my GPU", "how to install a framework for the GPU"),
    ("Must I install cuDNN myself?", "what must be installed beside"),
    ("nvcc says 12.1 while nvidia-smi says 12.6", "why nvidia-smi and other programs"),
    ("What is the largest batch for 16 GB?", "which batch fits"),
    ("Is tensorflow-gpu deprecated, or which package is it?", "the package tensorflow-gpu"),
    ("how to see that jax was built with cuda", "what a framework can use"),
    ("How do I make GPU training deterministic?", "the same result in every run"),
    ("Does PyTorch work with a Radeon RX 7900?", "a GPU of AMD or Intel"),
    ("The first batch takes minutes, then it is fast", "the first steps take longest"),
    ("GPU load is 98 % and it is still slow", "slow although the GPU is busy"),
    ("my GPU is too hot when I train", "gets hot"),
    ("The A100 is slower than my old RTX 2080", "slower than another"),
    ("our input pipeline is slow", "the input is too slow"),
    ("inside the container the GPU is not visible", "a container does not see the GPU"),
    ("Jupyter has no GPU, the terminal has", "in one place and not in another"),
    ("since I upgraded the kernel CUDA no longer works", "since something was updated"),
    ("runs fine on the CPU but crashes on the GPU", "fails on the GPU and works on the CPU"),
    ("It exits silently", "ended, without a message"),
    ("Meine GPU wird nicht erkannt", "sees no GPU"),
    ("PyTorch n'utilise pas le GPU", "not done on the GPU"),
    ("keras no usa la GPU", "not done on the GPU"),
    ("torch не использует GPU", "not done on the GPU"),
    ("torch用不了GPU", "not done on the GPU"),
    ("my keras run keeps the gpu at 8%", "hardly used"),
    ("asked for 8 GPUs, got one", "only one of several"),
    ("tensorflwo cant detcet my gpu", "sees no GPU"),
    ("stop keras from taking all of the vram", "how to limit the GPU memory"),
    ("OOM in the validation, never in training", "runs out in the validation"),
    ("4 gpus train slower than 1", "several GPUs are slower"),
    ("code works on cpu, crashes on gpu", "fails on the GPU and works on the CPU"),
    ("Wie deaktiviere ich die GPU?", "how to run a program without the GPU"),
    ("la gpu ne libère pas la mémoire", "memory is not freed"),
    ("a placa de vídeo não é usada", "not done on the GPU"),
    ("видеокарта простаивает, обучение очень медленное", "hardly used"),
    ("如何限制显存", "how to limit the GPU memory"),
    ("GPUが認識されない", "sees no GPU"),
    ("GPU 메모리 부족", "memory runs out"),
    ("Something odd with the GPU of my desk", "describes something"),
)


@each(
    ("question", "command"),
    [
        ("Which CUDA fits to JAX?", "whygpu plan jax"),
        ("Which CUDA for PyTorch on an RTX 5090?", "whygpu plan torch --gpu 12.0"),
        ("which driver for keras on a GPU", "whygpu plan tensorflow"),
        ("My RTX 5090 is not supported by this PyTorch", "whygpu plan torch --gpu 12.0"),
        ("My RTX 5090 is not supported", "whygpu plan FRAMEWORK --gpu 12.0"),
        ("which CUDA for torch 2.4 on windows", "whygpu plan torch==2.4 --platform win_amd64"),
        ("use gpu 2 and 3 only", "whygpu run --device gpu:2,3 -- python PROGRAM.py"),
        ("limit tf to 6 GB of gpu memory", "whygpu run --memory 6GiB -- python PROGRAM.py"),
    ],
)
def test_a_command_has_the_framework_and_the_gpu_that_are_named(
    question: str, command: str
) -> None:
    guidance = api.explain(question).guidance
    assert guidance is not None
    actions = [step.action for step in guidance.steps]
    assert command.split() in [list(map(str, a.argv)) for a in actions if isinstance(a, Command)]


def test_a_question_is_answered_without_an_excuse() -> None:
    assert api.explain("How do I run this without the GPU?").headline.startswith("line 1 asks how")
    assert api.explain("My GPU is not used").headline.startswith("cannot tell from this log")


def test_the_system_that_a_sentence_names_counts() -> None:
    (first,) = api.explain("gpu not detected tensorflow 2.16 windows").root_causes
    assert first.cause == "windows-native-unsupported"
    assert not api.explain("gpu not detected tensorflow 2.16").root_causes


def test_two_topics_that_explain_as_much_are_both_offered() -> None:
    both = topics_in("keras gpu low, gpu not used")
    assert {topic.says for topic in both} == {IDLE.says, NOT_USED.says}
    headline = api.explain("keras gpu low, gpu not used").headline
    assert IDLE.says in headline
    assert NOT_USED.says in headline


def test_every_concept_that_a_topic_names_exists() -> None:
    figures = {name for _, words in FIGURES for name in re.findall("§([a-z]+)", words)}
    known = {*WORDS, *figures}
    for topic in topics():
        for named in re.findall(r"[^\s|!]+", " ".join((*topic.needs, topic.wants))):
            assert named.lstrip("-/+~") in known, (topic.says, named)


WORKING = "Epoch 1/2\n100/100 [====] - 3s 30ms/step - loss: 0.5\nEpoch 2/2\n"


@each(("text", "understood"), DESCRIBED)
def test_a_description_is_understood_and_never_a_tick(text: str, understood: str) -> None:
    explanation = api.explain(text)
    assert explanation.verdict == "unknown"
    assert understood in explanation.headline
    guidance = explanation.guidance
    assert guidance is not None
    assert guidance.steps


@each(
    "text",
    [
        "My GPU is at 5% and I do not know why.\n",
        "Why is my training on the GPU so slow?\n",
        "We see that TensorFlow is not using the GPU.\n",
        "asked for 4 GPUs, got one\n",
        "GPU를 인식하지 못해요\n",
        "die grafikkarte wird nicht benutzt\n",
    ],
)
def test_a_complaint_above_output_that_looks_fine_is_no_tick(text: str) -> None:
    assert api.explain(WORKING).verdict == "nothing-wrong"
    assert api.explain(text + WORKING).verdict == "unknown"


HARMLESS = (
    "E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN "
    "factory: Attempting to register factory for plugin cuDNN when one has already been registered"
)
QUESTIONS = (
    "is my GPU used?",
    "Is my GPU being used?",
    "Hi, does this use my RTX 3060 or not?",
    "Does this mean that the GPU is working?",
    "Am I running on CUDA?",
    "So is the graphics card really active?",
    "which device is this?",
    "What about my GPU?",
    "why is my GPU not used?",
    "why does it not use CUDA?",
)


@each("question", QUESTIONS)
def test_a_question_that_the_log_does_not_answer_is_no_tick(question: str) -> None:
    for text in (
        f"{question}\n{HARMLESS}\n",
        f"{HARMLESS}\n{question}\n",
        question + "\n" + WORKING,
    ):
        explanation = api.explain(text)
        assert explanation.verdict == "unknown", text
        assert explanation.guidance is not None
        assert explanation.guidance.ask
        assert explanation.guidance.steps


def test_a_question_below_a_long_log_is_read() -> None:
    text = "\n".join(f"reading {word}" for word in map(str, range(80)))
    assert api.explain(f"{text}\n{WORKING}").verdict == "nothing-wrong"
    assert "whether the GPU is used" in api.explain(f"{text}\n{WORKING}is my GPU used?\n").headline


def test_a_log_that_shows_the_gpu_at_work_answers_whether_it_is_used() -> None:
    explanation = api.explain(f"is my GPU used?\nUsing device: cuda:0\n{WORKING}")
    assert explanation.verdict == "nothing-wrong"
    assert "the program says that it works on the GPU, line 2" in explanation.headline
    how = f"How can I limit the GPU memory?\nUsing device: cuda:0\n{WORKING}"
    assert api.explain(how).verdict == "unknown"


@each(
    "line",
    [
        "TPU not found, using GPU",
        "GPU available: True, used: True",
        "Using device: cuda",
        "GPU memory usage is at 10%",
        "No TPU cores found, running on GPU",
        "Prompt: why is my GPU so slow",
        "test_gpu_is_not_found ... ok",
    ],
)
def test_what_a_program_prints_is_no_complaint(line: str) -> None:
    assert api.explain(f"{line}\n{WORKING}").verdict == "nothing-wrong"


@each("text", ["GPU is available but the training ends", "I installed cuda 12.1 and python 3.10"])
def test_other_sentences_are_not_given_a_meaning(text: str) -> None:
    assert "says that" not in api.explain(text).headline


@each(
    ("part", "codes"),
    [
        ("failed call to cuInit", {"WG101", "WG108"}),
        ("could not select device driver", {"WG801"}),
        ("Cannot assign a device for operation", {"WG408", "WG409"}),
        ("RESOURCE_EXHAUSTED", {"WG504"}),
    ],
)
def test_a_part_of_a_message_leads_to_the_pages_that_have_it(part: str, codes: set[str]) -> None:
    explanation = api.explain(part)
    assert explanation.verdict == "unknown"
    assert explanation.guidance is not None
    assert codes <= {title[-6:-1] for title in explanation.guidance.candidates}


def test_words_of_a_longer_text_lead_nowhere() -> None:
    text = "one line\ntwo lines\nthree lines\ncould not select device driver\n"
    guidance = api.explain(text).guidance
    assert guidance is not None
    assert guidance.candidates == ()


@each(
    ("sentence", "verdict"),
    [
        ("We get the following errors with CUDA 12.1 when we import it:", "nothing-wrong"),
        ("I see these warnings when I train on the GPU", "nothing-wrong"),
        ("I get an error when I train on the GPU", "unknown"),
        ("My program fails with these settings when it uses CUDA", "unknown"),
    ],
)
def test_harmless_lines_that_a_person_calls_errors(sentence: str, verdict: str) -> None:
    assert api.explain(f"{sentence}\n\n{HARMLESS}\n").verdict == verdict
    crash = f"{sentence}\n\n{HARMLESS}\nSegmentation fault (core dumped)\n"
    assert api.explain(crash).verdict == "unknown"


@each(
    ("text", "driver_in_doubt"),
    [
        ("list_physical_devices('GPU') returns [] although nvidia-smi lists 4 A100.", False),
        ("nvidia-smi shows CUDA 12.4 / driver 550, but torch says False", False),
        ("nvidia-smi works fine. list_physical_devices('GPU') is []", False),
        ("nvidia-smi shows no devices. list_physical_devices('GPU') is []", True),
        ("nvidia-smi doesn't work. list_physical_devices('GPU') is []", True),
        ("list_physical_devices('GPU') is []", True),
    ],
)
def test_a_driver_that_works_is_no_reason(text: str, driver_in_doubt: bool) -> None:
    guidance = api.explain(text).guidance
    assert guidance is not None
    assert any("no driver" in reason for reason in guidance.candidates) is driver_in_doubt


@each(
    ("first", "understood"),
    [
        ("Why can TensorFlow not create a session?", "cannot create a session"),
        ("How do I switch off cuDNN in Keras?", "how to run a program without cuDNN"),
        ("Why does TensorFlow see the GPU but Keras does not?", "Keras does not use the GPU that"),
        ("My program fails when I use the GPU", "sees no GPU"),
    ],
)
def test_what_somebody_says_first_counts_unless_it_only_says_that_something_fails(
    first: str, understood: str
) -> None:
    later = "I read that this happens if the framework does not find a GPU at all."
    assert understood in api.explain(f"{first}\n\nIt is a new machine.\n{later}\n").headline


@each(
    ("words", "says"),
    [
        ("does tensorflow 2.15 work with python 3.12", "Python 3.9 to 3.11, and none for 3.12"),
        ("can I use pytorch 2.1 with python 3.11?", "Python 3.8 to 3.11"),
        ("is tensorflow 2.10 compatible with cuda 12", "CUDA 11.2, and not for 12"),
        ("GTX 1080 with pytorch 2.15", "13.2, which no longer supports the GTX 1080"),
        ("torch 2.3 with rtx 4090 ok?", "CUDA 11.8 or 12.1, which supports the RTX 4090"),
        ("torch 1.9 with rtx 4090 ok?", "as pip installs it on Linux, has no code for the RTX"),
        ("K80 with pytorch 2.7", "as pip installs it on Linux, has no code for the K80"),
        ("tensorflow 2.15 on Windows 11, does it support my GPU?", "no GPU support on Windows"),
    ],
)
def test_releases_that_somebody_names_are_compared(words: str, says: str) -> None:
    guidance = api.explain(words).guidance
    assert guidance is not None
    assert says in guidance.understood


def test_what_does_not_fit_is_the_first_reason_for_a_complaint() -> None:
    for words in (
        "jax 0.4.20 on python 3.13, the gpu is not used",
        "jax 0.4.20, python 3.13: no gpu",
    ):
        guidance = api.explain(words).guidance
        assert guidance is not None
        assert guidance.candidates[0].endswith("none for 3.13")


@each(
    ("words", "cause"),
    [
        ("RTX 4070 with tensorflow 1.14 gives nan loss", "compute-capability-too-new"),
        (
            "How do I limit the memory of tensorflow 1.15 on my RTX 3090?",
            "compute-capability-too-new",
        ),
        ("my program freezes on an RTX 3060 with pytorch 1.4", "compute-capability-too-new"),
        ("H100 and tensorflow 2.3", "compute-capability-too-new"),
        ("How do I turn off the GPU for tensorflow 1.15 on my RTX 3090?", ""),
        ("my program freezes on an RTX 3060 with pytorch 1.10", ""),
        ("tensorflow 2.15 on Windows 10, training is slow on my GPU", "windows-native-unsupported"),
        ("tensorflow 2.17 on windows 10 only works on the cpu", "windows-native-unsupported"),
        ("tensorflow 2.15 in WSL2 on Windows 10, training is slow on my GPU", ""),
    ],
)
def test_a_release_without_the_gpu_is_suspected_whatever_somebody_complains_of(
    words: str, cause: str
) -> None:
    found = [(root.cause, root.confidence) for root in api.explain(words).root_causes]
    assert found == ([(cause, "possible")] if cause else [])


@each(
    "text",
    [
        "# FastNet\n\nIt trains on the GPU or the CPU.\n\n## Devices\n\nUse --device cpu to run "
        "without a GPU. Training on the CPU is slow.\n",
        "## 1.2.0\n\n- The GPU was not used with TensorFlow 2.11.\n- Memory is freed.\n",
        "web: login ok\nweb: session failed, a new one was created\nweb: 200 OK\n",
        "src: Why is my graphics card not used?\ntgt: Warum wird meine Grafikkarte nicht benutzt?\n"
        "src: The GPU hangs.\ntgt: Die GPU hängt.\nepoch 2 loss 1.2\nepoch 3 loss 1.1\n",
    ],
)
def test_texts_in_which_nobody_complains_are_about_no_symptom(text: str) -> None:
    explanation = api.explain(text)
    assert not re.search(r"line \d+ (?:says|asks)", explanation.headline)
