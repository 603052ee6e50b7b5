"""Random private data of every kind, for tests: the data that redaction must remove.

`KINDS` maps the name of a kind to a function that makes one specimen. A specimen has the private
data in their usual context (`text`) and the part that must be removed (`core`). `CONTEXTS` maps the
name of a place (a JSON document, a traceback, ...) to a function that puts a text there. Nothing
here is a real key: each specimen consists of random characters.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple
from urllib.parse import quote

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALPHANUMERIC = LOWER + UPPER + DIGITS
HEX = DIGITS + "abcdef"
BASE64 = ALPHANUMERIC + "+/"
URL_SAFE = ALPHANUMERIC + "_-"
BASE32 = UPPER + "234567"


class Planted(NamedTuple):
    text: str
    """The private data with the words that usually surround them."""
    core: str
    """What must be removed: no eight characters of it may remain."""

    def leaks_into(self, output: str) -> str:
        """The first piece of the core that is in the output; empty if there is none."""
        size = min(8, len(self.core))
        pieces = (self.core[at : at + size] for at in range(len(self.core) - size + 1))
        return next((piece for piece in pieces if piece in output), "")


Maker = Callable[[Random], Planted]


def chars(random: Random, alphabet: str, count: int) -> str:
    """Random characters with every class of the alphabet, as in real keys."""
    classes = [have for one in (LOWER, UPPER, DIGITS) if (have := set(one) & set(alphabet))]
    while True:
        text = "".join(random.choices(alphabet, k=count))
        if count < 12 or all(have & set(text) for have in classes):
            return text


def name(random: Random) -> str:
    """A name of a person that is not a word of any language."""
    syllables = [random.choice("bdgkmpvz") + random.choice("aeiou") for _ in range(4)]
    return "".join(syllables) + random.choice("bkvz")


def host(random: Random) -> str:
    return f"{name(random)}{random.randrange(10, 99)}"


def password(random: Random) -> str:
    return chars(random, LOWER, 5) + chars(random, ALPHANUMERIC, 5) + chars(random, DIGITS, 2)


def octet(random: Random) -> str:
    """Not 127: a loopback address identifies nobody."""
    return str(random.randrange(130, 250))


def ipv4(random: Random) -> str:
    return ".".join(octet(random) for _ in range(4))


def uuid(random: Random) -> str:
    return "-".join(chars(random, HEX, size) for size in (8, 4, 4, 4, 12))


def group(random: Random) -> str:
    """Two bytes of an address of IPv6, without a zero in front."""
    return f"{random.randrange(0x1000, 0xFFFF):x}"


def shaped(template: str, core: Callable[[Random], str]) -> Maker:
    """{} in the template is the core, {name} and {host} somebody's."""

    def make(random: Random) -> Planted:
        secret = core(random)
        known = {"{name}": name(random), "{host}": host(random)}
        text = template
        for word, value in known.items():
            text = text.replace(word, value)
        return Planted(text.replace("{}", secret), secret)

    return make


def of(alphabet: str, count: int) -> Callable[[Random], str]:
    return lambda random: chars(random, alphabet, count)


def base64_of(count: int) -> Callable[[Random], str]:
    """Base64 with the padding that its length requires."""
    return lambda random: chars(random, BASE64, count) + "=" * (-count % 4)


