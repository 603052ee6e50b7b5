"""Random private data of every kind, in every place, does not come out of the gate."""

from __future__ import annotations

import json
from random import Random
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases import each
from tests.machines.healthy import healthy
from tests.secrets import CONTEXTS, KEY_SHAPES, KINDS, Planted, in_a_query
from tests.test_privacy import ALICE
from whygpu.model.codec import encode
from whygpu.model.explanation import Explanation
from whygpu.model.finding import Evidence
from whygpu.model.observed import Unknown
from whygpu.privacy import Redactor

thorough = settings(
    max_examples=300,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
kinds = st.sampled_from(sorted(KINDS))
contexts = st.sampled_from(sorted(CONTEXTS))
seeds = st.integers(0, 2**32)

NO_BEGINNING = {
    *(
        "aws secret alone",
        "unlisted key",
        "unlisted base64 key",
        "discord bot token",
        "terraform token",
    ),
    *("twilio key", "mailgun key", "telegram bot token", "azure client secret"),
}
"""Kinds that only their whole length gives away."""
COMMON_BEGINNING = {
    *("openai key", "hugging face token", "replicate token", "groq key", "xai key", "npm token"),
    *("perplexity key", "runpod key", "databricks token", "sendgrid key", "grafana token"),
}
"""Kinds that begin like ordinary words (sk-learn, hf_config): they have to look random as well."""
CUT = 12


def planted(kind: str, seed: int) -> Planted:
    return KINDS[kind](Random(seed))


@each(("kind", "context"), [(kind, context) for kind in KINDS for context in CONTEXTS])
def test_every_kind_in_every_context(kind: str, context: str) -> None:
    secret = planted(kind, seed=1)
    cleaned = Redactor(ALICE).text(CONTEXTS[context](secret.text))
    assert not secret.leaks_into(cleaned), (secret, cleaned)


IN_FOLDERS = {kind for kind in KINDS if {"home", "folder", "share"} & set(kind.split())}


@each("kind", sorted(KINDS.keys() - IN_FOLDERS))
def test_every_kind_in_the_query_of_a_url(kind: str) -> None:
    secret = planted(kind, seed=1)
    cleaned = unquote(Redactor(ALICE).text(in_a_query(secret.text)))
    assert not secret.leaks_into(cleaned), (secret, cleaned)


@thorough
@given(kinds, contexts, seeds)
def test_any_secret_in_any_context(kind: str, context: str, seed: int) -> None:
    secret = planted(kind, seed)
    cleaned = Redactor(ALICE).text(CONTEXTS[context](secret.text))
    assert not secret.leaks_into(cleaned), (secret, cleaned)


@thorough
@given(st.lists(st.tuples(kinds, contexts, seeds), min_size=2, max_size=4))
def test_secrets_beside_each_other(chosen: list[tuple[str, str, int]]) -> None:
    secrets = [planted(kind, seed) for kind, _, seed in chosen]
    texts = [
        CONTEXTS[context](secret.text)
        for secret, (_, context, _) in zip(secrets, chosen, strict=True)
    ]
    cleaned = Redactor(ALICE).text("\n".join(texts))
    for secret in secrets:
        assert not secret.leaks_into(cleaned), (secret, cleaned)


@thorough
@given(kinds, contexts, seeds)
def test_cleaning_twice_is_cleaning_once(kind: str, context: str, seed: int) -> None:
    once = Redactor(ALICE).text(CONTEXTS[context](planted(kind, seed).text))
    assert Redactor(ALICE).text(once) == once


PIECES = st.sampled_from(
    [
        *(
            "password",
            "token",
            "=",
            ": ",
            '"',
            "'",
            "\\",
            "\n",
            " ",
            "@",
            "://",
            "/",
            ".",
            ",",
            "<",
        ),
        *("<removed>", "<host>", "<user>", "<ip removed>", "~", ">", "a1B2", "host", "user", "--"),
        *("10.1.2.3", "fe80::1", "eyJhbGci", "ghp_a1b2c3d4", "-----BEGIN A-----", "x", "key", "("),
    ]
)


@thorough
@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_text_is_cleaned_at_once(text: str) -> None:
    once = Redactor(ALICE).text(text)
    assert Redactor(ALICE).text(once) == once


@thorough
@given(st.sampled_from(sorted(KEY_SHAPES.keys() - NO_BEGINNING)), seeds, st.integers(0, 200))
def test_a_key_that_was_cut_is_still_a_key(kind: str, seed: int, more: int) -> None:
    secret = planted(kind, seed)
    cut = secret.text[: CUT + more]
    cleaned = Redactor(ALICE).text(f"rejected: {cut}")
    if kind not in COMMON_BEGINNING or len(cut) > 20:
        assert not secret.leaks_into(cleaned), (cut, cleaned)


@pytest.mark.parametrize(
    "beginning",
    ["ghp_", "github_pat_", "glpat-", "xoxb-", "AKIA", "ASIA", "AIza", "sk-ant-", "nvapi-"],
)
def test_twelve_characters_of_a_well_known_key_are_enough(beginning: str) -> None:
    cut = (beginning + "A2B3C4D5E6F7G2")[: max(CUT, len(beginning) + 2)]
    assert Redactor(ALICE).text(f"rejected: {cut}") == "rejected: <removed>"
    assert Redactor(ALICE).text(f"rejected: {cut}...") == "rejected: <removed>..."


@thorough
@given(kinds, contexts, seeds)
def test_nothing_comes_out_of_a_snapshot(kind: str, context: str, seed: int) -> None:
    secret = planted(kind, seed)
    text = CONTEXTS[context](secret.text)
    machine = healthy()
    probe = machine.probes[0]._replace(log=(text, "last"))
    machine = machine._replace(
        probes=(probe,), driver=machine.driver._replace(kernel_module=Unknown(text))
    )
    assert not secret.leaks_into(json.dumps(encode(Redactor(ALICE).value(machine))))


@thorough
@given(kinds, contexts, seeds)
def test_nothing_comes_out_of_an_explanation(kind: str, context: str, seed: int) -> None:
    secret = planted(kind, seed)
    text = CONTEXTS[context](secret.text)
    explanation = Explanation(
        verdict="unknown",
        headline=text,
        root_causes=(),
        symptoms=(),
        noise=(),
        unexplained=(Evidence(kind="log", where=text, text=text),),
        crashed=(text,),
    )
    assert not secret.leaks_into(json.dumps(encode(Redactor(ALICE).value(explanation))))
