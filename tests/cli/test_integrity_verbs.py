"""The verbs of whoever answers for a memory: verify, replay, redact."""

import json
import re
import shutil

import pytest
from cli_world import FACT, run, stand_in

import jidomem
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.terms import literal

STREAM = Stream("p")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    made = stand_in(tmp_path / "repo", monkeypatch)
    monkeypatch.setenv("JIDOMEM_AGENT", "curator")
    return made


@pytest.fixture
def folder(repository):
    return FileJournal(repository / ".jidomem").path(STREAM)


def told(*args, code=0):
    result = run(*args, "--json")
    assert result.exit_code == code, result.stdout + result.stderr
    return json.loads(result.stdout)


def commits(folder):
    return sorted(folder.glob("2*.ttl"))


def edit(path):
    path.write_bytes(path.read_bytes().replace(b"jido:High", b"jido:Low", 1))


@pytest.mark.parametrize("by", ["file", "version"])
def test_commits_taken_away_from_the_end_are_seen_by_an_anchor_and_only_by_it(repository, folder, tmp_path, by):
    found = told("journal", "verify")
    (stream,) = found["streams"]
    anchor = stream["version"] if by == "version" else str(tmp_path / "anchor.json")
    (tmp_path / "anchor.json").write_text(json.dumps(found))
    assert "only --anchor" in found["not_detected"]
    assert told("journal", "verify", "--anchor", anchor)["not_detected"] is None
    assert run("remember", "later").exit_code == 0
    assert run("journal", "verify", "--anchor", anchor).exit_code == 0
    assert run("journal", "pack").exit_code == 0
    assert run("journal", "verify", "--anchor", anchor).exit_code == 0

    shutil.rmtree(folder)
    shutil.copytree(_without_the_end(tmp_path), folder)
    assert told("journal", "verify")["damage"] == []
    result = told("journal", "verify", "--anchor", anchor, code=7)
    assert [finding["kind"] for finding in result["findings"]] == ["missing"]
    assert run("journal", "verify", "--anchor", anchor).exit_code == 7


def _without_the_end(tmp_path):
    """The journal of the same memory before its last commits."""
    from cli_world import build

    (tmp_path / "again").mkdir()
    folder = FileJournal(build(tmp_path / "again")).path(STREAM)
    for path in commits(folder)[-2:]:
        path.unlink()
    return folder


@pytest.mark.parametrize("anchor", ["nowhere.json", "7", "7-xyz"])
def test_an_anchor_that_cannot_be_read_is_refused(repository, anchor):
    result = run("journal", "verify", "--anchor", anchor)
    assert result.exit_code == 2
    assert "jidomem journal verify --json > anchor.json" in result.stderr


@pytest.mark.parametrize("harm", ["edit", "remove", "tear", "edit in a pack"])
def test_damage_set_aside_is_recorded_and_reported_and_writing_goes_on(repository, folder, harm):
    victim = commits(folder)[2]
    identity = victim.name.split("-")[1].split(".")[0]
    if harm == "edit in a pack":
        assert run("journal", "pack").exit_code == 0
        (pack,) = folder.glob("pack-*.ttl")
        data = pack.read_bytes()
        at = data.index(b"# nonce", data.index(b"\n<urn:jido:commit:" + identity.encode()) - 100)
        pack.write_bytes(data[: at + 10] + (b"0" if data[at + 10] != 48 else b"1") + data[at + 11 :])
    elif harm == "edit":
        edit(victim)
    elif harm == "tear":
        victim.write_bytes(victim.read_bytes()[:300])
    else:
        victim.unlink()
    assert run("journal", "verify").exit_code == 7
    refused = run("remember", "more")
    assert refused.exit_code == 7

    assert run("journal", "verify", "--quarantine", identity).exit_code == 2
    done = run("journal", "verify", "--quarantine", identity, "--reason", "the disk failed")

    assert done.exit_code == 0, done.stderr
    assert run("remember", "more").exit_code == 0
    result = told("journal", "verify")
    (finding,) = result["findings"]
    assert (finding["kind"], finding["severity"]) == ("set_aside", "warning")
    assert "set aside by https://jido.ai/agents/curator" in finding["detail"]
    assert "the disk failed" in finding["detail"]
    assert run("journal", "replay", "--check").exit_code == 0
    assert identity in finding["path"]
    with jidomem.open(repository / ".jidomem") as memory:
        assert memory.journal.verify(STREAM) == ()
        assert memory.reader.ask("recent-lessons", project="p")


