"""The verbs for the integrity of a journal: verify, replay, pack, redact."""

import json
import re
import shutil
from collections import Counter

import pytest
from cli_world import FACT, create_repository, run
from conftest import intent

import jidomem
from jidomem.check.journal_integrity import replay
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.terms import literal
from jidomem.records.entry import Entry, WriteRequest
from jidomem_cli import journal

STREAM = Stream("p")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = create_repository(tmp_path / "repo", monkeypatch)
    monkeypatch.setenv("JIDOMEM_AGENT", "curator")
    return folder


@pytest.fixture
def folder(repository):
    return FileJournal(repository / ".jidomem").path(STREAM)


def run_json(*args, code=0):
    result = run(*args, "--json")
    assert result.exit_code == code, result.stdout + result.stderr
    return json.loads(result.stdout)


def commits(folder):
    return sorted(folder.glob("2*.ttl"))


def edit(path):
    path.write_bytes(path.read_bytes().replace(b"jido:High", b"jido:Low", 1))


@pytest.mark.parametrize("by", ["file", "version"])
def test_removed_last_commits_are_detected_only_with_an_anchor(repository, folder, tmp_path, by):
    report = run_json("journal", "verify")
    (stream,) = report["streams"]
    anchor = stream["version"] if by == "version" else str(tmp_path / "anchor.json")
    (tmp_path / "anchor.json").write_text(json.dumps(report))
    assert "only --anchor" in report["not_detected"]
    assert run_json("journal", "verify", "--anchor", anchor)["not_detected"] is None
    assert run("remember", "later").exit_code == 0
    assert run("journal", "verify", "--anchor", anchor).exit_code == 0
    assert run("journal", "pack").exit_code == 0
    assert run("journal", "verify", "--anchor", anchor).exit_code == 0

    shutil.rmtree(folder)
    shutil.copytree(_truncated_journal(tmp_path), folder)
    assert run_json("journal", "verify")["damage"] == []
    result = run_json("journal", "verify", "--anchor", anchor, code=7)
    assert [finding["kind"] for finding in result["findings"]] == ["missing"]
    assert run("journal", "verify", "--anchor", anchor).exit_code == 7


def _truncated_journal(tmp_path):
    """Return the journal of the same memory without its last commits."""
    from cli_world import build

    (tmp_path / "again").mkdir()
    folder = FileJournal(build(tmp_path / "again")).path(STREAM)
    for path in commits(folder)[-2:]:
        path.unlink()
    return folder


@pytest.mark.parametrize("anchor", ["nowhere.json", "7", "7-xyz"])
def test_an_unreadable_anchor_is_refused(repository, anchor):
    result = run("journal", "verify", "--anchor", anchor)
    assert result.exit_code == 2
    assert "jidomem journal verify --json > anchor.json" in result.stderr


@pytest.mark.parametrize("damage", ["edit", "remove", "tear", "edit in a pack"])
def test_quarantined_damage_is_recorded_and_reported_and_writes_work_again(repository, folder, damage):
    damaged = commits(folder)[2]
    identity = damaged.name.split("-")[1].split(".")[0]
    if damage == "edit in a pack":
        assert run("journal", "pack").exit_code == 0
        (pack,) = folder.glob("pack-*.ttl")
        data = pack.read_bytes()
        at = data.index(b"# nonce", data.index(b"\n<urn:jido:commit:" + identity.encode()) - 100)
        pack.write_bytes(data[: at + 10] + (b"0" if data[at + 10] != 48 else b"1") + data[at + 11 :])
    elif damage == "edit":
        edit(damaged)
    elif damage == "tear":
        damaged.write_bytes(damaged.read_bytes()[:300])
    else:
        damaged.unlink()
    assert run("journal", "verify").exit_code == 7
    refused = run("remember", "more")
    assert refused.exit_code == 7

    assert run("journal", "verify", "--quarantine", identity).exit_code == 2
    quarantine = run("journal", "verify", "--quarantine", identity, "--reason", "the disk failed")

    assert quarantine.exit_code == 0, quarantine.stderr
    assert run("remember", "more").exit_code == 0
    result = run_json("journal", "verify")
    (finding,) = result["findings"]
    assert (finding["kind"], finding["severity"]) == ("set_aside", "warning")
    assert "set aside by https://jido.ai/agents/curator" in finding["detail"]
    assert "file set aside: " in run("journal", "log").stdout
    assert "the disk failed" in finding["detail"]
    assert run("journal", "replay", "--check").exit_code == 0
    assert identity in finding["path"]
    with jidomem.open(repository / ".jidomem") as memory:
        assert memory.journal.verify(STREAM) == ()
        assert memory.reader.ask("recent-lessons", project="p")


