"""A shared root, used by several machines, each of which has a copy of its own."""

import json
import os
import shlex
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from click.testing import CliRunner
from conftest import decision, files, intent
from postgres_server import PASSWORD

import jidomem
from jidomem.base.clock import Sources
from jidomem.errors import Conflict, Failed, JournalDamaged, NotFound
from jidomem.extras.servers import addresses, postgres_connection
from jidomem.extras.servers.object_log import Bucket
from jidomem.journal.journal import Stream
from jidomem.runtime import similar, tokens
from jidomem_cli.main import cli
from jidomem_cli.options import App


@pytest.fixture
def address(request):
    """The address of the root: in PostgreSQL, unless a test is run with both stores."""
    kind = getattr(request, "param", "postgres")
    return request.getfixturevalue("bucket") if kind == "bucket" else request.getfixturevalue("postgres").address()


both = pytest.mark.parametrize("address", ["postgres", "bucket"], indirect=True)


@pytest.fixture
def open_machine(address, tmp_path, monkeypatch):
    """Return a function that opens the root as the machine of a name."""
    memories = []

    def open_machine(machine="here", **options):
        monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / machine))
        memories.append(jidomem.open(address, project="p", **options))
        return memories[-1]

    yield open_machine
    for memory in memories:
        memory.close()


def jidomem_here(address, home, *words):
    """Run the command line on the machine with *home*."""
    environment = {"JIDOMEM_ROOT": address, "JIDOMEM_HOME": str(home), "JIDOMEM_PROJECT": "p"}
    return CliRunner().invoke(cli, list(words), env=environment)


@both
def test_a_memory_of_one_machine_is_read_and_superseded_on_another(open_machine):
    here, there = open_machine("here"), open_machine("there")
    receipt = here.writer.submit_intent("p", decision(topic="index"))

    assert [row["decision"] for row in there.reader.ask("decisions", project="p")] == [receipt.iri]
    with pytest.raises(Conflict):
        there.writer.submit_intent("p", decision(topic="index", summary="Use another"))
    second = there.writer.submit_intent("p", decision(topic="index", summary="Use another", supersedes=[receipt.iri]))
    assert [row["decision"] for row in here.reader.ask("decisions", project="p")] == [second.iri]
    assert here.journal.verify(Stream("p")) == there.journal.verify(Stream("p")) == ()
    assert here.settings.place == there.settings.place
    assert here.settings.root != there.settings.root


@both
def test_a_redaction_reaches_every_copy(open_machine):
    here, there = open_machine("here"), open_machine("there")
    secret = here.writer.submit_intent("p", intent(summary="the door code is 4711-hunter2"))
    there.catch_up("p")

    plan = here.maintenance.plan("p", item=secret.iri)
    here.maintenance.redact(plan, agent="architect", reason="it is a secret")

    assert there.reader.select("p", "SELECT ?s { ?i <https://jido.ai/ontology#summary> ?s }") == []
    for memory in (here, there):
        memory.catch_up("p")
        texts = [path.read_bytes() for path in (memory.settings.root / "projects").rglob("*.ttl")]
        assert texts
        assert not any(b"hunter2" in text for text in texts)
        assert memory.journal.verify(Stream("p")) == ()


def delete_root(address, request):
    """Delete all data at *address*."""
    if address.startswith("s3:"):
        bucket = Bucket(address, os.environ, 10.0)
        bucket.delete(bucket.below(""))
    else:
        request.getfixturevalue("postgres").sql(f"DROP SCHEMA {address.rpartition('=')[2]} CASCADE")


@both
def test_a_recreated_root_of_equal_length_is_noticed_by_a_live_process(open_machine, address, request):
    here = open_machine("here")
    here.writer.remember("p", "spoons are counted")
    here.catch_up("p")

    delete_root(address, request)
    there = open_machine("there")
    there.writer.remember("p", "forks are counted")

    assert here.journal.head(Stream("p")).position == there.journal.head(Stream("p")).position
    summaries = [row["s"] for row in here.reader.select("p", "SELECT ?s { ?i <https://jido.ai/ontology#summary> ?s }")]
    assert summaries == ["forks are counted"]
    here.writer.remember("p", "knives, too")
    assert there.journal.verify(Stream("p")) == here.journal.verify(Stream("p")) == ()