def test_the_torn_end_of_a_journal_is_set_aside_and_what_follows_goes_on_from_before_it(repository, folder):
    last = commits(folder)[-1]
    torn = last.read_bytes()[:200]
    last.write_bytes(torn)
    assert run("journal", "verify", "--quarantine", last.name, "--reason", "power cut").exit_code == 0
    assert run("remember", "more").exit_code == 0
    assert (folder / f"{last.name}.aside").read_bytes() == torn
    assert told("journal", "verify")["streams"][0]["damaged"] == 0


def test_what_was_set_aside_without_a_word_is_found(repository, folder):
    path = commits(folder)[1]
    path.rename(folder / f"{path.name}.aside")
    result = told("journal", "verify", code=7)
    assert [finding["kind"] for finding in result["findings"]] == ["unrecorded"]
    assert result["damage"] == []
    assert run("journal", "verify", "--quarantine", path.name, "--reason", "found so").exit_code == 0
    assert [finding["kind"] for finding in told("journal", "verify")["findings"]] == ["set_aside"]


def test_what_is_not_damaged_is_not_set_aside_and_a_reason_alone_is_refused(repository, folder):
    sound = commits(folder)[0]
    assert run("journal", "verify", "--quarantine", sound.name, "--reason", "I do not like it").exit_code == 4
    assert run("journal", "verify", "--reason", "why").exit_code == 2
    assert sound.exists()


def test_a_pack_that_cannot_be_read_at_all_is_not_set_aside(repository, folder):
    assert run("journal", "pack").exit_code == 0
    (pack,) = folder.glob("pack-*.ttl")
    pack.write_bytes(pack.read_bytes()[:400])
    assert run("journal", "verify", "--quarantine", pack.name, "--reason", "torn").exit_code == 7
    assert pack.exists()


def test_a_replay_is_what_is_served_exported_and_kept_and_says_what_is_not(repository, monkeypatch):
    from jidomem.index import follower as limits

    for name, value in (("ON_DISK_BYTES", 3_000), ("SNAPSHOT_COMMITS", 0), ("WRITER_SNAPSHOT_BYTES", 0)):
        monkeypatch.setattr(limits, name, value)
    assert run("root", "reindex").exit_code == 0
    found = told("journal", "replay", "--check")
    assert (found["differences"], found["snapshots"]) == ([], 1)
    assert found["streams"][0]["triples"] > 100
    assert run("journal", "replay").exit_code == 2
    assert "--check" in run("journal", "replay").stderr

    with jidomem.open(repository / ".jidomem") as memory:
        memory.catch_up("p")
        memory.index._store.update(
            f"INSERT DATA {{ GRAPH <{STREAM.graph}> {{ <urn:x> <urn:p> {literal('never said')} }} }}"
        )
        memory.follower._loader.commits = 1
        memory.follower._publish_if_due(0, 0)
        memory.follower._wait_for_threads()
    result = run("journal", "replay", "--check")
    assert result.exit_code == 1
    assert 'is extra: <urn:x> <urn:p> "never said" .' in result.stdout
    assert run("root", "reindex").exit_code == 0
    assert run("journal", "replay", "--check").exit_code == 0