def test_a_torn_last_commit_is_quarantined_and_writes_work_again(repository, folder):
    last = commits(folder)[-1]
    torn = last.read_bytes()[:200]
    last.write_bytes(torn)
    assert run("journal", "verify", "--quarantine", last.name, "--reason", "power cut").exit_code == 0
    assert run("remember", "more").exit_code == 0
    assert (folder / f"{last.name}.aside").read_bytes() == torn
    assert run_json("journal", "verify")["streams"][0]["damaged"] == 0


def test_a_commit_set_aside_without_a_record_is_found(repository, folder):
    path = commits(folder)[1]
    path.rename(folder / f"{path.name}.aside")
    result = run_json("journal", "verify", code=7)
    assert [finding["kind"] for finding in result["findings"]] == ["unrecorded"]
    assert result["damage"] == []
    assert run("journal", "verify", "--quarantine", path.name, "--reason", "found so").exit_code == 0
    assert [finding["kind"] for finding in run_json("journal", "verify")["findings"]] == ["set_aside"]


def test_a_sound_commit_is_not_quarantined_and_a_reason_alone_is_refused(repository, folder):
    sound = commits(folder)[0]
    assert run("journal", "verify", "--quarantine", sound.name, "--reason", "I do not like it").exit_code == 4
    assert run("journal", "verify", "--reason", "why").exit_code == 2
    assert sound.exists()


def test_an_unreadable_pack_is_not_quarantined(repository, folder):
    assert run("journal", "pack").exit_code == 0
    (pack,) = folder.glob("pack-*.ttl")
    pack.write_bytes(pack.read_bytes()[:400])
    assert run("journal", "verify", "--quarantine", pack.name, "--reason", "torn").exit_code == 7
    assert pack.exists()


def test_replay_compares_journal_index_and_snapshots_and_names_an_extra_triple(repository, monkeypatch):
    from jidomem.index import follower as limits

    for name, value in (("ON_DISK_BYTES", 3_000), ("SNAPSHOT_COMMITS", 0), ("WRITER_SNAPSHOT_BYTES", 0)):
        monkeypatch.setattr(limits, name, value)
    assert run("root", "reindex").exit_code == 0
    report = run_json("journal", "replay", "--check")
    assert (report["differences"], report["snapshots"]) == ([], 1)
    assert report["streams"][0]["triples"] > 100
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


def test_a_replay_reads_each_index_once_and_reports_its_progress(repository, monkeypatch):
    from jidomem.index import follower as limits

    for name, value in (("ON_DISK_BYTES", 3_000), ("SNAPSHOT_COMMITS", 10**9), ("WRITER_SNAPSHOT_BYTES", 10**9)):
        monkeypatch.setattr(limits, name, value)
    assert run("root", "reindex").exit_code == 0
    dumped, bulk_loaded, shown = [], [], []
    dump, bulk_load = OxigraphIndex.dump, OxigraphIndex.bulk_load
    monkeypatch.setattr(
        OxigraphIndex, "dump", lambda self, graph, sink: dumped.append(graph) or dump(self, graph, sink)
    )
    monkeypatch.setattr(
        OxigraphIndex,
        "bulk_load",
        lambda self, graph, commits: bulk_loaded.append(graph) or bulk_load(self, graph, commits),
    )
    with jidomem.open(repository / ".jidomem") as memory:
        for number in range(6):
            project = "pq"[number % 2]
            memory.writer.submit_intent(
                project, intent(summary=f"{number}", rationale=900 * "x", applies_to_project=project)
            )
        monkeypatch.setattr(limits, "STEP", 2_000)
        graphs = [stream.graph for stream in memory.journal.streams()]
        result = replay(
            memory.follower,
            memory.settings.root / "index",
            memory.schema.triples,
            memory.schema.version,
            lambda done, total: shown.append((done, total)),
        )
    assert not result.differences
    assert result.snapshots
    assert all(2 <= Counter(dumped)[graph] <= 2 + result.snapshots for graph in graphs)
    assert {Stream("p").graph, Stream("q").graph} <= {*bulk_loaded}
    assert sum(done for done, _ in shown) / shown[0][1] > 0.5  # a snapshot may be published meanwhile


