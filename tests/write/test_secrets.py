"""A likely secret is refused with its kind and field, and never repeated; a harmless text is accepted."""

import json
import random
import string

import pytest
from conftest import decision, fixed_sources, intent
from hypothesis import given
from hypothesis import strategies as st

import jidomem
from jidomem.errors import Failed, IntentRefused
from jidomem.rdf.terms import literal
from jidomem.rdf.vocab import CLASS_OF_TYPE
from jidomem.records.intent import INTENT_FIELDS, LIST_FIELDS
from jidomem.records.policy import PolicyChange
from jidomem.write.secrets import find, screen_rows

RANDOM = random.Random(7)
BASE62 = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
NOT_58 = dict.fromkeys(map(ord, "0OIl"))


def token(length, alphabet=BASE62):
    """Return *length* random characters of *alphabet*, at least one of each of its classes."""
    while True:
        text = "".join(RANDOM.choices(alphabet, k=length))
        classes = [str.isdigit, str.isupper, str.islower]
        if all(any(map(is_class, text)) for is_class in classes if any(map(is_class, alphabet))):
            return text


SECRETS = {
    "an AWS access key": ["AKIA" + token(16, "ABCDEFGHJKLMNPQ234567"), "ASIA" + token(16, "RSTUVWXYZ234567")],
    "a GitHub token": ["ghp_" + token(36), "ghs_" + token(40), "github_pat_" + token(60)],
    "a GitLab token": ["glpat-" + token(20), "glrt-" + token(20)],
    "a Slack token": ["xoxb-123456789012-" + token(24), "xoxp-" + token(30), "xapp-1-A0-" + token(60)],
    "a Slack webhook": ["https://hooks.slack.com/services/T0AB12/B0CD34/" + token(24)],
    "an Anthropic key": ["sk-ant-api03-" + token(80)],
    "an OpenAI key": ["sk-" + token(48), "sk-proj-" + token(80), "sk-" + token(32, HEX)],
    "a Google API key": ["AIza" + token(35)],
    "a Google client secret": ["GOCSPX-" + token(28)],
    "a Stripe key": ["sk_live_" + token(24), "rk_test_" + token(24)],
    "an npm token": ["npm_" + token(36)],
    "a PyPI token": ["pypi-AgEIcHlwaS5vcmc" + token(60)],
    "a Hugging Face token": ["hf_" + token(34)],
    "a jidomem token": ["jido_" + token(43), "use jido_" + token(43, BASE62 + "-_") + "."],
    "a private key": [f"-----BEGIN {kind}-----\n{token(64)}\n{token(64)}"
                      for kind in ("RSA PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK")],
    "a JSON web token": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + token(43)],
    "a password in a URL": ["postgres://app:s3cr3tpw@db.example.com/app", "https://:hunter22@example.org",
                            "mongodb+srv://admin:Passw0rd1@cluster0.mongodb.net", "postgres://app:p@ssw0rd@localhost/db"],
    "a password": ["password=hunter2", 'PASSWORD = "correct horse"', "db_password: Tr0ub4dor&3",
                   "api_key=qfbxcw130746",
                   '{"client_secret": "9f8e7d6c5b"}', "AUTH_TOKEN='zzyyxxww'",
                   "DB_PASS=s3cr3t", "password=my-s3cret-pw9", "password: mydogRex2020",
                   "the database password is hunter2", "My password for 1177 is Sommar2026!",
                   "the password of the guest wifi is hunter2", "password for the vault: Tr0ub4dor&3",
                   "<password>hunter2x</password>", '"password" => "hunter2x"', "login --password s3cr3tpw9",
                   "curl -s -u admin:s3cr3tpw https://db.example.com", "AccountKey=" + token(40) + "/" + token(46),
                   "Passwort: Blau77!Hund", "Das Kennwort ist Sommar2026!", "pw = hunter2x",
                   "pw for grafana hunter2xyz!",
                   "login root:toor123 on the NAS", "the staging login is ana / Winter2026!x"],
    "an OpenRouter key": ["sk-or-v1-" + token(64, HEX)],
    "a Google token": ["ya29." + token(60), "1//0g" + token(60)],
    "a DigitalOcean token": ["dop_v1_" + token(64, HEX)],
    "a Shopify token": ["shpat_" + token(32, HEX)],
    "a Databricks token": ["dapi" + token(32, HEX)],
    "a Vault token": ["hvs." + token(24)],
    "a RubyGems token": ["rubygems_" + token(48, HEX)],
    "a Twilio key": ["SK" + token(32, HEX)],
    "a Discord webhook": ["https://discord.com/api/webhooks/957828921887461247/" + token(68)],
    "an Azure signature": ["https://x.blob.core.windows.net/c?sv=2022&sig=" + token(43) + "%3D"],
    "an age key": ["AGE-SECRET-KEY-1" + token(58, string.ascii_uppercase + string.digits)],
    "a token in a URL": ["https://" + token(40, HEX) + "@github.com/a/b.git"],
    "a credential": ["Authorization: Bearer " + token(40, HEX), f"Bearer {token(64, HEX)} opens it",
                     '"authorization": "Basic YWRtaW46aHVudGVyMg=="'],
    "a token": ["GITLAB_TOKEN=qfbxcw1307461951", "_auth=dXNlcjpwYXNzd29yZDE=", "token: 'qfbxcw1307461951'"],
    "an API key": ["the DHL api key: " + token(32, HEX), "the API key is " + token(20) + ".",
                   "the API key for the shop is " + token(20),
                   "Secret key = " + token(24, HEX)],
    "a random token": [token(40), token(32) + "==", "the code " + token(64) + " opens it"],
}  # fmt: skip
CASES = [(kind, text) for kind, texts in SECRETS.items() for text in texts]
WORDS = [
    "we",
    "use",
    "The",
    "index",
    "to",
    "answer",
    "SPARQL",
    "queries",
    "about",
    "what",
    "remembers",
    "of",
    "2",
    "it",
]
HARMLESS = [
    "commit 538ee42c1f0b9d7a6e5d4c3b2a19080706050403 fixes it",
    "0197a1b2-0000-7000-8000-00000000abcd",
    "blake2b 9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "https://docs.google.com/document/d/1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUvWxYz0123456789/edit",
    "jidomem/govern/HttpServerRequestHandlerFactory2ImplementationOfEverything.py",
    "HttpServerRequestHandlerFactory2ImplementationOfEverythingThere",
    "test_a_secret_is_in_no_file_afterwards_and_the_chain_verifies_for_everyone",
    "AKIAIOSFODNN7EXAMPLE is what the manual of AWS shows",
    "the password is read from the vault, and the secret: it never leaves it",
    "password=<password>", "password = os.environ['DB_PASSWORD']", "token: ${TOKEN}", "api_key=API_KEY",
    "password = unquote(given)", "secret = keypair[:32]", "passphrase = passphrase", "scheme://user:passwd@proxy.server",
    "secret = settings.secret_key", "DB_PASSWORD=/run/secrets/db", "password: required",
    "set password=changeme and change it", "token=***",
    "key: value", "primary key = id", "keyboard: layout2", "sk-learn is what scikit-learn was called before",
    "https://example.org/a:b@c", "mailto:ana@example.org", "git@github.com:a/b.git", "ssh://git@github.com/a/b",
    "a = b; x: y", "2026-11-21T08:00:00.000000Z", "------------------------------------------------",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA",
    "github.com/x/y v1.2.3/go.mod h1:" + token(43) + "=", "SHA256:" + token(43),
    "Qm" + token(44, BASE62.translate(NOT_58)),
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + token(43) + " me@host", "0x" + token(40, HEX + "ABCDEF"),
    "-----BEGIN CERTIFICATE-----\nMIID" + token(60) + "\n" + token(64),
    "pk_live_" + token(24),
    "-----BEGIN PUBLIC KEY-----\\nMIIB" + token(60), "sk-learn-contrib-package-Name2here",
    "postgres://postgres:postgres@localhost:5432/app_test", "amqp://guest:guest@localhost:5672",
    "password=bcrypt hashed",
    "ghp_" + "x" * 36, "AKIA" + "X" * 16, "glpat-" + "x" * 20, "glpat-YOUR_TOKEN_GOES_HERE", "xoxb-your-token-here",
    "the password for the login is base64-encoded", "the password of the database is read from vault2",
    "Bearer tokens of 32 characters", "Authorization: Bearer tokens-of-the-deployment", "the login is OIDC / OAuth2",
    "login page:/auth/v2 of step2", "password for users has at least 12 characters", "the Passwort: see vault2",
    "password for each user: at least 12 characters", "the password is base64-encoded",
    "the password is 12-character random", "password = my_password",
    "Authorization: Bearer <token>", "Authorization: Bearer authentication", "page token: the next one of 100",
    "docker run --user 1000:1000 x", "curl -u $USER:$PASSWORD https://example.org", "<password>${PW}</password>",
    "aB3-xY7_kQ9-mN2-pR5_tW8-zL4_hG6-vC1", "MAX_RETRIES=5 TIMEOUT=30 in the environment",
    "password=\ndatabase.url=jdbc:x", "api_key='sk-...'", "-----BEGIN PRIVATE KEY-----\n...", "API_KEY=abc123",
    "POSTGRES_PASSWORD=postgres", "wss://x.org?apiKey=KEY&region=us", "clusterId=83fabd45-685d-7f8d-9495-18fab6f50d5e",
    "_RNvXINtC7mycrate3FoomEINtC7mycrate3BaryE3foo", "assertion=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9...",
    "the API key: see the vault of team-2", "the private key: ed25519-signatures",
    "the api key is renewed every 90 days",
    "its access key is commit 538ee42c1f0b9d7a6e5d4c3b2a19080706050403", "API key: AuthenticationProvider",
    "die Datenschutzgrundverordnungsdurchführung",
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), CASES, ids=[f"{kind} {number}" for number, (kind, _) in enumerate(CASES)])
def test_a_secret_of_a_known_format_is_found_in_any_position(kind, text):
    for template in ("{}", "we keep {} for now", "first line\n{}\nlast line", "({})"):
        finding = find(template.format(text))
        assert finding is not None
        assert finding.kind == kind
        assert finding.at <= template.format(text).index(text) + len(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_an_identifier_or_placeholder_is_no_secret(text):
    assert find(text) is None


@pytest.mark.parametrize("text", ["a-", "a_", "password", "token=", "password is ", "password for ", "curl -u ", "h1:",
                                  "a://b:", "--a-",
                                  "authorization: bearer ", "-----BEGIN CERTIFICATE-----", "<password>"])  # fmt: skip
def test_a_long_text_of_partial_matches_is_screened_without_a_finding(text):
    assert find(f"{text * 10_000} password: x </ {text}") is None


@given(st.text(st.sampled_from("0123456789abcdef-"), min_size=1, max_size=80))
def test_a_hexadecimal_digest_or_id_is_no_secret(text):
    assert find(f"see {text} there") is None


@given(st.lists(st.sampled_from(WORDS)))
def test_a_sequence_of_words_is_no_secret(words):
    for separator in (" ", "_", "-", "/", "\n"):
        assert find(separator.join(words)) is None


def test_random_tokens_are_found_at_a_rate_of_97_percent():
    generator = random.Random(11)
    findings = [find("".join(generator.choices(BASE62, k=length))) for length in (32, 40, 48, 64) for _ in range(500)]
    assert sum(finding is not None for finding in findings) >= 1_940


PLACES = {
    "summary": {"summary": "it is {}"},
    "detailed_explanation": {"detailed_explanation": "long\n{}"},
    "evidence": {"evidence": ["a log", "{}"]},
    "about": {"about": ["{}"]},
    "topic": {"topic": "{}"},
    "extra_triples": {"extra_triples": [["http://www.w3.org/2000/01/rdf-schema#comment", {"@value": "{}"}]]},
    "iri": {"iri": "urn:x:{}"},
    "asserted_in": {"asserted_in": "{}"},
    "assigned_to": {"assigned_to": "{}"},
    "idempotency_key": {"idempotency_key": "{}"},
    "tracked_by": {"tracked_by": "https://example.org/?key={}"},
}


@pytest.mark.parametrize("field", PLACES)
def test_an_intent_with_a_secret_is_refused_by_field_and_kind_without_repeating_it(writer, field):
    secret = "ghp_" + token(36)
    proposal = json.loads(json.dumps(intent(**PLACES[field])).replace("{}", secret))
    with pytest.raises(IntentRefused, match=f"{field} seems to contain a GitHub token") as refused:
        writer.submit_intent("p", proposal)
    assert (refused.value.code, [violation.field for violation in refused.value.violations]) == (
        "policy_denied",
        [field],
    )
    assert secret not in json.dumps(refused.value.to_dict())
    assert "say where it is stored" in refused.value.hint


#: Fields whose value rules refuse a secret: names from a list, moments, the project.
CLOSED = {
    "type", "applies_to_project", "confidence", "status", "severity", "convention_scope", "enforcement_level",
    "source_type", "timestamp", "expires_on", "valid_from", "valid_until", "supersedes", "invalidates",
    "coexists_with", "revives",
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(CLASS_OF_TYPE))
def test_each_field_of_each_type_is_screened_or_closed(writer, kind):
    secret = "ghp_" + token(36)
    for field in INTENT_FIELDS:
        fields = PLACES.get(field, {field: ["{}"] if field in LIST_FIELDS else "{}"})
        values = json.loads(json.dumps({**intent(type=kind), **fields}).replace("{}", secret))
        with pytest.raises(IntentRefused) as refused:
            writer.submit_intent("p", values)
        screened_fields = [each.field for each in refused.value.violations if "GitHub token" in each.message]
        assert (field in screened_fields) == (field not in CLOSED)


def test_alternatives_declarations_and_appended_triples_are_screened(writer):
    with pytest.raises(IntentRefused, match="alternatives seems to contain"):
        writer.submit_intent("p", decision(alternatives=["keep password=hunter2"]))
    row = ("<urn:x>", "<http://www.w3.org/2000/01/rdf-schema#comment>", literal("password=hunter2"))
    assert [name for name, _ in screen_rows([row])] == ["comment"]
    for record in (lambda: writer.declare("p", [row]), lambda: writer.append("p", "system", [row])):
        with pytest.raises(IntentRefused, match="comment seems to contain a password"):
            record()


@pytest.mark.parametrize(("setting", "warning_count"), [("warn", 1), ("off", 0)])
def test_a_project_may_set_the_screen_to_warn_or_off(tmp_path, setting, warning_count):
    (tmp_path / "config.toml").write_text(f'secrets = "{setting}"\n')
    with jidomem.open(tmp_path, sources=fixed_sources()) as memory:
        receipt = memory.writer.submit_intent("p", intent(summary="password=hunter2"))
    assert len(receipt.warnings) == warning_count
    assert "hunter2" not in str(receipt.warnings)


def test_an_unknown_secrets_setting_is_refused_with_the_valid_ones(tmp_path):
    (tmp_path / "config.toml").write_text('secrets = "warm"\n')
    with pytest.raises(Failed, match="warm") as refused:
        jidomem.open(tmp_path)
    assert "warn" in refused.value.hint


@pytest.mark.parametrize(
    "text", ["https://example.org/ontology#key " + 256 * 1024 * "x", 80_000 * "eyJ"], ids=["x", "eyJ"]
)
def test_a_long_word_without_a_secret_is_screened_without_a_finding(text):
    assert find(text) is None  # a search from each of its characters would take minutes


FURTHER = {
    "a GitHub token": (("gho_", "ghu_", "ghr_"), token(36)),
    "a GitLab token": (("gldt-", "glptt-", "glcbt-", "glagent-", "gloas-"), token(20)),
    "an OpenAI key": (("sk-svcacct-", "sk-admin-"), token(40)),
    "a Stripe key": (("sk_test_", "rk_live_", "whsec_"), token(24)),
    "a DigitalOcean token": (("doo_v1_", "dor_v1_"), token(64, HEX)),
    "a Shopify token": (("shpca_", "shppa_", "shpss_"), token(32, HEX)),
    "a Square token": (("sq0atp-", "sq0csp-"), token(22)),
    "a Vault token": (("hvb.", "hvr."), token(24)),
    "a Pulumi token": (("pul-",), token(40, HEX)),
    "a Supabase token": (("sbp_",), token(40, HEX)),
    "a Mailgun key": (("key-",), token(32, HEX)),
    "a New Relic key": (("NRAK-",), token(27, string.ascii_uppercase + string.digits)),
}


@pytest.mark.parametrize("kind", FURTHER)
def test_every_prefix_of_a_provider_is_detected(kind):
    prefixes, suffix = FURTHER[kind]
    for prefix in prefixes:
        finding = find(f"we keep {prefix}{suffix} for now")
        assert (finding.kind, finding.at) == (kind, 8)
        assert find(f"we keep {prefix} for now") is None


@pytest.mark.parametrize("hidden", ["\u200b", "\u200d", "\u00ad", "\u2060", "\ufe0f", "\U000e0041", "\U000e0101"])
def test_a_secret_with_invisible_characters_is_found(writer, hidden):
    text = f"we keep ghp_{hidden}{token(20)}{hidden}{token(16)} here"

    assert find(text).kind == "a GitHub token"
    with pytest.raises(IntentRefused, match="summary seems to contain a GitHub token"):
        writer.submit_intent("p", intent(summary=text))
    with pytest.raises(IntentRefused, match="evidence seems to contain a GitHub token"):
        writer.submit_intent("p", intent(evidence=[text]))


SECRET = "ghp_" + token(36)


@pytest.mark.parametrize("write", [
    lambda writer: writer.start_session("p", SECRET),
    lambda writer: writer.start_session("p", "s-2", agent=SECRET),
    lambda writer: writer.change_policy("p", [PolicyChange(agent="bob", grants="Administrator")], reason=SECRET),
    lambda writer: writer.change_policy("p", [PolicyChange(agent=SECRET, grants="Administrator")]),
], ids=["session", "agent of a session", "reason of a policy", "agent of a policy"])  # fmt: skip
def test_names_of_sessions_and_reasons_of_policies_are_screened(writer, write):
    with pytest.raises(IntentRefused, match="seems to contain a GitHub token") as refusal:
        write(writer)

    assert SECRET not in str(refusal.value)