def test_packing_goes_on_around_a_damaged_file_and_tells_of_it(repository, folder):
    for number in range(3):
        assert run("remember", f"fact {number}").exit_code == 0
    (path,) = [path for path in commits(folder) if b"fact 1" in path.read_bytes()]
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"fact 1", b"fact 7"))

    found = told("journal", "pack", code=7)

    assert ([damage["commit"] for damage in found["damage"]], list(folder.glob("pack-*"))) != ([], [])
    assert path.exists()
    assert path.name in run("journal", "pack").stdout
    path.write_bytes(sound)
    assert told("journal", "pack")["damage"] == []
    assert told("journal", "verify")["damage"] == []


def test_a_replay_of_a_damaged_journal_says_so(repository, folder):
    edit(commits(folder)[1])
    assert told("journal", "replay", "--check", code=7)["damage"]


def test_a_redaction_is_shown_then_done_and_what_it_cannot_reach_is_said(repository, folder):
    (repository / ".git").mkdir()
    (repository / ".jidomem" / "notes.txt").write_text("the cache holds 2 GiB, they say")
    shown = told("journal", "redact", FACT, "--dry-run")["rows"]
    assert {row["why"] for row in shown} == {"says it", "was computed from it"}
    assert "GiB" not in json.dumps(shown)
    assert run("journal", "redact", FACT).exit_code == 2

    result = run("journal", "redact", FACT, "--property", "summary", "--reason", "it names a customer")

    assert result.exit_code == 0, result.stderr
    assert "notes.txt" in result.stderr
    assert "git filter-repo" in result.stderr
    assert "other copies of this root" in result.stderr
    assert not any(b"2 GiB" in path.read_bytes() for path in folder.iterdir())
    assert run("journal", "verify").exit_code == 0
    assert run("journal", "redact", "--again", "--reason", "to be sure").stderr.startswith("nothing to redact")


@pytest.mark.parametrize(
    ("args", "code", "hint"),
    [
        (["--reason", "x"], 2, "--text"),
        ([FACT, "--text", "GiB", "--property", "summary"], 2, "leave one of them out"),
        ([FACT, "--again", "--reason", "x"], 2, "leave out all options but --reason"),
        ([FACT, "--property", "topic", "--reason", "x"], 4, "it has: "),
        ([FACT, "--property", "summary", "--reason", "the cache holds 2 GiB"], 2, "leave that text out"),
        (["--text", "not said by anybody", "--reason", "x"], 4, "--again"),
    ],
)
def test_a_redaction_that_cannot_be_done_is_refused_and_touches_nothing(repository, folder, args, code, hint):
    before = {path.name for path in folder.iterdir()}
    result = run("journal", "redact", *args)
    assert (result.exit_code, hint in result.stderr) == (code, True), result.stderr
    assert {path.name for path in folder.iterdir()} == before


def test_a_redaction_is_shown_in_history_log_and_differences_and_by_an_anchor_from_before(repository):
    before = told("journal", "verify")["streams"][0]["version"]
    why = {"agent": "https://jido.ai/agents/curator", "reason": "it names a customer"}
    assert run("journal", "redact", FACT, "--property", "summary", "--reason", why["reason"]).exit_code == 0

    (version,) = told("show", FACT, "--history")["rows"]
    assert [why | {"recorded": each["recorded"]} for each in version["redactions"]] == version["redactions"]
    assert len(version["redactions"]) == 1
    assert "redacted by curator" in run("show", FACT, "--history").stdout
    newest = told("journal", "log")["rows"][0]
    assert (newest["agents"], newest["reason"]) == ([why["agent"]], why["reason"])
    assert len(newest["redacted"]) == 1
    assert "redaction of 1 commit: it names a customer" in run("journal", "log").stdout
    short = FACT.rpartition("/")[2][-8:]
    line = f"{short} was redacted by curator"
    assert line in run("journal", "diff", "--as-of", before).stderr
    assert line not in run("journal", "diff", "--as-of", "0", "--as-of", before).stderr
    assert f"jidomem show {short} --history" in run("show", FACT).stderr

    (found,) = told("journal", "verify", "--anchor", before)["findings"]
    assert (found["kind"], found["severity"]) == ("redacted", "warning")
    assert "1 commit was redacted in p/memory since the anchor" in found["detail"]
    now = told("journal", "verify")["streams"][0]["version"]
    assert told("journal", "verify", "--anchor", now)["findings"] == []


