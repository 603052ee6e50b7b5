"""Secrets planted in every text of a snapshot do not come out of the gate."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.cases import each
from tests.machines.healthy import healthy
from whygpu.host.base import Platform
from whygpu.model.codec import decode, encode
from whygpu.model.snapshot import Snapshot
from whygpu.privacy import Redactor

ALICE = Platform(
    system="Linux",
    kernel="6.8",
    machine="x86_64",
    cores=8,
    python="/usr/bin/python3",
    libc="glibc 2.39",
    home="/home/alice",
    user="alice",
    host_name="deepthought",
)
ROOT = ALICE._replace(home="/root", user="root", host_name="localhost")

SECRETS = {
    "/home/alice/venv/bin/python": "/home/alice",
    "/home/bob/project": "bob",
    "/Users/carol/x": "carol",
    r"C:\Users\Dave\x": "Dave",
    "/data/alice/models": "alice",
    "LD_LIBRARY_PATH=/scratch/alice:/usr/lib": "alice",
    "KERAS_HOME=/scratch/alice": "alice",
    "ssh alice@example": "alice@",
    "on deepthought now": "deepthought",
    "deepthought": "deepthought",
    "driver not running on this host (deepthought.lab.example.org)": "example",
    "alice": "alice",
    "connect to 192.168.17.4:8470": "192.168.17.4",
    "peer 10.11.12.13": "10.11.12.13",
    "listening on fe80:0:0:0:202:b3ff:fe1e:8329": "fe1e",
    "link 3c:ec:ef:12:34:56": "3c:ec:ef",
    "CUDA_VISIBLE_DEVICES=GPU-8932f937-d72c-4106-c12f-20bd9faed9f6": "8932f937",
    "MIG-12345678-aaaa-bbbb-cccc-1234567890ab": "12345678",
    "token ghp_abcdefghijklmnopqrstuvwxyz012345": "ghp_",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz": "hf_Ab",
    "Authorization: Bearer abc.def.ghijkl": "ghijkl",
    "WANDB_API_KEY=0123456789abcdef": "0123456789abcdef",
    "password: hunter22": "hunter22",
    "https://me:pass1234@host/x": "pass1234",
    "AKIAIOSFODNN7EXAMPLE": "AKIAIOSF",
    "key zX9kQ2mN8vB4cR7tY1pL5wE3sD6fG0hJ": "zX9kQ2mN",
}


@each(("text", "secret"), SECRETS.items())
def test_a_secret_is_removed_from_text(text: str, secret: str) -> None:
    assert secret not in Redactor(ALICE).text(text)


def plant(value: Any, text: str) -> Any:
    """The same JSON tree with every free text replaced by one that holds the secret."""
    if isinstance(value, dict):
        return {key: plant(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [plant(item, text) for item in value]
    return text if isinstance(value, str) else value


@each(("text", "secret"), SECRETS.items())
def test_no_field_of_a_snapshot_lets_a_secret_through(text: str, secret: str) -> None:
    planted = [plant(encode(healthy()), words) for words in (text, f"before {text} after")]
    if " " not in text and text == secret:
        planted.pop()  # a bare name is private as a value of its own, not as a word of prose
    cleaned = json.dumps(Redactor(ALICE).tree(planted))
    # Fields of versions keep what looks like an address: that is what versions look like.
    if secret not in ("192.168.17.4", "10.11.12.13"):
        assert secret not in cleaned


def test_addresses_are_removed_from_log_lines() -> None:
    machine = healthy()
    probe = machine.probes[0]._replace(log=("coordinator at 10.11.12.13:8476",))
    cleaned = Redactor(ALICE).value(machine._replace(probes=(probe,)))
    assert cleaned.probes[0].log == ("coordinator at <ip removed>:8476",)


@each(
    "text",
    [
        "nvidia-cublas-cu12==12.9.2.10",
        "jaxlib version 0.12.0.1 is newer than jax 0.12.0.1",
        "Loaded cuDNN version 9.10.2.21 (nvidia-cudnn-cu12 9.10.2.21)",
        "/usr/lib/python3.11/site-packages/nvidia_curand_cu12-10.3.10.19.dist-info",
        "libcuda.so.580.65.06",
        "the root cause is a missing folder",
        "0000:41:00.0",
        "2026-11-15 02:08:48.829062: W tensorflow/core/gpu_device.cc:2365] Cannot dlopen",
        "alice in wonderland",
        "http://127.0.0.1:8888",
        "_ZN10tensorflow8OpKernel11TraceStringERKNS_15OpKernelContextEb",
    ],
)
def test_what_is_not_private_stays(text: str) -> None:
    assert Redactor(ALICE).text(text) == text


@pytest.mark.parametrize(
    "unit", ["a.", "token", "a+", "+A1", "1:", "1.", "/home/", "GPU-a", "-", "="]
)
def test_hostile_text_costs_linear_time(unit: str) -> None:
    """Ten times the text may take ten times as long, not a hundred times; see the ratio."""

    def seconds(size: int) -> float:
        text = (unit * size)[:size]
        began = time.thread_time()
        Redactor(ALICE).text(text)
        return time.thread_time() - began

    short = min(seconds(5_000) for _ in range(3))
    assert min(seconds(50_000) for _ in range(3)) < 40 * max(short, 0.0005)


def test_home_folders_become_a_tilde_that_a_shell_understands() -> None:
    assert Redactor(ALICE).text("/home/alice/venv/bin/python") == "~/venv/bin/python"
    assert Redactor(ROOT).text("/root/venv/bin/python") == "~/venv/bin/python"
    assert Redactor(ALICE).text("PATH=/home/alice/a:/home/alice/b") == "PATH=~/a:~/b"


def test_the_word_root_in_prose_and_keys_is_left_alone_for_root() -> None:
    redactor = Redactor(ROOT)
    assert redactor.text("root cause") == "root cause"
    assert redactor.tree({"root_causes": ["a root"]}) == {"root_causes": ["a root"]}
    assert redactor.text("/opt/root/lib") == "/opt/root/lib"


@pytest.mark.parametrize("name", ["gpu", "cuda", "nvidia", "torch", "linux", "wheel", "python"])
def test_a_machine_or_user_named_like_a_part_of_every_snapshot(name: str) -> None:
    machine = decode(Snapshot, encode(healthy()))
    assert Redactor(ALICE._replace(host_name=name)).value(machine) == machine
    assert Redactor(ALICE._replace(user=name, home=f"/home/{name}")).value(machine) == machine
    assert Redactor(ALICE._replace(home=f"/home/{name}")).text(f"/home/{name}/x") == "~/x"


def test_the_short_name_of_a_machine_that_knows_its_domain_is_removed() -> None:
    redactor = Redactor(ALICE._replace(host_name="deepthought.lab.example.org"))
    assert redactor.text("on deepthought now") == "on <host> now"
    assert redactor.text("on deepthought.lab.example.org") == "on <host>"


def test_versions_with_four_numbers_stay_where_versions_belong() -> None:
    cleaned = Redactor(ALICE).value(healthy())
    assert "9.10.2.21" in json.dumps(encode(cleaned))


def test_a_clean_snapshot_passes_unchanged_and_twice_is_once() -> None:
    machine = decode(Snapshot, encode(healthy()))
    once = Redactor(ALICE).value(machine)
    assert Redactor(ALICE).value(once) == once
    assert once == machine
