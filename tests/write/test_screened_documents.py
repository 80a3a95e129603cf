"""The screen of secrets applied to lines of real documents and to secrets of every known format."""

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
#: False findings in the documents: a demonstration password that looks like a secret.
REPORTED = ("NEO4J_PASSWORD=graphiti",)
RANDOM = random.Random(21)
BASE62 = string.ascii_letters + string.digits
HEX, UPPER32 = "0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
URL64 = BASE62 + "-_"


def token(length, alphabet=BASE62):
    """Return *length* random characters: a secret of a valid format that is in no file."""
    return "".join(RANDOM.choices(alphabet, k=length))


def key(kind):
    """Return a private key in PEM, of random characters."""
    lines = "\n".join(token(64, BASE62 + "+/") for _ in range(6))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


SECRETS = {
    "AWS access key": "AKIA" + token(16, UPPER32),
    "AWS temporary access key": "ASIA" + token(16, UPPER32),
    "AWS secret key": "aws_secret_access_key = " + token(40, BASE62 + "+/"),
    "GitHub personal token": "ghp_" + token(36),
    "GitHub OAuth token": "gho_" + token(36),
    "GitHub user token": "ghu_" + token(36),
    "GitHub app token": "ghs_" + token(36),
    "GitHub refresh token": "ghr_" + token(76),
    "GitHub fine-grained token": "github_pat_" + token(22) + "_" + token(59),
    "GitLab token": "glpat-" + token(20, URL64),
    "GitLab runner token": "glrt-" + token(20, URL64),
    "GitLab deploy token": "gldt-" + token(20, URL64),
    "Slack bot token": f"xoxb-{token(12, string.digits)}-{token(12, string.digits)}-{token(24)}",
    "Slack user token": f"xoxp-{token(12, string.digits)}-{token(12, string.digits)}-{token(32, HEX)}",
    "Slack app token": f"xapp-1-A{token(10, UPPER32)}-{token(13, string.digits)}-{token(64, HEX)}",
    "Slack webhook": f"https://hooks.slack.com/services/T{token(8, UPPER32)}/B{token(8, UPPER32)}/{token(24)}",
    "Discord webhook": f"https://discord.com/api/webhooks/{token(18, string.digits)}/{token(68, URL64)}",
    "Anthropic key": "sk-ant-api03-" + token(93, URL64) + "AA",
    "OpenAI key": "sk-" + token(48),
    "OpenAI project key": "sk-proj-" + token(120, URL64),
    "OpenAI service key": "sk-svcacct-" + token(60, URL64),
    "OpenRouter key": "sk-or-v1-" + token(64, HEX),
    "Google API key": "AIza" + token(35, URL64),
    "Google client secret": "GOCSPX-" + token(28, URL64),
    "Google access token": "ya29." + token(100, URL64),
    "Google refresh token": "1//0" + token(60, URL64),
    "Stripe live key": "sk_live_" + token(24),
    "Stripe restricted key": "rk_live_" + token(24),
    "Stripe webhook secret": "whsec_" + token(32),
    "npm token": "npm_" + token(36),
    "PyPI token": "pypi-AgEIcHlwaS5vcmc" + token(70, URL64),
    "RubyGems key": "rubygems_" + token(48, HEX),
    "Hugging Face token": "hf_" + token(34, string.ascii_letters),
    "DigitalOcean token": "dop_v1_" + token(64, HEX),
    "Shopify token": "shpat_" + token(32, HEX),
    "Square token": "sq0atp-" + token(22, URL64),
    "Databricks token": "dapi" + token(32, HEX),
    "Vault token": "hvs." + token(90, URL64),
    "Pulumi token": "pul-" + token(40, HEX),
    "Supabase token": "sbp_" + token(40, HEX),
    "Twilio key": "SK" + token(32, HEX),
    "Mailgun key": "key-" + token(32, HEX),
    "New Relic key": "NRAK-" + token(27, UPPER32),
    "age key": "AGE-SECRET-KEY-1" + token(58, UPPER32),
    "PASERK secret key": "k3.secret." + token(64, URL64),
    "jidomem access token": "jido_" + "7" + token(42),
    "RSA key": key("RSA "),
    "EC key": key("EC "),
    "OpenSSH key": key("OPENSSH "),
    "PKCS 8 key": key(""),
    "encrypted key": key("RSA ").replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", 1),
    "key with escaped lines": key("").replace("\n", "\\n"),
    "JSON web token": f"eyJ{token(33, URL64)}.eyJ{token(60, URL64)}.{token(43, URL64)}",
    "Azure signature": f"https://x.blob.core.windows.net/c?sv=2022&sig={token(43)}%3D",
    "Azure account key": "AccountKey=" + token(86, BASE62 + "+/") + "==",
    "bearer token": "Authorization: Bearer " + token(40, HEX),
    "basic credentials": "Authorization: Basic " + token(27) + "=",
    "password in a URL": f"postgres://app:{token(12)}@db.internal:5432/app",
    "token in a URL": f"https://{token(40, HEX)}@github.com/a/b.git",
    "password in an environment": f"DB_PASSWORD={token(14)}7",
    "password in YAML": f"  password: {token(14)}7",
    "password in JSON": json.dumps({"password": token(16)}),
    "client secret in YAML": f"clientSecret: {token(40)}1",
    "password at a command": f"login --password {token(12)}3",
    "password of curl": f"curl -u admin:{token(12)} https://db.internal",
    "password in a sentence": f"the database password is {token(10)}a9",
    "password in XML": f"<password>{token(12)}</password>",
    "npm _auth": f"//registry.npmjs.org/:_auth={token(30)}4a=",
    "random base64 key": token(43, BASE62 + "+") + "=",
    "random token": token(40),
}  # fmt: skip


def test_the_cases_have_sixty_secrets_and_sixty_documents():
    assert min(len(SECRETS), len({line["text"] for line in DOCUMENTS})) >= 60


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize(
    "template", ["{}", "we keep {} for now", "## Setup\n\n    {}\n\nThen start it.", "- `{}`: see above"]
)
def test_a_secret_of_a_known_format_is_found_in_prose_and_code(name, template):
    assert find(template.format(SECRETS[name])) is not None


@pytest.mark.parametrize("line", DOCUMENTS, ids=lambda line: line["text"][:40])
def test_a_document_line_without_a_secret_is_accepted(line):
    assert (find(line["text"]) is not None) == any(each in line["text"] for each in REPORTED)


def test_the_joined_documents_contain_no_secret():
    clean = [line["text"] for line in DOCUMENTS if not any(each in line["text"] for each in REPORTED)]
    assert find("\n\n".join(clean)) is None
