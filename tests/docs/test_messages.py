"""The page of error messages: fresh, useful, and found by the words that people type."""

from __future__ import annotations

import pathlib
import re

import whygpu
from tests.cases import each
from tools.message_index import PAGE, TOPICS, Message, causes_of, page

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
(_SEPARATOR,) = re.findall(r"(?m)^ +separator: '(.+)'$", (ROOT / "mkdocs.yml").read_text())
SEPARATOR = re.compile(_SEPARATOR.replace("''", "'"))
"""Quotes stand twice in a string of YAML."""
MESSAGES = [message for topic in TOPICS for message in topic.messages]


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


@each("message", MESSAGES, ids=lambda message: message.words)
def test_every_message_leads_somewhere(message: Message) -> None:
    explanation = whygpu.explain(f"{message.words}\n")
    guidance = explanation.guidance
    assert causes_of(explanation) or (guidance is not None and guidance.steps)
    assert message.page is None or (ROOT / "docs" / message.page.file).is_file()


@each(
    "typed",
    [
        "Failed to create session",
        "Could not load dynamic library cudnn64_8.dll",
        "no kernel image",
        "list_physical_devices empty",
        "CUDA out of memory",
        "libcusolver",
        "GPU idle 10%",
        "exit code 137",
        "Cannot dlopen some GPU libraries",
        "torch.cuda.is_available() False",
        "libcudnn",
        "Could not find cuda drivers",
        "OOM when allocating tensor",
        "nvidia-smi has failed",
        "mac m1 mps",
    ],
)
def test_a_heading_has_all_words_of_a_search(typed: str) -> None:
    """The search of the site wants every word, as the start of one, and puts headings first."""
    assert any(_finds(typed, message.words) for message in MESSAGES)


def _finds(typed: str, heading: str) -> bool:
    words = _words(heading)
    return all(any(word.startswith(start) for word in words) for start in _words(typed))


def _words(text: str) -> set[str]:
    return set(filter(None, SEPARATOR.split(text.lower())))