KEY_SHAPES: dict[str, tuple[str, Callable[[Random], str]]] = {
    "aws access key id": ("AKIA{}", of(BASE32, 16)),
    "aws temporary key id": ("ASIA{}", of(BASE32, 16)),
    "google api key": ("AIza{}", of(URL_SAFE, 35)),
    "google access token": ("ya29.{}", of(URL_SAFE, 120)),
    "google client secret": ("GOCSPX-{}", of(URL_SAFE, 28)),
    "azure client secret": ("aBc8Q~{}", of(ALPHANUMERIC, 34)),
    "github token": ("ghp_{}", of(ALPHANUMERIC, 36)),
    "github oauth token": ("gho_{}", of(ALPHANUMERIC, 36)),
    "github server token": ("ghs_{}", of(ALPHANUMERIC, 36)),
    "github fine-grained token": ("github_pat_{}", of(ALPHANUMERIC + "_", 82)),
    "gitlab token": ("glpat-{}", of(URL_SAFE, 20)),
    "gitlab runner token": ("glrt-{}", of(URL_SAFE, 20)),
    "hugging face token": ("hf_{}", of(LOWER + UPPER, 34)),
    "openai key": ("sk-{}", of(ALPHANUMERIC, 48)),
    "openai project key": ("sk-proj-{}", of(URL_SAFE, 74)),
    "anthropic key": ("sk-ant-api03-{}", of(URL_SAFE, 93)),
    "openrouter key": ("sk-or-v1-{}", of(HEX, 64)),
    "groq key": ("gsk_{}", of(ALPHANUMERIC, 52)),
    "xai key": ("xai-{}", of(ALPHANUMERIC, 80)),
    "replicate token": ("r8_{}", of(ALPHANUMERIC, 37)),
    "perplexity key": ("pplx-{}", of(ALPHANUMERIC, 48)),
    "nvidia api key": ("nvapi-{}", of(URL_SAFE, 64)),
    "langsmith key": ("lsv2_pt_{}", of(HEX, 32)),
    "pinecone key": ("pcsk_{}", of(ALPHANUMERIC + "_", 70)),
    "runpod key": ("rpa_{}", of(UPPER + DIGITS, 42)),
    "databricks token": ("dapi{}", of(HEX, 32)),
    "slack bot token": ("xoxb-{}", of(DIGITS + "-" + ALPHANUMERIC, 50)),
    "slack app token": ("xapp-1-A0{}", of(ALPHANUMERIC, 60)),
    "slack webhook": (
        "https://hooks.slack.com/services/T0AB12CD3/B0EF45GH6/{}",
        of(ALPHANUMERIC, 24),
    ),
    "discord webhook": (
        "https://discord.com/api/webhooks/1234567890123456789/{}",
        of(URL_SAFE, 68),
    ),
    "discord bot token": ("MTIzNDU2Nzg5MDEyMzQ1Njc4.GaBcDe.{}", of(URL_SAFE, 38)),
    "telegram bot token": ("5123456789:AA{}", of(URL_SAFE, 33)),
    "teams webhook": (
        "https://acme.webhook.office.com/webhookb2/{}/IncomingWebhook/x/y",
        lambda random: uuid(random) + "@" + uuid(random),
    ),
    "stripe live key": ("sk_live_{}", of(ALPHANUMERIC, 24)),
    "stripe test key": ("sk_test_{}", of(ALPHANUMERIC, 99)),
    "stripe restricted key": ("rk_live_{}", of(ALPHANUMERIC, 24)),
    "stripe webhook secret": ("whsec_{}", of(ALPHANUMERIC, 32)),
    "sendgrid key": ("SG.{}", lambda r: chars(r, URL_SAFE, 22) + "." + chars(r, URL_SAFE, 43)),
    "twilio key": ("SK{}", of(HEX, 32)),
    "mailgun key": ("key-{}", of(HEX, 32)),
    "npm token": ("npm_{}", of(ALPHANUMERIC, 36)),
    "pypi token": ("pypi-AgEIcHlwaS5vcmc{}", of(URL_SAFE, 150)),
    "docker token": ("dckr_pat_{}", of(URL_SAFE, 27)),
    "digitalocean token": ("dop_v1_{}", of(HEX, 64)),
    "vault token": ("hvs.{}", of(URL_SAFE, 95)),
    "terraform token": ("aBcDeFgHiJkLmN.atlasv1.{}", of(URL_SAFE, 67)),
    "grafana token": ("glsa_{}_0a1b2c3d", of(ALPHANUMERIC, 32)),
    "shopify token": ("shpat_{}", of(HEX, 32)),
    "linear key": ("lin_api_{}", of(ALPHANUMERIC, 40)),
    "notion token": ("ntn_{}", of(ALPHANUMERIC, 46)),
    "new relic key": ("NRAK-{}", of(UPPER + DIGITS, 27)),
    "postman key": ("PMAK-{}", lambda r: chars(r, HEX, 24) + "-" + chars(r, HEX, 34)),
    "atlassian token": ("ATATT3xFfGF0{}", of(URL_SAFE, 180)),
    "tailscale key": (
        "tskey-auth-{}",
        lambda r: chars(r, ALPHANUMERIC, 12) + "-" + chars(r, ALPHANUMERIC, 32),
    ),
    "sentry token": ("sntrys_{}", of(BASE64, 100)),
    "age key": ("AGE-SECRET-KEY-1{}", of(UPPER + DIGITS, 58)),
    "jwt": (
        "eyJhbGciOiJIUzI1NiJ9.eyJ{}",
        lambda random: chars(random, URL_SAFE, 60) + "." + chars(random, URL_SAFE, 43),
    ),
    "aws secret alone": ("{}", of(BASE64, 40)),
    "unlisted key": ("{}", of(ALPHANUMERIC, 40)),
    "unlisted base64 key": ("{}", base64_of(64)),
}
"""Keys that can be recognised by themselves: a template and its random part."""