@pytest.mark.parametrize("reason", [(), ("--reason", "it names a customer")])
def test_a_preview_of_a_redaction_is_refused_where_the_redaction_would_be(repository, reason):
    result = run("journal", "redact", FACT, *reason, "--dry-run", "--agent", "ana")
    assert (result.exit_code, result.stdout) == (3, ""), result.output
    assert "ana, an Implementer, may not redact" in result.stderr

    result = run("journal", "redact", "--text", "GiB", "--reason", "2 GiB", "--dry-run")
    assert (result.exit_code, "leave that text out" in result.stderr) == (2, True), result.output


def test_a_preview_of_a_redaction_names_the_fields_whose_whole_value_goes(repository):
    run("remember", "the cache holds 2 GiB, since Monday", "--topic", "size", "--rationale", "GiB and more")

    text = run("journal", "redact", "--text", "GiB", "--dry-run").stderr

    assert "values that would be removed completely, not only the text in them: 1 rationale, 2 summary" in text
    assert "each value that contains it is removed" in " ".join(run("journal", "redact", "--help").stdout.split())


def test_where_there_is_a_curator_nobody_else_redacts_or_sets_damage_aside(repository, folder):
    torn = commits(folder)[1]
    whole = torn.read_bytes()
    redacting = ["journal", "redact", FACT, "--reason", "it names a customer"]
    setting_aside = ["journal", "verify", "--quarantine", torn.name, "--reason", "torn"]

    denied = run(*redacting, "--agent", "ana")
    torn.write_bytes(whole[:200])
    kept = run(*setting_aside, "--agent", "ana", "--json")

    assert (denied.exit_code, "hint: ask curator" in denied.stderr) == (3, True), denied.stderr
    assert "ana, an Implementer, may not redact" in denied.stderr
    error = json.loads(kept.stdout)
    assert (kept.exit_code, error["code"], error["hint"]) == (3, "policy_denied", "ask curator")
    assert torn.exists()
    assert run(*setting_aside).exit_code == 0
    assert run(*redacting).exit_code == 0


def test_a_success_is_quiet_unless_more_is_asked_for(repository):
    assert run("remember", "the build needs Rust 1.80").exit_code == 0

    check, verify = run("check"), run("journal", "verify")
    more = [run("-v", *words).stderr for words in (["check"], ["journal", "verify"])]

    assert (check.exit_code, verify.exit_code, verify.stderr) == (0, 0, "")
    assert "rules with no matches" not in check.stderr
    assert ["rules with no matches" in more[0], "not detected: " in more[1]] == [True, True]


def test_a_missing_commit_that_was_set_aside_is_restored_as_the_report_says(repository, folder):
    lost = commits(folder)[1]
    document, name, identity = lost.read_bytes(), lost.name, lost.stem.partition("-")[2]
    lost.unlink()
    assert run("journal", "verify", "--quarantine", identity, "--reason", "it is gone").exit_code == 0
    (finding,) = told("journal", "verify")["findings"]
    ways = re.search(
        r"restore it as MOMENT(\S+) .* \((\S+) becomes (\S+)\), remove (\S+) and run: (.+)$", finding["hint"]
    )

    written = re.search(rb'jido:recordedAt "([^"]+)"', document)[1].decode()
    marks = re.sub(r"[0-9]", "", ways[2]), re.sub(r"[0-9]", "", ways[3])
    assert marks == ("--T::.Z", "T.Z")
    (folder / f"{written.replace('-', '').replace(':', '')}{ways[1]}").write_bytes(document)
    (folder / ways[4]).unlink()
    assert run(*ways[5].split()[1:]).exit_code == 0

    assert (folder / name).exists()
    assert (told("journal", "verify")["damage"], told("journal", "verify")["findings"]) == ([], [])
    assert run("journal", "replay", "--check").exit_code == 0