@pytest.mark.parametrize("address", ["bucket"], indirect=True)
def test_an_emptied_bucket_is_reported_by_a_live_process_and_not_written(open_machine, address, request):
    # C023
    here = open_machine("here")
    here.writer.remember("p", "spoons are counted")
    delete_root(address, request)

    for call in (
        partial(here.writer.remember, "p", "forks"),
        partial(here.reader.select, "p", "SELECT ?s { ?s ?p ?o }"),
    ):
        with pytest.raises(JournalDamaged, match="is missing"):
            call()

    assert Bucket(address, os.environ, 10.0).below("") == []


@both
def test_terms_accepted_at_once_on_two_machines_are_both_stored(open_machine):
    here, there = open_machine("here"), open_machine("there")
    here.writer.remember("p", "spoons are counted")
    for name in ("serves", "weighs"):
        fields = {"kind": "property", "domain": ["Fact"], "range_": ["xsd:integer"]}
        here.term_proposals("p").propose(name, **fields, definition=f"What it {name}.", reason="asked")
    here.term_proposals("p").accept("serves", reason="yes")
    there.term_proposals("p").accept("weighs", reason="yes")

    text = (open_machine("elsewhere").settings.root / "ontology" / "accepted.ttl").read_text()
    assert ("#serves>" in text, "#weighs>" in text) == (True, True)


@both
def test_a_token_of_one_machine_is_valid_and_revoked_on_all(open_machine, monkeypatch):
    monkeypatch.setattr(tokens, "TOKENS_FOR", 0.0)
    here, there = open_machine("here").place.keyring(), open_machine("there").place.keyring()
    assert (here.requires_token(), there.requires_token()) == (False, False)

    secret, token = here.issue("ana", "agent", ["p"], Sources())

    assert [ring.find(secret) for ring in (here, there)] == [token, token]
    assert (there.requires_token(), there.tokens) == (True, (token,))
    assert secret.encode() not in open_machine("else").place.log.get(tokens.TOKENS).data
    assert there.revoke(token.id) == token
    assert (here.find(secret), here.has(token), here.requires_token()) == (None, False, True)
    with pytest.raises(NotFound):
        here.revoke(token.id)


def test_untrusted_sparql_sees_the_latest_writes_of_other_machines(open_machine):
    here, there = open_machine("here"), open_machine("there")
    query = "SELECT ?s { ?i <https://jido.ai/ontology#summary> ?s }"
    for number in range(2):
        here.writer.remember("p", f"it is number {number}")
        there.catch_up("p")
        assert len(there.pool.solutions("p", query).rows) == number + 1


def test_the_verbs_run_on_a_shared_root_and_show_no_password(address, tmp_path):
    def run(*words, expected=0, root=address):
        result = jidomem_here(root, tmp_path / "home", *words)
        assert result.exit_code == expected, result.stderr
        assert "s3cret" not in result.stdout + result.stderr
        return result

    assert ": created" in run("init", "--root", address).stderr
    run("remember", "the build needs Rust 1.80")
    status = json.loads(run("status", "--json").stdout)
    assert (status["root"].startswith("postgresql://"), status["project"]) == (True, "p")
    checks = {
        check["name"]: check for check in json.loads(run("status", "--doctor", "--full", "--json").stdout)["checks"]
    }
    assert checks["root"]["detail"].startswith("postgresql://")
    assert "verified" in checks["journal"]["detail"]
    for words in (
        ["journal", "verify"],
        ["root", "reindex"],
        ["check"],
        ["journal", "replay", "--check"],
        ["journal", "pack"],
        ["root", "files"],
    ):
        run(*words)
    assert (
        "cannot be quarantined"
        in run("journal", "verify", "--quarantine", "abcdef123456", "--reason", "x", expected=2).stderr
    )
    assert "a shared root belongs to none" in run("guard", "x.py", expected=1).stderr