def test_packing_continues_around_a_damaged_commit_and_reports_it(repository, folder):
    for number in range(3):
        assert run("remember", f"fact {number}").exit_code == 0
    (path,) = [path for path in commits(folder) if b"fact 1" in path.read_bytes()]
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"fact 1", b"fact 7"))

    report = run_json("journal", "pack", code=7)

    assert ([damage["commit"] for damage in report["damage"]], list(folder.glob("pack-*"))) != ([], [])
    assert path.exists()
    assert path.name in run("journal", "pack").stdout
    path.write_bytes(sound)
    assert run_json("journal", "pack")["damage"] == []
    assert run_json("journal", "verify")["damage"] == []


def test_a_replay_of_a_damaged_journal_reports_the_damage(repository, folder):
    edit(commits(folder)[1])
    assert run_json("journal", "replay", "--check", code=7)["damage"]


def test_a_redaction_is_previewed_then_executed_and_names_unreached_copies(repository, folder):
    (repository / ".git").mkdir()
    (repository / ".jidomem" / "notes.txt").write_text("the cache holds 2 GiB, they say")
    preview = run_json("journal", "redact", FACT, "--dry-run")["rows"]
    assert {row["why"] for row in preview} == {"says it", "was computed from it"}
    assert "GiB" not in json.dumps(preview)
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
        (
            ["--again", "--anchor", "1-0123456789ab", "--reason", "x"],
            2,
            "FILE that jidomem journal verify --json wrote",
        ),
        ([FACT, "--property", "topic", "--reason", "x"], 4, "it has: "),
        ([FACT, "--property", "summary", "--reason", "the cache holds 2 GiB"], 2, "leave that text out"),
        (["--text", "not said by anybody", "--reason", "x"], 4, "look for other spellings"),
    ],
)
def test_an_invalid_redaction_is_refused_and_changes_nothing(repository, folder, args, code, hint):
    before = {path.name for path in folder.iterdir()}
    result = run("journal", "redact", *args)
    assert (result.exit_code, hint in result.stderr) == (code, True), result.stderr
    assert {path.name for path in folder.iterdir()} == before


def test_a_redaction_is_shown_in_history_log_diff_and_by_an_earlier_anchor(repository):
    before = run_json("journal", "verify")["streams"][0]["version"]
    order = {"agent": "https://jido.ai/agents/curator", "reason": "it names a customer"}
    assert run("journal", "redact", FACT, "--property", "summary", "--reason", order["reason"]).exit_code == 0

    (version,) = run_json("show", FACT, "--history")["rows"]
    assert [order | {"recorded": each["recorded"]} for each in version["redactions"]] == version["redactions"]
    assert len(version["redactions"]) == 1
    assert "redacted by curator" in run("show", FACT, "--history").stdout
    newest = run_json("journal", "log")["rows"][0]
    assert (newest["agents"], newest["reason"]) == ([order["agent"]], order["reason"])
    assert len(newest["redacted"]) == 1
    assert "redaction of 1 commit: it names a customer" in run("journal", "log").stdout
    short = FACT.rpartition("/")[2][-8:]
    line = f"{short} was redacted by curator"
    assert line in run("journal", "diff", "--as-of", before).stderr
    assert line not in run("journal", "diff", "--as-of", "0", "--as-of", before).stderr
    assert f"jidomem show {short} --history" in run("show", FACT).stderr

    (finding,) = run_json("journal", "verify", "--anchor", before)["findings"]
    assert (finding["kind"], finding["severity"]) == ("redacted", "warning")
    assert "1 commit was redacted in p/memory since the anchor" in finding["detail"]
    now = run_json("journal", "verify")["streams"][0]["version"]
    assert run_json("journal", "verify", "--anchor", now)["findings"] == []