NAMED: dict[str, tuple[str, Callable[[Random], str]]] = {
    "password": ("password", password),
    "passwd": ("passwd", password),
    "database password": ("POSTGRES_PASSWORD", password),
    "mysql password": ("MYSQL_PWD", password),
    "passphrase": ("passphrase", password),
    "secret": ("secret", password),
    "client secret": ("client_secret", of(ALPHANUMERIC, 24)),
    "secret key of a web app": ("SECRET_KEY", of(ALPHANUMERIC, 50)),
    "api key": ("api_key", of(ALPHANUMERIC, 20)),
    "apiKey": ("apiKey", of(ALPHANUMERIC, 20)),
    "x-api-key": ("x-api-key", of(ALPHANUMERIC, 30)),
    "token": ("token", of(ALPHANUMERIC, 20)),
    "access token": ("access_token", of(ALPHANUMERIC, 30)),
    "auth token": ("authToken", of(ALPHANUMERIC, 30)),
    "refresh token": ("refresh_token", of(ALPHANUMERIC, 30)),
    "hugging face token variable": ("HF_TOKEN", of(ALPHANUMERIC, 20)),
    "private token": ("PRIVATE-TOKEN", of(ALPHANUMERIC, 20)),
    "credential": ("credential", of(ALPHANUMERIC, 20)),
    "weights & biases key": ("WANDB_API_KEY", of(HEX, 40)),
    "datadog key": ("DD_API_KEY", of(HEX, 32)),
    "datadog application key": ("DATADOG_APP_KEY", of(HEX, 40)),
    "comet key": ("COMET_API_KEY", of(ALPHANUMERIC, 25)),
    "neptune token": (
        "NEPTUNE_API_TOKEN",
        lambda random: "eyJ" + chars(random, ALPHANUMERIC, 120) + "=",
    ),
    "kaggle key": ("KAGGLE_KEY", of(HEX, 32)),
    "twilio auth token": ("TWILIO_AUTH_TOKEN", of(HEX, 32)),
    "aws secret": ("aws_secret_access_key", of(BASE64, 40)),
    "aws secret in camel case": ("SecretAccessKey", of(BASE64, 40)),
    "aws session token": ("AWS_SESSION_TOKEN", base64_of(200)),
    "azure storage key": ("AZURE_STORAGE_KEY", base64_of(86)),
    "azure account key": ("AccountKey", base64_of(86)),
    "gcp private key id": ("private_key_id", of(HEX, 40)),
    "cohere key": ("CO_API_KEY", of(ALPHANUMERIC, 40)),
    "mlflow password": ("MLFLOW_TRACKING_PASSWORD", password),
    "ngc key": ("NGC_API_KEY", of(ALPHANUMERIC, 84)),
    "encryption key": ("ENCRYPTION_KEY", of(BASE64, 43)),
    "session cookie": ("session_cookie", of(ALPHANUMERIC, 32)),
}
"""Keys that only their name reveals: the name and the value."""

