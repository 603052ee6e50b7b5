"""Secrets planted in every text of a snapshot do not come out of the gate."""

from __future__ import annotations

import json
import pathlib
from random import Random
from typing import Any

import pytest

from tests.cases import each
from tests.kit import Example, examples, explained, machine
from tests.machines.healthy import healthy
from tests.secrets import KINDS
from whygpu.api import explain
from whygpu.causes import catalogue
from whygpu.host.base import Platform
from whygpu.model.codec import decode, encode
from whygpu.model.explanation import Explanation
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Package
from whygpu.privacy import GENERAL, Redactor

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


SECRETS_AS_WRITTEN = [
    ("DB_PASS=letmein", "letmein"),
    ("peer 10.0.0.4", "10.0.0.4"),
    ("10.0.0.4", "10.0.0.4"),
    ("--password hunter2", "hunter2"),
    ("--token=abcdef", "abcdef"),
    ("password='x7'", "x7"),
    ('{"password": "pw"}', '"pw"'),
    ("password=SecretStr('topsecret')", "topsecret"),
    ("-e PASSWORD=xyzzy", "xyzzy"),
    ("redis://:pw@h", "pw@"),
    ("https://tok3n@h/x", "tok3n"),
    ("https://x.com/a?key=abcd&sig=efgh", "abcd"),
    ("https://x.com/a?key=abcd&sig=efgh", "efgh"),
    ("secret: abc", "abc"),
    ("my password is Tr0ub4dor", "Tr0ub"),
    ("DB_PASS=letmein1234567890", "letmein"),
    ("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
    ("aws secret wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
    ("SharedAccessSignature=sv=2020&sig=abcDEF123%3D", "abcDEF"),
    ("hostname: deep", "deep"),
    ("host node17 is down", "node17"),
    ("connect to host bigbox port 22: refused", "bigbox"),
    ("Machine name: BIGBOX", "BIGBOX"),
    ("SLURM_NODELIST=gpu[01-04]", "gpu[01"),
    ("SLURM_JOB_NODELIST=node001,node002", "node002"),
    ("ssh bob@bigbox", "bob"),
    ("bob@bigbox:~$ ls", "bigbox"),
    ("scp x bob@bigbox:/tmp", "bob"),
    ("fe80::1", "fe80"),
    ("2001:db8::1", "2001"),
    ("[2001:db8::1]:80", "2001"),
    ("::ffff:10.0.0.1", "10.0.0.1"),
    ("fe80::1%eth0", "fe80"),
    ("00-1A-2B-3C-4D-5E", "1A-2B"),
    ("001a.2b3c.4d5e", "2b3c"),
    ("Serial Number : 1650522003820", "16505"),
    ("UUID: 8932f937d72c4106c12f20bd9faed9f6", "8932f9"),
    ("GPU UUID : GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "8932"),
    ("user: bob@x.org", "bob"),
    ("/Users/x/y", "/x/"),
    ("C:\\Users\\x\\y", "\\x\\"),
    ("password:hunter22", "hunter22"),
    ("PASSWORD: 'a b c'", "a b c"),
    ("passwd = 12345", "12345"),
    ("{'api_key': 'x'}", "'x'"),
    ("api-key: abc123", "abc123"),
    ("X-API-Key: abc123", "abc123"),
    ("apikey=abc123", "abc123"),
    ("client_secret=abc~def", "abc~"),
    ("'token': 'abcdefg'", "abcdefg"),
    ("token abcdef1234567890abcdef1234567890abcd", "abcdef12"),
    ("Authorization: token abcdef1234567890", "abcdef"),
    ("Proxy-Authorization: Basic dXNlcjpwYXNz", "dXNl"),
    ("-H 'Authorization: Bearer abc.def'", "abc.def"),
    ("wandb: API key 0123456789abcdef0123456789abcdef01234567", "0123456"),
    ("api key: 0123456789abcdef0123456789abcdef01234567", "01234567"),
    ("WANDB_API_KEY 0123456789abcdef0123456789abcdef01234567", "0123456"),
    ("--hf-token hfabcdefg", "hfabc"),
    ("--api_key 'abc def'", "abc def"),
    ("PGPASSWORD=abc psql", "abc"),
    ("AZURE_CLIENT_SECRET: a~b8Q~cdefghijklmnop", "8Q~"),
    ("DATABASE_URL=postgres://u:p@h:5432/d", "u:p"),
    ("mail: Foo Bar <foo.bar@corp.com>", "foo.bar"),
    ("user=bob", "bob"),
    ("hostname=bigbox", "bigbox"),
    ("HOSTNAME: bigbox", "bigbox"),
    ("on host bigbox17", "bigbox17"),
    ("running on gpu-node-03.cluster.local:29500", "gpu-node"),
    ("\\\\nas01\\share\\x", "nas01"),
    ('Kaggle {"username":"bob","key":"0123456789abcdef0123456789abcdef"}', "0123456"),
    ("//registry.npmjs.org/:_authToken=npm_abc123DEF456ghi789", "abc123"),
    ('"auth": "dXNlcjpwYXNzd29yZDEyMzQ1Ng=="', "dXNlc"),
    ('password = "ab\\"cd1234"', "cd1234"),
    ("PASSWORD=$ecret123", "ecret123"),
    ("token=eyJhbGciOiJIUzI1NiJ9.abc.def", "eyJ"),
    ("ANTHROPIC_API_KEY sk-ant-api03-abc", "sk-ant"),
    ("key=AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIza"),
    ("TWILIO_AUTH_TOKEN=0123456789abcdef0123456789abcdef", "01234567"),
    ("ACCOUNT_SID=AC0123456789abcdef0123456789abcdef", "01234567"),
    ("jdbc:mysql://h/db?user=bob&password=pw12", "pw12"),
    ("Cookie: session=abc", "abc"),
    ("set-cookie: sid=abc; Path=/", "abc"),
    ("pass: hunter2", "hunter2"),
    ("smtp://bob:pw@mail", "pw@"),
    ("machine-id 0123456789abcdef0123456789abcdef", "01234567"),
    ("Node 10.1.2.3 down", "10.1"),
    ("Hostname:\tbigbox", "bigbox"),
    ("NodeName=gpu17 Arch=x86", "gpu17"),
    ("BatchHost=gpu17", "gpu17"),
    ("SLURM_SUBMIT_HOST=login01", "login01"),
    ("worker at tcp://10.0.0.3:44", "10.0"),
    ("/data/users/bob/x", "bob"),
    ("/home/bob", "bob"),
    ("uid=1000(bob) gid=1000(bob)", "bob"),
    ("out of memory wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
    ("wJalrXUtnrFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
    ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefgh"),
    ("npm_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "ABCDEFGH"),
    ("SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG", "abcdefgh"),
    ("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "abcdefgh"),
    ("out of memory -p hunter3", "hunter3"),
    ("mysql -u root -p hunter3 db", "hunter3"),
    ("out of memory for bob@gpuserver", "bob"),
    ("out of memory for bob@gpuserver", "gpuserver"),
    ("{'user': 'bob'}", "bob"),
    ('{"user": "bob", "gpu": 0}', "bob"),
    ("/scratch/bobby/project/x.py", "bobby"),
    ("/cluster/users/bob", "bob"),
    ("/cluster/users/bob/x", "bob"),
    ("\\\\srv\\share\\bob", "bob"),
    ("\\\\srv\\share\\bob\\x.py", "bob"),
    ("/home2/bob/x", "bob"),
    ("/u/bob/x", "bob"),
    ("/work/bob/x", "bob"),
    ("/gpfs/home/bob/x", "bob"),
    ("/lustre/scratch/bob: no space left", "bob"),
    ("/scratch/users/bob/x", "bob"),
    ("slurmstepd: error: *** JOB 123 ON gpu17 CANCELLED AT 2026", "gpu17"),
    ("connect to 8.8.8.8 failed", "8.8.8.8"),
    ("server 3.15.22.101 is down", "3.15"),
    ("node 10.0.0.4 has TensorRT", "10.0.0.4"),
]


@each(("text", "secret"), SECRETS_AS_WRITTEN)
def test_a_secret_is_removed_however_it_is_written(text: str, secret: str) -> None:
    assert secret not in Redactor(ALICE).text(text)


HARMLESS = """\
nvidia-cublas-cu12==12.9.2.10
jaxlib version 0.12.0.1 is newer than jax 0.12.0.1
Loaded cuDNN version 9.10.2.21 (nvidia-cudnn-cu12 9.10.2.21)
/usr/lib/python3.11/site-packages/nvidia_curand_cu12-10.3.10.19.dist-info
libcuda.so.580.65.06
the root cause is a missing folder
0000:41:00.0
2026-11-15 02:08:48.829062: W tensorflow/core/gpu_device.cc:2365] Cannot dlopen
alice in wonderland
http://127.0.0.1:8888
_ZN10tensorflow8OpKernel11TraceStringERKNS_15OpKernelContextEb
12.9.2.10 is required by torch but you have nvidia-cublas 12.8.4.1
libcudnn.so.9.10.2
torch 2.0.0+cu117.git1234567
2.0.0a0+git9c1e5f60ab37
CUDA_ERROR_OUT_OF_MEMORY: out of memory
cudaErrorNoKernelImageForDevice: no kernel image is available
/usr/local/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so
GPU 00000000:41:00.0: PCI 0000:01:00.0, bus 3B:00.0
12:34:56 and 2026-11-15T02:08:48.829062Z
Tried to allocate 34359738368 bytes (32.00 GiB). GPU 0 has a total capacity of 79.15 GiB
shape=(32, 3, 224, 224) dtype=float32 [32,3,224,224]
vocab tokens: 50257
max_tokens=512
max_new_tokens: 1024
tokenizer=LlamaTokenizerFast(name_or_path='meta-llama/Llama-3.1-8B', vocab_size=128000)
tokenizer: AutoTokenizer
pad_token_id: 0
eos_token='</s>', bos_token="<s>", unk_token='[UNK]'
num_key_value_heads=8
key: value
keys: ['a', 'b', 'c']
KeyError: 'state_dict'
missing keys: ['layer.0.weight']
tokens_per_second: 1234.5
special_tokens_map.json
unexpected token: foo
SyntaxError: invalid token (train.py, line 3)
torch @ file:///opt/wheels/torch-2.0.0-cp311-cp311-linux_x86_64.whl
gpu@0
@tf.function
@tf.function(jit_compile=True)
github.com/foo/bar@v1.2.3
actions/checkout@v4
memcpy@@GLIBC_2.14
memcpy@GLIBC_2.2.5
recall@5 Acc@1 71.2 mAP@0.5
git+https://github.com/openai/CLIP.git@a9b1bf5920416aaeaec965c25dd9e8f98c864f16
git@github.com:pytorch/pytorch.git
GPU-accelerated decode of the GPU-backed cache
MIG-enabled GPUs, MIG 1g.10gb
CUDA_VISIBLE_DEVICES=0,1
device='cuda:0'
/job:localhost/replica:0/task:0/device:GPU:0
XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda
c10::Error, at::Tensor, std::vector<int>, ::operator new
x[::2] a[1::2] b[::-1] c[10:20:2]
c10::
sha256:9c1e5f60ab379c1e5f60ab379c1e5f60ab379c1e5f60ab379c1e5f60ab379c1e
nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04@sha256:622e78a1d02c0f90ed900e3985d6c975d8e2dc9ee5e61643aed587dcf9129f42
N5torch8autograd13AccumulateGradE
_ZNK3c1010TensorImpl27throw_storage_access_errorEv
Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0_APM1
ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn
DeepSeek-R1-Distill-Qwen-32B-GPTQ-Int4-v2
FastAppendFloat8e5m2ArrayToTensorProto
host memory, host to device: 12 GB/s
on host: CUDA_ERROR_OUT_OF_MEMORY
Host compiler: gcc 11.4.0
StreamExecutor device (0): Host, Default Version
pinned_host memory
hosts: 1, devices per host: 8
user: Hello, how are you?
"role": "user", "content": "hi"
Serial Number : N/A
Driver Version: 550.54.15    CUDA Version: 12.4
NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
password must be at least 8 characters
Authorization failed
secret sauce
the API key is missing
api_key=None
token=True, use_auth_token=False
password: ********
HF_TOKEN=${HF_TOKEN}
os.environ["HF_TOKEN"]
export KERAS_BACKEND=jax
http://127.0.0.1:8888 http://localhost:6006/
https://pytorch.org/get-started/locally/
https://download.pytorch.org/whl/cu124
https://storage.googleapis.com/jax-releases/jax_cuda_releases.html
Requires-Dist: nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == "Linux"
numpy>=1.24,<2.0; python_version<'3.12'
run-26-11-15-02-08-48
2026-11-15-02-08-48
0.3.1.2
cublas 12.4.5.8, cudnn 9.1.0.70
E0000 00:00:1731672000.000000    1234 cuda_dnn.cc:8310] Unable to register cuDNN factory
layer_token_embedding: (50257, 768)
session_id=3
sess = tf.compat.v1.Session(config=config)
cache key: jit_f-0
signature: (Tensor, int) -> Tensor
basic block, bearer of news
sk-learn-contrib, scikit-learn==1.4.0, task-based
hf_config.json hf_hub_download hf_quantizer
npm_config_registry
commit 76ce2f8aa0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5
HEAD is now at f2c8771
fingerprint 1a2b3c4d
~/venv/bin/python
~=1.2
-rw-r--r-- 1 root root 4096 Nov 15 12:00 train.py
root      4242  0.0  0.1 123456 7890 ?  Sl  12:00  0:01 python train.py
root@3f2a9c41d07e:/app# python serve.py
passed: 3, bypass=1
author: the PyTorch team
127.0.0.1:6006 0.0.0.0:8888
255.255.255.0
::1 localhost
conda-forge/linux-64::cudatoolkit-11.8.0-h6a678d5_0
(user='u', port=1)
-H 'Authorization: basic ...'
# Forward pass: per-channel dequantization
custom_pass: torch._inductor.custom_graph_pass.CustomGraphPassType = None
MultiWorkerMirrored2x2GPUNoMergeCall
"known": "12.9.2.10"
/scratch/datasets/imagenet /work/models/llama /users/shared/x
https://api.example.com/users/bob/repos
spack install hdf5@develop
logits = query@weight
jax@nightly precision@top5
{"user": "hello"}
/sys/fs/cgroup/user/foo.slice
site/X86/AsmParser/X86AsmInstrumentation
TensorRT 8.5.3.1
linked against nvinfer 8.6.1.6
have 8.9.7.29, expected 9.1.0.70
have 10.3.0.26, expected 12.4.5.8
cuDNN: loaded 8.9.7.29 but compiled with 9.1.0.70
TensorRT was upgraded from 10.0.1.6 to 10.3.0.26
slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0
slurmstepd: error: task_g_set_affinity: Operation not permitted
srun: fatal: cannot start
/etc/passwd: Permission denied
cat: /run/secrets/db_password: No such file or directory
srun -p gpu02 -n 1 python train.py
mkdir -p build12 && docker run -p 8080:80 x
https://discuss.example.org/t/cuda-11-8-out-of-memory-on-rtx-3090/12345
https://download.example.org/whl/cu118/torch-2.0.0%2Bcu118-cp310-cp310-linux_x86_64.whl
loss: 50%, lr=1e-3, step%05d of 100%
mpirun -np 4 -H localhost:4 python train.py
mpirun --hostfile hosts.txt python train.py
[trainer.py:123] [ 0] loss
[rank0:1234] step 3
std::map<Key>word1 std::vector<tensorflow::Session>sessions
usage: login <user>:<password>@<host>
--token <token> --api-key <api-key>, see <secret>s
<pad_token>word</pad_token><token>word</token>
no proxy: example.com:3128
the user will login with his password later
"""


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


@pytest.mark.slow
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


@each("text", HARMLESS.splitlines())
def test_what_is_not_private_stays(text: str) -> None:
    assert Redactor(ALICE).text(text) == text


@pytest.mark.slow
def test_the_index_of_rules_loses_nothing() -> None:
    """A rule that is not tried would not have changed the text."""
    for make in KINDS.values():
        text = make(Random(1)).text
        tried = every = text
        tried = GENERAL.apply(tried)
        for rule in GENERAL.rules:
            every = rule.clean(every)
        assert tried == every


def sayings(explanation: Explanation) -> tuple[str, list[str]]:
    return explanation.verdict, [finding.cause for finding in explanation.root_causes]


LOGS = sorted((pathlib.Path(__file__).parent / "logs").glob("*.log"))
PAGES = [(cause.slug, example) for cause in catalogue() for example in examples(cause.page)]


@pytest.mark.slow
@each("path", LOGS, ids=lambda path: path.stem)
def test_a_cleaned_log_means_the_same(path: pathlib.Path) -> None:
    log = path.read_text(encoding="utf-8")
    cleaned = Redactor(ALICE).text(log)
    assert sayings(explained(cleaned)) == sayings(explained(log))
    kept = [
        (line, clean)
        for line, clean in zip(log.splitlines(), cleaned.splitlines(), strict=True)
        if line != clean and not any(word in line for word in ("/home/", "NCCL"))
    ]
    assert kept == [], "a line without anything private was changed"


@pytest.mark.slow
@each(("slug", "example"), [page for page in PAGES if page[1].kind == "log"])
def test_a_cleaned_example_of_a_log_means_the_same(slug: str, example: Example) -> None:
    cleaned = Redactor(ALICE).text(example.text)
    assert sayings(explained(cleaned)) == sayings(explained(example.text))


@pytest.mark.slow
@each(("slug", "example"), [page for page in PAGES if page[1].kind == "machine"])
def test_an_example_of_a_machine_holds_nothing_private(slug: str, example: Example) -> None:
    snapshot = machine(example.text)
    assert Redactor(ALICE).value(snapshot) == snapshot


def test_a_field_says_what_its_value_is() -> None:
    record = {"password": "x", "port": "x", "env": {"API_KEY": "abc"}, "hosts": ["a"], "user": "u"}
    assert Redactor(ALICE).tree(record) == {
        **record,
        "password": "<removed>",
        "env": {"API_KEY": "<removed>"},
    }


def test_a_key_of_many_lines_is_removed_from_a_list_of_lines() -> None:
    lines = ["first", "-----BEGIN PRIVATE KEY-----", "MIIabc", "Q==", "-----END PRIVATE KEY-----"]
    assert Redactor(ALICE).tree([*lines, "last word"]) == [
        *("first", "<removed>", "<removed>", "<removed>", "<removed>", "last word")
    ]


def test_colours_stay_unless_something_private_is_among_them() -> None:
    assert Redactor(ALICE).text("\x1b[31mfine\x1b[0m") == "\x1b[31mfine\x1b[0m"
    assert Redactor(ALICE).text("pass\x1b[1mword=\x1b[31mabc") == "password=<removed>"


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


NAMES_SAID_AGAIN = [
    ("zelda@gpubox42:~$ python x.py", "out of memory on gpubox42"),
    ("zelda@gpubox42:~$ python x.py", "started by zelda"),
    ("driver does not appear to be running on this host (gpubox42): /proc", "gpubox42 is down"),
    ("cuda_diagnostics.cc:166] hostname: gpubox42", "on gpubox42.lab.example.org, again"),
    ("/home/zelda/x.py", "job of zelda"),
    ("/scratch/zelda/x.py", "zelda"),
    ("USER=zelda", "(zelda)"),
    ("zelda@merlin:~$ python x.py", "node merlin, user zelda"),
]


@each(("form", "prose"), NAMES_SAID_AGAIN)
def test_a_name_that_a_form_shows_is_removed_everywhere(form: str, prose: str) -> None:
    for lines in ([form, prose], [prose, form]):
        together = Redactor(ALICE).text("\n".join(lines))
        apart = Redactor(ALICE).tree({"a": lines[0], "b": [lines[1]]})
        for name in ("zelda", "gpubox42", "merlin", "lab.example"):
            assert name not in together
            assert name not in json.dumps(apart)
        assert Redactor(ALICE).text(together) == together


@pytest.mark.parametrize("word", ["memory", "cuda", "worker", "training", "master", "will", "gpu"])
def test_an_ordinary_word_is_not_learnt_as_a_name(word: str) -> None:
    cleaned = Redactor(ALICE).tree([f"{word}@{word}:~$ python x.py", f"the {word} is lost"])
    assert cleaned == ["<user>@<host>:~$ python x.py", f"the {word} is lost"]


def test_a_name_is_learnt_for_one_answer() -> None:
    redactor = Redactor(ALICE)
    assert redactor.for_one_answer().text("zelda@gpubox42:~$ ls") == "<user>@<host>:~$ ls"
    assert redactor.for_one_answer().text("the story of zelda") == "the story of zelda"


def test_an_answer_does_not_say_a_name_that_only_the_rest_of_the_log_shows() -> None:
    log = (
        "zelda@gpubox42:~$ python x.py\nRuntimeError: CUDA error: out of memory on gpubox42, zelda"
    )
    answer = json.dumps(encode(explain(log)))
    assert "out of memory on <host>, <user>" in answer
    assert "gpubox42" not in answer
    assert "zelda" not in answer


def test_a_command_keeps_its_plain_words() -> None:
    redactor = Redactor(ALICE, keeps_other_homes=True)
    assert redactor.text("chown alice /home/alice/x") == "chown alice ~/x"


@each(
    ("requirement", "shown"),
    [
        ("nvidia-cublas-cu12==12.9.2.10", True),
        ("nvidia-cudnn-cu12 (>=9.10.2.21) ; platform_system == 'Linux'", True),
        ("numpy NCCL INFO Bootstrap : Using eth0:230.147.200.203<0>", False),
        ("numpy; sys_platform == 'x' Using eth0:10.1.2.3<0>", False),
    ],
)
def test_four_numbers_are_a_version_only_in_a_requirement(requirement: str, shown: bool) -> None:
    package = Package("example", "1.0", "/example", False, (requirement,), ())
    kept = Redactor(ALICE).value(package).requires == (requirement,)
    assert kept is shown