def test_no_command_prints_the_password_of_the_address_in_its_arguments(address, tmp_path, monkeypatch):
    monkeypatch.setattr(similar.ReceiptSearch, "default", "ask")
    monkeypatch.chdir(tmp_path)
    environment, outputs = {"JIDOMEM_HOME": str(tmp_path / "home")}, {}

    def run(*words):
        result = CliRunner().invoke(cli, list(words), env=environment)
        outputs[words] = result.stdout + result.stderr
        return outputs[words]

    root = ("--root", address)
    assert ": created" in run(*root, "init", "--project", "p")
    first = run(*root, "remember", "the build needs Rust 1.80", "--agent", "ana").partition("\n")[0]
    again = run(*root, "remember", "the build needs Rust 1.81", "--agent", "ana")
    assert f"jidomem review --root '{postgres_connection.read(address).name}'" in again
    run(*root, "remember", "the build needs Rust 1.82", "--json")
    run(*root, "review", "accept", first)
    run(*root, "edit", first, "--confirm")
    assert "in its place: jidomem show --root" in run(*root, "show", first)
    run(*root, "journal", "redact", first, "--text", "Rust", "--reason", "r", "--dry-run")
    for words in (
        "review", "review --conflicts", "review supersede x --against y", "show x", "ask facts", "ask x", "check",
        "status", "status --doctor", "access policy show", "access policy grant ana admin", "access token add ana",
        "access token list", "journal restore --dry-run", "journal verify", "ontology check", "root files",
        "root pull files", "root push files", "root backup b.tar", "root restore b.tar", "guard x.py", "setup claude",
        "init folder", "x", "serve --port x", f"access trust {address}", f"root migrate x {address}",
        f"root migrate {address} {address}", f"root migrate {address} {address} {address}", f"init {address}", address,
        f"setup claude --server {address}", f"remember {address} --x",
    ):  # fmt: skip
        run(*root, *words.split())
    run("init", address)
    for wrong in ("x", "?x=y", "?schema=X"):
        run("--root", address.partition("?")[0] + wrong, "status")
    run("--root", address.replace(PASSWORD, f"{PASSWORD}/x"), "status")

    assert [words for words, output in outputs.items() if PASSWORD in output] == []
    assert [each.name for each in tmp_path.iterdir() if PASSWORD in each.name or each.name == "postgresql:"] == []


def test_init_creates_a_project_in_the_root_of_the_environment_and_another_root_in_a_folder(
    address, tmp_path, monkeypatch
):
    (tmp_path / "billing").mkdir()
    monkeypatch.chdir(tmp_path / "billing")
    monkeypatch.setenv("JIDOMEM_ROOT", address)
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    in_environment = CliRunner().invoke(cli, ["init"])
    assert (in_environment.exit_code, "project billing: created" in in_environment.stderr) == (0, True)
    assert not (tmp_path / "billing" / ".jidomem").exists()

    in_folder = CliRunner().invoke(cli, ["init", "."])
    assert (in_folder.exit_code, "$JIDOMEM_ROOT names another root" in in_folder.stderr) == (0, True)
    assert (tmp_path / "billing" / ".jidomem" / "config.toml").exists()


def test_the_warning_of_a_second_project_asks_for_nothing_that_a_shared_root_lacks(address, tmp_path):
    jidomem_here(address, tmp_path / "home", "remember", "one")
    second = jidomem_here(address, tmp_path / "home", "--project", "a", "remember", "two")
    assert "this begins the project a beside p; if you meant one of them, write it there" in second.stderr
    assert ("a shared root keeps both" in second.stderr, "remove" in second.stderr) == (True, False)