NAMED_FORMS: dict[str, str] = {
    "variable": "{key}={value}",
    "spaced": "{key} = {value}",
    "colon": "{key}: {value}",
    "single quotes": "{key}='{value}'",
    "double quotes": '{key}="{value}"',
    "json": '{"user": "u", "{key}": "{value}", "port": 1}',
    "repr": "{'user': 'u', '{key}': '{value}', 'port': 1}",
    "repr of bytes": "{b'{key}': b'{value}'}",
    "pydantic": "Settings(user='u', {key}=SecretStr('{value}'), port=1)",
    "subscript": "os.environ['{key}'] = '{value}'",
    "setter": 'os.environ.setdefault("{key}", "{value}")',
    "docker": "docker run -e {key}={value} image",
    "option": "train.py --{key} {value} --epochs 3",
    "option with =": "train.py --{key}={value} --epochs 3",
    "argv": "['train.py', '--{key}', '{value}', '--epochs', '3']",
    "export": "export {key}={value}",
    "ini": "[remote]\n{key} = {value}\nport = 1",
    "yaml": 'remote:\n  {key}: "{value}"\n  port: 1',
    "query": "https://example.com/v1/x?a=1&{key}={value}&b=2",
    "header": "> {key}: {value}",
    "arrow": '"{key}" => "{value}"',
    "tuple": "('{key}', '{value}')",
    "xml": "<{key}>{value}</{key}>",
    "xml with a prefix": "<cfg:{key} xml:space='default'> {value} </cfg:{key}>",
    "xml on lines": "<{key}>\n  {value}\n</{key}>",
    "xml that was cut": "<a>1</a><{key}>{value}",
    "character data of xml": "<{key}><![CDATA[{value}]]></{key}>",
    "attribute of xml": '<server id="1" {key}="{value}" port="1"/>',
    "name in an attribute": '<property name="{key}">{value}</property>',
    "name and value in attributes": '<add key="{key}" value="{value}"/>',
    "property list": "<key>{key}</key>\n<string>{value}</string>",
    "escaped xml": "&lt;{key}&gt;{value}&lt;/{key}&gt;",
    "escaped twice": "&amp;lt;{key}&amp;gt;{value}&amp;lt;/{key}&amp;gt;",
    "escaped by number": "&#60;{key}&#62;{value}&#60;/{key}&#62;",
    "escaped attribute": "&lt;x {key}=&quot;{value}&quot; /&gt;",
    "xml in json": "\\u003c{key}\\u003e{value}\\u003c/{key}\\u003e",
}
"""Formats of a name and its value."""