def test_a_restored_older_backup_lacks_the_redactions_of_an_anchor_and_its_command_repeats_them(repository, tmp_path):
    with jidomem.open(repository / ".jidomem") as memory:
        memory.entries.write(WriteRequest(Entry(id="visit", agent_id="ana", content="Greta Lind came")))
    named = run("remember", "Greta Lind has a key", "-q").stdout.strip()
    unnamed = run(
        "remember", "the key of Greta Lind", "--iri", "https://jido.ai/memory/greta-lind", "-q"
    ).stdout.strip()
    assert run("agent", "working", "put", "who", '"Greta Lind has a key"').exit_code == 0
    assert run("root", "backup", tmp_path / "before.tar").exit_code == 0
    assert run("journal", "redact", "--text", "Greta Lind", "--reason", "her request").exit_code == 0
    assert run("agent", "working", "put", "who", '"Bo Berg"').exit_code == 0
    assert run("journal", "redact", "--text", "Bo Berg", "--reason", "his request").exit_code == 0
    anchor, restored = tmp_path / "anchor.json", tmp_path / "restored"
    anchor.write_text(run("journal", "verify", "--json").stdout)
    assert not re.search("Greta|Lind|Bo Berg", anchor.read_text(), re.IGNORECASE)
    assert run("root", "restore", tmp_path / "before.tar", "--root", restored).exit_code == 0

    def lost():
        result = run_json("journal", "verify", "--anchor", anchor, "--root", restored, code=7)
        return [each for each in result["findings"] if each["kind"] == "unredacted"]

    *of_texts, of_state = lost()
    assert {each["severity"] for each in of_texts} == {"violation"}
    assert all("by https://jido.ai/agents/curator at " in each["detail"] for each in of_texts)
    assert any(named[-8:] in each["detail"] and "her request" in each["detail"] for each in of_texts)
    assert (of_state["severity"], "his request" in of_state["detail"]) == ("warning", True)
    older = tmp_path / "older.json"  # as it was written before redactions were in it
    older.write_text(re.sub(r'"redactions": ?\[[^]]*\]', '"earlier": []', anchor.read_text()))
    refused = run("journal", "redact", "--again", "--anchor", older, "--reason", "r", "--root", restored)
    assert (refused.exit_code, f"{older} has no redactions to repeat" in refused.stderr) == (2, True)
    (command,) = {each["hint"].partition(";")[0] for each in of_texts}
    assert run(*command.split()[1:-1], "her request", "--root", restored).exit_code == 0

    assert lost() == [of_state]
    missing = run("journal", "verify", "--anchor", anchor, "--root", restored)
    assert "or if it stays as it is, make a new anchor" in missing.stderr
    anchor.write_text(run("journal", "verify", "--json", "--root", restored).stdout)
    assert run("journal", "verify", "--anchor", anchor, "--root", restored).exit_code == 0
    assert (
        run_json("show", named, "--history", "--root", restored)["rows"][0]["redactions"][0]["reason"] == "her request"
    )
    assert run("show", unnamed, "--root", restored).exit_code == 4
    remaining = [path.read_bytes() for path in restored.rglob("*") if path.is_file()]
    assert not any(re.search(rb"(?i)greta|lind", data) for data in remaining)


def test_a_redacted_reason_of_a_redaction_leaves_who_ordered_it_and_when(repository):
    assert run("journal", "redact", FACT, "--property", "summary", "--reason", "case of Frau Lind").exit_code == 0
    (before,) = run_json("show", FACT, "--history")["rows"][0]["redactions"]

    assert run("journal", "redact", "--text", "Lind", "--reason", "her request").exit_code == 0

    assert run_json("show", FACT, "--history")["rows"][0]["redactions"] == [before | {"reason": None}]
    assert re.search(r"redacted by curator, [^\n]*: \(redacted\)", run("show", FACT, "--history").stdout)
    _, entry = run_json("journal", "log")["rows"][:2]
    assert (entry["agents"], len(entry["redacted"]), entry["reason"]) == ([before["agent"]], 1, None)
    assert "redaction of 1 commit: (redacted)" in run("journal", "log").stdout


def test_a_redaction_of_working_memory_alone_is_recorded_also_as_the_first_commit_of_a_project(repository):
    other = ("--project", "q")
    assert run("agent", "working", "put", "who", '"Greta Lind"', "--agent", "ana", *other).exit_code == 0

    assert run("journal", "redact", "--text", "Greta Lind", "--reason", "her request", *other).exit_code == 0

    (entry,) = run_json("journal", "log", *other)["rows"]
    assert (entry["agents"], entry["reason"]) == (["https://jido.ai/agents/curator"], "her request")
    assert "redaction of the working state: her request" in run("journal", "log", *other).stdout
    assert run("check", *other).exit_code == 0
    assert run("journal", "redact", "--text", "Greta Lind", "--reason", "her request", *other).exit_code == 4