def test_files_of_a_root_are_pushed_pulled_listed_and_removed(address, tmp_path):
    def run(*words, expected=0):
        result = jidomem_here(address, tmp_path / "home", *words)
        assert result.exit_code == expected, result.stderr
        return result

    folder, shapes = tmp_path / "team", tmp_path / "team" / "shapes"
    shapes.mkdir(parents=True)
    (folder / "config.toml").write_text('project = "team"\nstrict = true\n')
    (shapes / "own.ttl").write_text("<urn:a> <urn:b> <urn:c> .\n")
    assert run("root", "push", str(folder)).stdout.split() == ["new", "config.toml", "new", "shapes/own.ttl"]
    assert run("root", "push", str(folder)).stdout == ""

    (folder / "queries").mkdir()
    (folder / "queries" / "late.rq").write_text("SELECT * { ?s ?p ?o }\n")
    pushed = run("root", "push", str(folder))
    assert "warning: queries/late.rq: this file is not read: an overlay is ontology/*.ttl" in pushed.stderr
    assert json.loads(run("root", "push", "--json", str(folder)).stdout)["unread"] == ["queries/late.rq"]
    run("root", "remove-files", "queries/late.rq")
    shutil.rmtree(folder / "queries")

    (folder / "config.toml").write_text("port = 9\n")
    refused = run("root", "push", str(folder), expected=1).stderr
    assert ("jidomem serve --port" in refused, "trust" in refused) == (True, False)
    (folder / "config.toml").write_text("stric = true\n")
    assert "did you mean 'strict'" in run("root", "push", str(folder), expected=1).stderr

    run("root", "pull", str(tmp_path / "pulled"))
    assert (tmp_path / "pulled" / "config.toml").read_text() == 'project = "team"\nstrict = true\n'
    run("root", "remove-files", "shapes/own.ttl")
    assert [line.split()[0] for line in run("root", "files", "--format", "csv").stdout.splitlines()] == [
        "path,bytes",
        "config.toml,31",
    ]
    assert not (tmp_path / "home" / "shapes" / "own.ttl").exists()
    assert "is a folder" in jidomem_here(str(folder), tmp_path / "home", "root", "files").stderr


@pytest.mark.parametrize(
    ("root", "code", "says"),
    [
        ("mysql://ana:s3cret@db/x", 2, "mysql://ana@db/x is not the address"),
        ("mysql://ana:x/s3cret@db/x", 2, "mysql://... is not the address"),
        ("http://db/x", 2, "is a server, and commands open the root itself"),
        ("postgresql://ana:s3cret@127.0.0.1:1/x", 1, "postgresql://ana@127.0.0.1:1/x"),
    ],
)
def test_an_invalid_or_unreachable_root_is_reported_without_its_password(tmp_path, root, code, says):
    for verb in ("status", "remember"):
        result = jidomem_here(root, tmp_path / "home", verb, *(["x"] if verb == "remember" else []))
        assert (result.exit_code, says in result.stderr, "s3cret" in result.stderr) == (code, True, False)


def test_a_home_with_other_content_is_refused_and_unchanged(address, tmp_path, monkeypatch, postgres):
    other_root = tmp_path / "mine"
    with jidomem.open(other_root, project="p") as memory:
        memory.writer.remember("p", "this is no copy")
    before = files(other_root)
    monkeypatch.setenv("JIDOMEM_HOME", str(other_root))
    with pytest.raises(Failed, match="other content") as refused:
        jidomem.open(address)
    assert (refused.value.code, files(other_root)) == ("invalid_config", before)

    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))
    jidomem.open(address).close()
    with pytest.raises(Failed, match="has the copy of postgresql://"):
        jidomem.open(postgres.address())
    jidomem.open(address).close()


@both
@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("ask", "facts"),
        ("journal", "verify"),
        ("journal", "restore"),
        ("root", "files"),
        ("serve", "--port", "0"),
        ("serve", "--port", "0", "--workers", "2"),
        ("mcp", "--http", "--port", "0"),
    ],
    ids=" ".join,
)
def test_a_server_and_a_command_that_reads_refuse_a_root_that_does_not_exist_and_make_none(address, tmp_path, words):
    for _ in range(2):
        refused = jidomem_here(address, tmp_path / "home", *words)
        assert (refused.exit_code, "there is no memory root at" in refused.stderr) == (4, True), refused.output
    assert "jidomem init --root" in refused.stderr
    assert not (tmp_path / "home").exists()


@both
def test_a_write_makes_a_root_with_a_warning_that_names_its_address(address, tmp_path):
    warning = f"warning: there is no memory root at {addresses.without_secrets(address)}"
    first, second = (jidomem_here(address, tmp_path / "home", "remember", text) for text in ("one", "two"))

    assert (first.exit_code, first.stderr.startswith(warning)) == (0, True)
    assert (second.exit_code, "no memory root" in second.stderr) == (0, False)
    assert jidomem_here(address, tmp_path / "other", "status").exit_code == 0