ADDRESSES: dict[str, Maker] = {
    "user and password in a URL": shaped("https://{name}:{}@example.com/x", password),
    "password alone in a URL": shaped("redis://:{}@example.com:6379/0", password),
    "token in a URL": shaped("git clone https://{}@example.com/x.git", of(ALPHANUMERIC, 20)),
    "password with @ in a URL": shaped("postgresql://{name}:p@{}@example.com/db", password),
    "mongodb": shaped("mongodb+srv://{name}:{}@c0.example.net/db", password),
    "key in a URL": shaped("https://maps.example.com/x?key={}&v=1", of(ALPHANUMERIC, 20)),
    "signature in a URL": shaped(
        "https://a.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig={}%3D", of(ALPHANUMERIC, 43)
    ),
    "amazon signature": shaped(
        "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature={}", of(HEX, 64)
    ),
    "amazon credential": shaped(
        "https://b.s3.amazonaws.com/k?X-Amz-Credential={}%2F20260101%2Fus-east-1", of(UPPER, 20)
    ),
    "cloudfront signature": shaped(
        "https://cdn.example.com/f?Expires=1&Signature={}&Key-Pair-Id=K1", of(URL_SAFE + "~", 80)
    ),
    "jupyter": shaped("http://localhost:8888/lab?token={}", of(HEX, 48)),
    "azure connection string": shaped(
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={};EndpointSuffix=core.windows.net",
        base64_of(86),
    ),
    "service bus connection string": shaped(
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}",
        base64_of(43),
    ),
    "database connection string": shaped(
        "Server=db.example.com;Database=d;User Id=sa;Password={};Encrypt=yes", password
    ),
    "odbc connection string": shaped("Driver={ODBC};Server=db;Uid=sa;Pwd={};", password),
    "bearer": shaped("Authorization: Bearer {}", of(ALPHANUMERIC, 30)),
    "basic": shaped("Authorization: Basic {}", base64_of(30)),
    "token header": shaped("'Authorization': 'token {}'", of(HEX, 40)),
    "other authorization": shaped("Authorization: {}", of(HEX, 40)),
    "cookie": shaped("Cookie: a=1; sessionid={}; b=2", of(ALPHANUMERIC, 32)),
    "netrc": shaped("machine api.example.com login {name} password {}", password),
    "curl user": shaped("curl -u {name}:{} https://example.com", password),
    "sshpass": shaped("sshpass -p {} ssh example", password),
    "mysql": shaped("mysql -u root -p{} db", password),
    "mysql with a blank": shaped("mysql -u root -p {} db", password),
    "short option": shaped("connecting with -p {}", password),
    "docker login": shaped("docker login -u {name} -p {} example.com", password),
    "redis-cli": shaped("redis-cli -h db.example.com -a {} ping", password),
    "conda channel": shaped("https://conda.anaconda.org/t/{}/acme/noarch", uuid),
    "conda channel of one's own": shaped(
        "https://conda.example.com/t/{}/acme/linux-64", of(ALPHANUMERIC, 24)
    ),
    "conda channel that was cut": shaped("https://conda.example.com/t/{}...", of(ALPHANUMERIC, 24)),
    "proxy without a scheme": shaped("HTTPS_PROXY={name}:{}@proxy.example.com:3128", password),
    "proxy of pip": shaped("pip install --proxy {name}:{}@proxy.example.com:3128 x", password),
    "netrc on lines": shaped(
        "machine api.example.com\n  login {name}.{name}@mail.example.com\n  password {}", password
    ),
    "netrc without a login": shaped("machine api.example.com password {}", password),
    "password encoded in a URL": shaped("https://example.com/?q=password%3D{}%26a%3D1", password),
    "json encoded in a URL": shaped(
        "https://example.com/?q=%7B%22password%22%3A%20%22{}%22%7D", password
    ),
    "url encoded in a URL": shaped(
        "https://example.com/?u=https%3A%2F%2F{name}%3A{}%40example.com%2Fx", password
    ),
    "url encoded twice": shaped(
        "https://example.com/?u=https%253A%252F%252F{name}%253A{}%2540example.com%252Fx", password
    ),
    "wandb login": shaped("wandb login {}", of(HEX, 40)),
    "aws secret near its id": shaped(
        "aws configure: AKIAQWERTYUIOPASDFGH {} us-east-1", of(BASE64, 40)
    ),
    "kaggle.json": shaped('{"username": "{name}", "key": "{}"}', of(HEX, 32)),
    "npmrc": shaped("//registry.example.com/:_authToken={}", of(HEX, 36)),
    "docker config": shaped('{"auths": {"r.example.com": {"auth": "{}"}}}', base64_of(40)),
    "password as prose": shaped("the password is {}", password),
    "connection password": shaped("user={name} password={} host=db", password),
    "password with spaces": shaped("password='{}'", lambda r: password(r) + " " + password(r)),
    "password with marks": shaped('password="{}"', lambda r: password(r) + ",;&!#" + password(r)),
    "password of marks": shaped("PASSWORD={}", lambda r: password(r) + "!@#,%^&*" + password(r)),
}