@pytest.mark.parametrize("reason", [(), ("--reason", "it names a customer")])
def test_a_preview_of_a_redaction_is_refused_like_the_redaction(repository, reason):
    result = run("journal", "redact", FACT, *reason, "--dry-run", "--agent", "ana")
    assert (result.exit_code, result.stdout) == (3, ""), result.output
    assert "ana, an Implementer, may not redact" in result.stderr

    result = run("journal", "redact", "--text", "GiB", "--reason", "2 GiB", "--dry-run")
    assert (result.exit_code, "leave that text out" in result.stderr) == (2, True), result.output


def test_a_verbose_preview_of_a_redaction_as_json_has_every_text_that_names_a_person(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        for number in (1, 2):
            memory.entries.write(
                WriteRequest(Entry(id="visit", agent_id="bo", content=f"Greta Lind came {number} times"))
            )
        memory.conversation("visit-7").record(prompt="Who has a key?", answer="Greta Lind has one")
    item = run("remember", "Greta Lind has a key", "-q").stdout.strip()
    assert run("edit", item, "--set", "summary=Greta Lind has two keys", "--reason", "counted").exit_code == 0
    assert run("agent", "working", "put", "who", '"Greta Lind calls"', "--agent", "bo").exit_code == 0

    rows = run_json("journal", "redact", "--text", "Greta Lind", "--dry-run", "-v")["rows"]

    values = [json.dumps(row["value"]) for row in rows]
    for text in ("has a key", "has two keys", "came 1 times", "came 2 times", "has one", "calls"):
        assert any(f"Greta Lind {text}" in value for value in values), text
    assert not any("Who has a key?" in value for value in values)
    (of_state,) = [row for row in rows if row["stream"] == "working state"]
    assert (of_state["property"], of_state["item"]) == ("working memories", "bo")


def test_a_preview_of_a_redaction_counts_values_removed_completely(repository):
    run("remember", "the cache holds 2 GiB, since Monday", "--topic", "size", "--rationale", "GiB and more")

    text = run("journal", "redact", "--text", "GiB", "--dry-run").stderr

    assert "values that would be removed completely, not only the text in them: 1 rationale, 2 summary" in text
    assert "each value that contains it is removed" in " ".join(run("journal", "redact", "--help").stdout.split())


def test_the_preview_of_a_large_redaction_counts_statements_and_the_files_of_other_projects(repository, monkeypatch):
    with jidomem.open(repository / ".jidomem") as memory:
        for project, count in (("p", 3), ("q", 5)):
            for number in range(count):
                memory.writer.submit_intent(
                    project, intent(summary=f"Zerlinda drinks {number}", applies_to_project=project)
                )
    redact = ("journal", "redact", "--text", "Zerlinda", "--dry-run")
    rows = run_json(*redact)["rows"]
    listed = run(*redact)
    assert listed.stdout.count("\n") == len(rows) + 1

    monkeypatch.setattr(journal, "LISTED_STATEMENTS", len(rows) - 1)
    result, verbose = run(*redact), run(*redact, "-v")

    assert re.search(r"^p/memory +Fact +summary +3 +\w+, \w+, \w+$", result.stdout, re.MULTILINE)
    counts = [int(line.split()[3]) for line in result.stdout.splitlines()[1:]]
    assert sum(counts) == len(rows) > len(counts)
    assert f"{len(rows)} statements of 3 commits would be removed; nothing was written; -v or --json" in result.stderr
    (warning,) = [line for line in result.stderr.splitlines() if "another project" in line]
    assert re.fullmatch("warning: 5 files of .*/projects/q contain it, too: .* --project q --text - .*", warning)
    assert run_json(*redact)["rows"] == rows
    assert verbose.stdout == listed.stdout
    assert verbose.stderr.count("it belongs to another project") == 5
    costs = verbose.stderr.count("\ncost: ")
    assert costs == result.stderr.count("\ncost: ") > 0
    monkeypatch.setattr(journal, "SHOWN", 0)
    assert f"\n{costs} more costs of this kind: -v names all\n" in run(*redact).stderr


def test_a_redaction_says_which_retries_are_refused_and_which_are_no_longer_recognised(repository):
    for words, key in (("Zerlinda drinks tea", "k-1"), ("Zerlinda drinks coffee", "zerlinda-7")):
        last = run("remember", words, "--idempotency-key", key).stdout.strip()
    redact = ("journal", "redact", "--text", "Zerlinda", "--reason", "she asked")

    preview, result = run(*redact, "--dry-run").stderr, run(*redact).stderr
    retry = run("remember", "Zerlinda drinks tea", "--idempotency-key", "k-1")

    assert "cost: a retry of the request of 1 memory is refused\n" in preview
    line = "requests whose idempotency key goes with the text (a retry is not recognised, and would store it again"
    assert all(re.search(rf"{re.escape(line)}: .+\): {last[-8:]}\n", text) for text in (preview, result))
    assert (retry.exit_code, "was redacted" in retry.stderr, "new key" in retry.stderr) == (5, True, False)


def test_with_a_curator_appointed_no_other_agent_redacts_or_quarantines(repository, folder):
    torn = commits(folder)[1]
    original = torn.read_bytes()
    redacting = ["journal", "redact", FACT, "--reason", "it names a customer"]
    setting_aside = ["journal", "verify", "--quarantine", torn.name, "--reason", "torn"]

    denied = run(*redacting, "--agent", "ana")
    torn.write_bytes(original[:200])
    refused = run(*setting_aside, "--agent", "ana", "--json")

    assert (denied.exit_code, "hint: ask curator" in denied.stderr) == (3, True), denied.stderr
    assert "ana, an Implementer, may not redact" in denied.stderr
    error = json.loads(refused.stdout)
    assert (refused.exit_code, error["code"], error["hint"]) == (3, "policy_denied", "ask curator")
    assert torn.exists()
    assert run(*setting_aside).exit_code == 0
    assert run(*redacting).exit_code == 0


def test_a_success_is_quiet_without_verbose(repository):
    assert run("remember", "the build needs Rust 1.80").exit_code == 0

    check, verify = run("check"), run("journal", "verify")
    more = [run("-v", *words).stderr for words in (["check"], ["journal", "verify"])]

    assert (check.exit_code, verify.exit_code, verify.stderr) == (0, 0, "")
    assert "rules with no matches" not in check.stderr
    assert ["rules with no matches" in more[0], "not detected: " in more[1]] == [True, True]


def test_a_quarantined_missing_commit_is_restored_as_the_report_instructs(repository, folder):
    removed = commits(folder)[1]
    document, name, identity = removed.read_bytes(), removed.name, removed.stem.partition("-")[2]
    removed.unlink()
    assert run("journal", "verify", "--quarantine", identity, "--reason", "it is gone").exit_code == 0
    (finding,) = run_json("journal", "verify")["findings"]
    instructions = re.search(
        r"restore it as MOMENT(\S+) .* \((\S+) becomes (\S+)\), remove (\S+) and run: (.+)$", finding["hint"]
    )

    written = re.search(rb'jido:recordedAt "([^"]+)"', document)[1].decode()
    marks = re.sub(r"[0-9]", "", instructions[2]), re.sub(r"[0-9]", "", instructions[3])
    assert marks == ("--T::.Z", "T.Z")
    (folder / f"{written.replace('-', '').replace(':', '')}{instructions[1]}").write_bytes(document)
    (folder / instructions[4]).unlink()
    assert run(*instructions[5].split()[1:]).exit_code == 0

    assert (folder / name).exists()
    assert (run_json("journal", "verify")["damage"], run_json("journal", "verify")["findings"]) == ([], [])
    assert run("journal", "replay", "--check").exit_code == 0


def test_a_redaction_names_the_entries_that_go_and_the_words_that_stay(repository):
    with jidomem.open(repository / ".jidomem", project="p", agent="curator") as memory:
        for customer in ("K-100", "K-1001"):
            metadata = {"namespace": "customers", "key": customer}
            memory.entries.write(WriteRequest(Entry(agent_id="desk", content="a claim", metadata=metadata)))
    redact = ("journal", "redact", "--text", "K-100", "--reason", "erased")

    rows = run_json(*redact, "--dry-run")["rows"]
    preview, result = run(*redact, "--dry-run"), run_json(*redact)

    assert {(row["property"].rpartition("#")[2], row["entry"]) for row in rows} == {
        (name, "customers K-100") for name in ("entryId", "entryText", "entryMetadata")
    }
    assert "removed whole, with all their fields: customers K-100\n" in preview.stderr
    assert "(--parts removes them, too): K-1001\n" in preview.stderr
    assert ([*result["entries"].values()], result["left_out"]) == (["customers K-100"], ["K-1001"])
    refusal = run(*redact)
    assert (refusal.exit_code != 0, "--parts" in refusal.stderr) == (True, True)
    assert run_json(*redact, "--parts")["left_out"] == []
