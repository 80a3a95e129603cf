"""The screen of secrets over lines of real documents, and over secrets of every known form."""

import json
import random
import string
from pathlib import Path

import pytest

from jidomem.write.secrets import find

DOCUMENTS = [
    json.loads(line)
    for line in (Path(__file__).parent / "screened" / "documents.jsonl").read_text("utf-8").splitlines()
]
#: What is reported in documents though it is no secret: a password of a demonstration that looks like one.
REPORTED = ("NEO4J_PASSWORD=graphiti",)
CHANCE = random.Random(21)
BASE62 = string.ascii_letters + string.digits
HEX, UPPER32 = "0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
URL64 = BASE62 + "-_"


def drawn(length, signs=BASE62):
    """A number of random characters: a secret of a true form that is in no file."""
    return "".join(CHANCE.choices(signs, k=length))


def key(kind):
    """A private key in PEM, of random characters."""
    lines = "\n".join(drawn(64, BASE62 + "+/") for _ in range(6))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


SECRETS = {
    "AWS access key": "AKIA" + drawn(16, UPPER32),
    "AWS temporary access key": "ASIA" + drawn(16, UPPER32),
    "AWS secret key": "aws_secret_access_key = " + drawn(40, BASE62 + "+/"),
    "GitHub personal token": "ghp_" + drawn(36),
    "GitHub OAuth token": "gho_" + drawn(36),
    "GitHub user token": "ghu_" + drawn(36),
    "GitHub app token": "ghs_" + drawn(36),
    "GitHub refresh token": "ghr_" + drawn(76),
    "GitHub fine-grained token": "github_pat_" + drawn(22) + "_" + drawn(59),
    "GitLab token": "glpat-" + drawn(20, URL64),
    "GitLab runner token": "glrt-" + drawn(20, URL64),
    "GitLab deploy token": "gldt-" + drawn(20, URL64),
    "Slack bot token": f"xoxb-{drawn(12, string.digits)}-{drawn(12, string.digits)}-{drawn(24)}",
    "Slack user token": f"xoxp-{drawn(12, string.digits)}-{drawn(12, string.digits)}-{drawn(32, HEX)}",
    "Slack app token": f"xapp-1-A{drawn(10, UPPER32)}-{drawn(13, string.digits)}-{drawn(64, HEX)}",
    "Slack webhook": f"https://hooks.slack.com/services/T{drawn(8, UPPER32)}/B{drawn(8, UPPER32)}/{drawn(24)}",
    "Discord webhook": f"https://discord.com/api/webhooks/{drawn(18, string.digits)}/{drawn(68, URL64)}",
    "Anthropic key": "sk-ant-api03-" + drawn(93, URL64) + "AA",
    "OpenAI key": "sk-" + drawn(48),
    "OpenAI project key": "sk-proj-" + drawn(120, URL64),
    "OpenAI service key": "sk-svcacct-" + drawn(60, URL64),
    "OpenRouter key": "sk-or-v1-" + drawn(64, HEX),
    "Google API key": "AIza" + drawn(35, URL64),
    "Google client secret": "GOCSPX-" + drawn(28, URL64),
    "Google access token": "ya29." + drawn(100, URL64),
    "Google refresh token": "1//0" + drawn(60, URL64),
    "Stripe live key": "sk_live_" + drawn(24),
    "Stripe restricted key": "rk_live_" + drawn(24),
    "Stripe webhook secret": "whsec_" + drawn(32),
    "npm token": "npm_" + drawn(36),
    "PyPI token": "pypi-AgEIcHlwaS5vcmc" + drawn(70, URL64),
    "RubyGems key": "rubygems_" + drawn(48, HEX),
    "Hugging Face token": "hf_" + drawn(34, string.ascii_letters),
    "DigitalOcean token": "dop_v1_" + drawn(64, HEX),
    "Shopify token": "shpat_" + drawn(32, HEX),
    "Square token": "sq0atp-" + drawn(22, URL64),
    "Databricks token": "dapi" + drawn(32, HEX),
    "Vault token": "hvs." + drawn(90, URL64),
    "Pulumi token": "pul-" + drawn(40, HEX),
    "Supabase token": "sbp_" + drawn(40, HEX),
    "Twilio key": "SK" + drawn(32, HEX),
    "Mailgun key": "key-" + drawn(32, HEX),
    "New Relic key": "NRAK-" + drawn(27, UPPER32),
    "age key": "AGE-SECRET-KEY-1" + drawn(58, UPPER32),
    "PASERK secret key": "k3.secret." + drawn(64, URL64),
    "jidomem access token": "jido_" + "7" + drawn(42),
    "RSA key": key("RSA "),
    "EC key": key("EC "),
    "OpenSSH key": key("OPENSSH "),
    "PKCS 8 key": key(""),
    "encrypted key": key("RSA ").replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", 1),
    "key with escaped lines": key("").replace("\n", "\\n"),
    "JSON web token": f"eyJ{drawn(33, URL64)}.eyJ{drawn(60, URL64)}.{drawn(43, URL64)}",
    "Azure signature": f"https://x.blob.core.windows.net/c?sv=2022&sig={drawn(43)}%3D",
    "Azure account key": "AccountKey=" + drawn(86, BASE62 + "+/") + "==",
    "bearer token": "Authorization: Bearer " + drawn(40, HEX),
    "basic credentials": "Authorization: Basic " + drawn(27) + "=",
    "password in a URL": f"postgres://app:{drawn(12)}@db.internal:5432/app",
    "token in a URL": f"https://{drawn(40, HEX)}@github.com/a/b.git",
    "password in an environment": f"DB_PASSWORD={drawn(14)}7",
    "password in YAML": f"  password: {drawn(14)}7",
    "password in JSON": json.dumps({"password": drawn(16)}),
    "client secret in YAML": f"clientSecret: {drawn(40)}1",
    "password at a command": f"login --password {drawn(12)}3",
    "password of curl": f"curl -u admin:{drawn(12)} https://db.internal",
    "password in a sentence": f"the database password is {drawn(10)}a9",
    "password in XML": f"<password>{drawn(12)}</password>",
    "npm _auth": f"//registry.npmjs.org/:_auth={drawn(30)}4a=",
    "random base64 key": drawn(43, BASE62 + "+") + "=",
    "random token": drawn(40),
}  # fmt: skip


def test_there_are_enough_of_both_to_tell_how_good_the_screen_is():
    assert min(len(SECRETS), len({line["text"] for line in DOCUMENTS})) >= 60


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "we keep {} for now", "## Setup\n\n    {}\n\nThen start it.", "- `{}`: see above"]
)
def test_a_secret_of_a_known_form_is_found_in_prose_and_in_code(name, around):
    assert find(around.format(SECRETS[name])) is not None


@pytest.mark.parametrize("line", DOCUMENTS, ids=lambda line: line["text"][:40])
def test_a_line_of_a_real_document_that_shows_no_secret_is_let_in(line):
    assert (find(line["text"]) is not None) == any(each in line["text"] for each in REPORTED)


def test_all_documents_together_show_no_more_than_each_alone():
    sound = [line["text"] for line in DOCUMENTS if not any(each in line["text"] for each in REPORTED)]
    assert find("\n\n".join(sound)) is None