def pem(random: Random) -> Planted:
    lines = [chars(random, BASE64, 64) for _ in range(4)] + [chars(random, BASE64, 22) + "=="]
    kind = random.choice(("PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"))
    body = "\n".join(lines)
    return Planted(f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----", body)


def service_account(random: Random) -> Planted:
    key = pem(random)
    text = json.dumps({"type": "service_account", "private_key": key.text, "client_id": "1"})
    return Planted(text, key.core)


def ssh_public_key(random: Random) -> Planted:
    key = chars(random, BASE64, 300)
    return Planted(f"ssh-rsa AAAAB3NzaC1yc2E{key} {name(random)}@{host(random)}", key)


PEOPLE: dict[str, Maker] = {
    "home folder": shaped("/home/{}/project/train.py", name),
    "home folder alone": shaped("HOME=/home/{}", name),
    "home folder on a mac": shaped("/Users/{}/project/train.py", name),
    "home folder on windows": shaped(r"C:\Users\{}\project\train.py", name),
    "home folder with a space": shaped(r"C:\Users\{} {name}\project\train.py", name),
    "home folder in wsl": shaped("/mnt/c/Users/{}/project", name),
    "home folder on a cluster": shaped("/nfs/home/{}/project", name),
    "folder of scratch": shaped("/scratch/{}/project/train.py", name),
    "folder of users": shaped("/cluster/users/{}", name),
    "second home": shaped("/home2/{}/project", name),
    "folder of work": shaped("/work/{}/project", name),
    "folder in a share": shaped(r"\\srv01\share\{}", name),
    "login in a sentence": shaped("out of memory for {}@gpuserver", name),
    "user in a record": shaped('{"user": "{}", "gpu": 0}', name),
    "user in a dict": shaped("{'user': '{}'}", name),
    "home folder with a slash": shaped("C:/Users/{}/project", name),
    "home folder by name": shaped("~{}/project", name),
    "home folder in a file URL": shaped("file:///home/{}/project", name),
    "folder of temporary files": shaped("/tmp/torchinductor_{}/ab/cab.py", name),
    "removable disk": shaped("/media/{}/disk/data", name),
    "user variable": shaped("USER={}", name),
    "log name variable": shaped("LOGNAME={}", name),
    "windows user variable": shaped("USERNAME={}", name),
    "user in JSON": shaped('{"username": "{}"}', name),
    "prompt": shaped("{}@example:~/project$ python train.py", name),
    "prompt in brackets": shaped("[{}@example project]$ python train.py", name),
    "ssh": shaped("ssh -p 22 {}@example", name),
    "scp": shaped("scp x.py {}@example:/data", name),
    "e-mail": shaped("{}@example.com", name),
    "e-mail with dots": shaped("Author: A B <{}.{name}+gpu@mail.example.co.uk>", name),
    "owner in a listing": shaped("-rw-r--r-- 1 {} {} 4096 Nov 15 12:00 train.py", name),
    "process": shaped(
        "{}      4242  0.0  0.1 123456 7890 ?  Sl  12:00  0:01 python train.py", name
    ),
    "git author": shaped("Author: {} <x@example.com>", lambda r: name(r) + " " + name(r)),
}

HOSTS: dict[str, Maker] = {
    "host in a prompt": shaped("root@{}:/workspace# python train.py", host),
    "host in a sentence": shaped("out of memory for bob@{}", host),
    "host in ssh": shaped("ssh -i key.pem ubuntu@{}", host),
    "host variable": shaped("HOSTNAME={}", host),
    "host line of tensorflow": shaped(
        "I0000 00:00:1731672000.000000 1 cuda_diagnostics.cc:166] hostname: {}", host
    ),
    "diagnostics of tensorflow": shaped(
        "retrieving CUDA diagnostic information for host: {}", host
    ),
    "driver line of tensorflow": shaped(
        "kernel driver does not appear to be running on this host ({}): /proc/driver", host
    ),
    "host of torch elastic": shaped("  host      : {}.cluster.example", host),
    "machine name": shaped("Machine name: {}", host),
    "computer name": shaped("COMPUTERNAME={}", host),
    "uname": shaped("Linux {} 5.15.0-91-generic #101-Ubuntu SMP x86_64 GNU/Linux", host),
    "syslog": shaped("Nov 15 12:00:00 {} kernel: NVRM: Xid (PCI:0000:41:00): 79", host),
    "nccl": shaped("{}:4242:4250 [0] NCCL INFO Bootstrap : Using eth0", host),
    "slurm node": shaped("SLURMD_NODENAME={}", host),
    "slurm nodes": shaped("SLURM_JOB_NODELIST={}-[001-004,007]", host),
    "slurm nodes in words": shaped("SLURM_NODELIST=login1,{}", host),
    "hosts of mpirun": shaped("mpirun -np 2 -H {host}:8,{}:8 python train.py", host),
    "host of mpirun": shaped("mpirun --host {},localhost python train.py", host),
    "nodes of srun": shaped("srun -w {}[01-04] python train.py", host),
    "line of Open MPI": shaped("[{}:12345] *** Process received signal ***", host),
    "trace of Open MPI": shaped("[{}:12345] [ 0] /lib/libc.so.6(+0x42520)[0x7f]", host),
    "srun": shaped("srun: error: {}: task 3: Exited with exit code 1", host),
    "master address": shaped("MASTER_ADDR={}", host),
    "rendezvous": shaped("torchrun --rdzv_endpoint={}:29400 train.py", host),
    "socket of torch": shaped(
        "[c10d] The client socket has failed to connect to [{}]:29500 (errno: 110)", host
    ),
    "host in JSON": shaped('{"hostname": "{}", "port": 1}', host),
    "internal host in a URL": shaped("http://{}.corp.internal:8080/simple", host),
    "bare host in a URL": shaped("http://{}:8080/simple", host),
    "host with an address in its name": shaped(
        "ip-{}.ec2.internal", lambda r: "-".join(octet(r) for _ in range(4))
    ),
    "network share": shaped(r"\\{}\share\data", host),
}

NETWORK: dict[str, Maker] = {
    "address": shaped("connect to {}:8470", ipv4),
    "address in a variable": shaped("MASTER_ADDR={}", ipv4),
    "address in an option": shaped("--master_addr={}", ipv4),
    "address of nccl": shaped("NCCL INFO Bootstrap : Using eth0:{}<0>", ipv4),
    "address with a mask": shaped("inet {}/24 brd", ipv4),
    "address in a URL": shaped("tcp://{}:23456", ipv4),
    "address in JSON": shaped('{"ip": "{}"}', ipv4),
    "address in brackets": shaped("[{}]:29500", ipv4),
    "address of IPv6": shaped("listening on {}", lambda r: ":".join(group(r) for _ in range(8))),
    "compressed address": shaped("inet6 2001:db8::{}/64", lambda r: f"{group(r)}:{group(r)}"),
    "short link address": shaped("inet6 fe80::{} scope link", lambda r: f"{group(r)}:{group(r)}"),
    "link address with a zone": shaped(
        "fe80::{}%eth0", lambda r: ":".join(group(r) for _ in range(4))
    ),
    "address with a port": shaped(
        "http://[2001:db8::{}]:8470/", lambda r: f"{group(r)}:{group(r)}"
    ),
    "mapped address": shaped("from ::ffff:{}", ipv4),
    "address that starts with colons": shaped("bind ::{} ok", lambda r: f"{group(r)}:{group(r)}"),
    "address that ends with colons": shaped("route {}::/48", lambda r: f"{group(r)}:{group(r)}"),
    "hardware address": shaped(
        "link/ether {} brd", lambda r: ":".join(chars(r, HEX, 2) for _ in range(6))
    ),
    "hardware address with dashes": shaped(
        "Physical Address: {}", lambda r: "-".join(chars(r, HEX.upper(), 2) for _ in range(6))
    ),
    "hardware address with dots": shaped(
        "mac {}", lambda r: ".".join(chars(r, HEX, 4) for _ in range(3))
    ),
    "infiniband address": shaped(
        "link/infiniband {}", lambda r: ":".join(chars(r, HEX, 2) for _ in range(20))
    ),
}

HARDWARE: dict[str, Maker] = {
    "uuid of a GPU": shaped("GPU 0: NVIDIA H200 (UUID: GPU-{})", uuid),
    "uuid of a GPU in a variable": shaped("CUDA_VISIBLE_DEVICES=GPU-{}", uuid),
    "cut uuid of a GPU": shaped("CUDA_VISIBLE_DEVICES=GPU-{}", of(HEX, 8)),
    "uuid of a GPU in capitals": shaped("GPU-{}", lambda random: uuid(random).upper()),
    "uuid of a GPU without dashes": shaped("GPU-{}", of(HEX, 32)),
    "uuid of a MIG slice": shaped("MIG-{}", uuid),
    "old uuid of a MIG slice": shaped("MIG-GPU-{}/1/0", uuid),
    "uuid in the properties of torch": shaped(
        "_CudaDeviceProperties(name='NVIDIA H200', uuid={}, L2_cache_size=60MB)", uuid
    ),
    "uuid of a GPU in hexadecimal": shaped("gpu_uuid: {}", of(HEX, 32)),
    "serial number": shaped("Serial Number                         : {}", of(DIGITS, 13)),
    "serial in JSON": shaped('{"serial": "{}"}', of(DIGITS, 13)),
    "serial of a board": shaped("Board Serial Number: {}", of(UPPER + DIGITS, 14)),
    "serial of nvidia-smi": shaped("GPU Serial: {}", of(DIGITS, 13)),
    "system uuid": shaped("System UUID: {}", uuid),
    "machine id": shaped("machine-id: {}", of(HEX, 32)),
    "machine id in a variable": shaped("MACHINE_ID={}", of(HEX, 32)),
    "boot id": shaped("boot_id {}", uuid),
    "infiniband guid": shaped("Node GUID: 0x{}", of(HEX, 16)),
    "fabric guid": shaped("GPU Fabric GUID                   : 0x{}", of(HEX, 16)),
}


def _named(key: str, value: Callable[[Random], str], form: str) -> Maker:
    def make(random: Random) -> Planted:
        secret = value(random)
        return Planted(form.replace("{key}", key).replace("{value}", secret), secret)

    return make


KINDS: Mapping[str, Maker] = {
    **{kind: shaped(template, core) for kind, (template, core) in KEY_SHAPES.items()},
    **{
        f"{kind} ({form})": _named(key, value, template)
        for kind, (key, value) in NAMED.items()
        for form, template in NAMED_FORMS.items()
    },
    **ADDRESSES,
    "pem": pem,
    "service account": service_account,
    "ssh public key": ssh_public_key,
    **PEOPLE,
    **HOSTS,
    **NETWORK,
    **HARDWARE,
}
"""Every kind of private data: kind -> a function that makes one of it."""


CONTEXTS: Mapping[str, Callable[[str], str]] = {
    "alone": lambda text: text,
    "log line": lambda text: f"2026-11-15 02:08:48.829062: W tensorflow/core/x.cc:2365] {text}",
    "python logging": lambda text: f"2026-11-15 02:08:48,829 - root - ERROR - {text}",
    "between lines": lambda text: f"first line\n{text}\nlast line",
    "json": lambda text: json.dumps({"message": text, "level": 3}),
    "json twice": lambda text: json.dumps({"line": json.dumps({"message": text})}),
    "repr": lambda text: repr({"message": text, "level": 3}),
    "list of lines": lambda text: repr(text.splitlines()),
    "shell command": lambda text: f"+ echo {text}",
    "variable": lambda text: f"declare -x NOTE={text}",
    "traceback": lambda text: (
        'Traceback (most recent call last):\n  File "/opt/app/train.py", line 3, in <module>\n'
        f"    main()\nRuntimeError: cannot connect: {text}\n"
    ),
    "ini": lambda text: f"[section]\nnote = {text}\n",
    "yaml": lambda text: f"steps:\n  - run: {text}\n",
    "python source": lambda text: f"NOTE = {text!r}  # a note",
    "coloured": lambda text: f"\x1b[31m{text}\x1b[0m",
    "brackets": lambda text: f"error ({text})",
    "comma": lambda text: f"first, {text}, last",
}
"""Places in which private data is found."""


def in_a_query(text: str) -> str:
    """As part of an address, in which folders are those of a server."""
    return f"https://example.com/report?note={quote(text)}"
