"""A login by HTTP Digest: the examples of RFC 7616, and a Virtuoso that requires one."""

import pytest
from conftest import intent
from sparql_endpoint import endpoint

import jidomem
from jidomem.errors import Failed
from jidomem.index.triple_store import TripleStore
from jidomem.rdf.sparql_client import Digest

CHALLENGE = (
    'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm={kind},'
    ' nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
)
ONCE = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"


@pytest.mark.parametrize(
    ("kind", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_the_examples_of_rfc_7616_have_their_responses(kind, response):
    digest = Digest.of(["Basic realm=x", CHALLENGE.format(kind=kind)], "Mufasa", "Circle of Life")

    header = digest.header("GET", "/dir/index.html", ONCE)

    assert f'response="{response}"' in header
    assert "nc=00000001" in header
    assert "nc=00000002" in digest.header("GET", "/dir/index.html", ONCE)


@pytest.mark.parametrize("challenge", ["Basic realm=x", CHALLENGE.format(kind="SHA-512-256"), "Digest realm=x"])
def test_an_unsupported_challenge_has_no_digest(challenge):
    assert Digest.of([challenge], "ana", "x") is None


@pytest.mark.parametrize(
    ("challenge", "schemes"),
    [
        ('Digest realm="triples", qop="auth", nonce="7ypf", algorithm=MD5', [None, "Digest"]),
        ('Basic realm="triples"', [None, "Basic"]),
        (None, [None, "Basic"]),
    ],
    ids=["digest", "basic", "none"],
)
def test_the_first_request_has_no_login_and_the_next_has_the_requested_scheme(challenge, schemes):
    with endpoint() as server:
        server.challenge = challenge
        store = TripleStore("sparql", endpoint=server.url.replace("//", "//ada:s%40crot@"))
        store.insert([("urn:a", "jido:topic", "x")])
        for _ in range(2):
            assert [row["o"] for row in store.query("SELECT ?o { ?s ?p ?o }", graphs=["default"])] == ["x"]

    schemes_by_path = {path: [] for path, _, _ in server.sent}
    for path, headers, _ in server.sent:
        schemes_by_path[path].append(headers.get("Authorization", "").partition(" ")[0] or None)
    assert schemes_by_path == {"/update": schemes, "/query": [schemes[-1]] * 2}


def test_an_unavailable_store_receives_no_login():
    with endpoint() as server:
        server.answer = 503, b"starting"
        store = TripleStore("sparql", endpoint=server.url.replace("//", "//ada:s%40crot@"))
        with pytest.raises(Failed, match="503: starting"):
            store.insert([("urn:a", "jido:topic", "x")])

    assert ["Authorization" in headers for _, headers, _ in server.sent] == [False]


def test_virtuoso_is_written_and_queried_with_a_digest_login_only(root, virtuoso_server):
    host = virtuoso_server.partition("//")[2].partition("/")[0]
    with jidomem.open(root, index=f"sparql+http://dba:dba@{host}/sparql-auth") as memory:
        memory.writer.submit_intent("digest", intent(summary="let in", applies_to_project="digest"))
        memory.writer.submit_intent("digest", intent(summary="again", applies_to_project="digest"))
        assert sorted(row["summary"] for row in memory.reader.ask("facts", project="digest")) == ["again", "let in"]
        assert memory.remote.answers("facts")
    invalid = f"sparql+http://dba:wrong@{host}/sparql-auth"
    with jidomem.open(root, index=invalid) as memory, pytest.raises(Failed) as refused:
        memory.reader.ask("facts", project="digest")
    assert (refused.value.code, "wrong" in f"{refused.value.detail} {refused.value.hint}") == (
        "store_unreachable",
        False,
    )