@both
def test_a_server_warns_of_a_root_that_names_no_project(address, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / "home"))

    def warning(**named):
        with jidomem.open(address, **named) as memory:
            App().warn_of_new(memory.settings, memory.projects)
            return memory.project, capsys.readouterr().err

    default, warned = warning()
    shown = shlex.quote(addresses.without_secrets(address))
    assert warned == (
        f"warning: the root names no project: here it is {default}, by the folder;"
        f" for all: jidomem init --root {shown} --project {default}\n"
    )
    assert "names no project" not in warning(project="p")[1]
    assert jidomem_here(address, tmp_path / "home", "init", "--project", "p").exit_code == 0
    assert warning() == ("p", "")


def test_a_root_that_is_gone_is_not_made_again_before_init(postgres, tmp_path):
    address = postgres.address()
    assert jidomem_here(address, tmp_path / "home", "init").exit_code == 0
    postgres.sql(f"DROP SCHEMA {address.rpartition('=')[2]} CASCADE")

    for words in (("status",), ("remember", "anything")):
        refused = jidomem_here(address, tmp_path / "home", *words)
        assert (refused.exit_code, "restore the store from a backup" in refused.stderr) == (4, True)
    assert jidomem_here(address, tmp_path / "home", "init").exit_code == 0
    assert jidomem_here(address, tmp_path / "home", "remember", "anything").exit_code == 0


def test_an_address_that_was_not_reached_claims_no_home(address, tmp_path):
    for unreachable in ("postgresql://ana@127.0.0.1:1/x", "s3://bucket"):
        refused = jidomem_here(unreachable, tmp_path / "home", "init", "--root", unreachable)
        assert (refused.exit_code, (tmp_path / "home").exists()) != (0, True)

    assert jidomem_here(address, tmp_path / "home", "init", "--root", address).exit_code == 0


def test_the_home_of_a_root_depends_on_its_place_and_not_on_credentials(monkeypatch):
    home = partial(addresses.home_of, environment={})
    assert home("postgresql://ana:x@db/team") == home("postgres://ben:y@DB/team/?sslmode=require")
    others = [home(f"postgresql://db/{rest}") for rest in ("team", "other", "team?schema=x", "team?host=there")]
    assert len(set(others)) == 4
    assert home("postgresql://ana:x@db") != home("postgresql://ben:x@db")  # each in the database of that name
    assert home("postgresql:///team", environment={"PGHOST": "here"}) != home("postgresql:///team")
    assert home("postgresql://db/team", environment={"PGHOST": "here"}) == home("postgresql://db/team")
    assert home("postgresql://ana:x#y@db/team") == home("postgresql://ana:z#y@db/team")
    stores = [addresses.home_of("s3://b/p", {"AWS_ENDPOINT_URL": f"http://{user}here"}) for user in ("", "ana:s3cret@")]
    assert stores[0] == stores[1]
    assert addresses.home_of("s3://b/p", {}) != addresses.home_of("s3://b/p", {"AWS_ENDPOINT_URL": "http://here"})
    with pytest.raises(Failed, match="JIDOMEM_HOME=~nobody-here: there is no home folder of that user"):
        addresses.home_of("s3://b/p", {"JIDOMEM_HOME": "~nobody-here"})


def test_a_home_is_claimed_by_concurrent_processes_for_one_root(tmp_path):
    address, other = "postgresql://db/team", "postgresql://db/other"
    with ThreadPoolExecutor(8) as threads:
        for number in range(40):
            home = tmp_path / str(number)
            for claim in [threads.submit(addresses.claim, home, address, {}) for _ in range(8)]:
                claim.result()
            assert [each.name for each in home.iterdir()] == ["copy-of"]
        contested = tmp_path / "both"
        claims = [threads.submit(addresses.claim, contested, each, {}) for each in (address, other) * 4]
    is_refused = [each.exception() is not None for each in claims]
    assert sum(is_refused) == 4
    assert is_refused[0] != is_refused[1]
