"""Store the files of this version for later tests, once, at its release: python tests/formats/freeze.py

tests/formats/VERSION/ gets a root with everything a root can contain (root.tar.gz), and what this version answers
of it (answers.json). Neither is ever changed: every later version has to read the one and give the other.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import jidomem
from jidomem.entries import Entry, WriteRequest

HERE = Path(__file__).parent
JIDOMEM = str(Path(sys.executable).parent / "jidomem")
BASE = "urn:frozen:"
TERMS = """\
@prefix jido: <https://jido.ai/ontology#> . @prefix my: <https://example.org/my#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
my:Incident a owl:Class ; rdfs:subClassOf jido:Incident ; rdfs:label "outage"@en ;
  skos:definition "An hour in which nobody could pay."@en ; skos:example "Checkout was down."@en .
"""
WHO = {"asserted_by": "architect", "asserted_in": "s-1", "confidence": "high"}
INTENTS = [
    {"type": "architectural_decision", "iri": BASE + "d1", "summary": "Keep it in files",
     "rationale": "git merges them", "topic": "store", "alternatives": ["a server", "nothing"],
     "about": ["src/store.py", "urn:module:store"],
     "evidence": ["measured", "https://example.org/run/1"], "idempotency_key": "k-1"},
    {"type": "architectural_decision", "iri": BASE + "d2", "summary": "Keep it in a store",
     "rationale": "files are slow", "topic": "store", "supersedes": [BASE + "d1"], "confidence": 0.85},
    {"type": "fact", "iri": BASE + "f1", "summary": "the build needs Rust 1.80", "topic": "rust",
     "valid_from": "2026-01-01T00:00:00Z", "valid_until": "2031-01-01T00:00:00Z", "timestamp": "2026-02-03T04:05:06Z"},
    {"type": "fact", "iri": BASE + "f2", "summary": "Ana's key is hunter-two-22", "detailed_explanation": "taken out"},
    {"type": "fact", "iri": BASE + "f3", "summary": "odd: tab\t, 'quote' \"é\" 😀 \u2028",
     "extra_triples": [["https://example.org/n", 7]]},
    {"type": "convention", "iri": BASE + "c1", "summary": "Sign commits", "convention_name": "signing",
     "convention_scope": "project", "enforcement_level": "strict"},
    {"type": "task", "iri": BASE + "t1", "summary": "Ship it", "assigned_to": "bob",
     "tracked_by": "https://example.org/i/1"},
    {"type": "bug", "iri": BASE + "b1", "summary": "it hangs", "severity": "high", "about": ["src/store.py"]},
    {"type": "lesson_learned", "iri": BASE + "l1", "summary": "Locks are inherited", "evidence": [BASE + "b1"]},
    {"type": "risk", "iri": BASE + "r1", "summary": "the disk may fill"},
    {"type": "unknown", "iri": BASE + "u1", "summary": "who pays for it?"},
]  # fmt: skip
#: What is asked of the root, each answer as JSON; {then} is a moment before the corrections.
ASKED = [
    *(["ask", name] for name in (
        "facts", "decisions", "active-decisions", "decision-log", "conventions", "risks", "open-tasks", "open-errors",
        "lessons", "timeline", "proposals", "conflicts", "commits", "counts",
        "policy-changes",
        "strict-conventions", "active-sessions", "elixir-modules", "agent-activity", "stale",
    )),
    ["ask", "timeline", "--include-inactive"], ["ask", "changes", "since={then}"],
    *(["ask", name, f"item={BASE}d1"] for name in ("supersessions", "derived")),
    ["ask", "decisions", "--as-of", "{then}"],
    *(["show", BASE + name, *view] for view in ([], ["--why"], ["--history"])
      for name in ("d1", "d2", "f2", "t1", "l1", "r1")),
    ["journal", "log"], ["journal", "diff", "--as-of", "{then}", "--as-of", "{now}"],
    ["journal", "verify"], ["check"], ["review", "--conflicts"], ["access", "policy", "show"],
    ["agent", "conversation", "show", "s-1"], ["agent", "working", "show"], ["agent", "memoryos", "pages"],
    *(["root", "export", *more] for more in (
        [], ["--format", "nquads"], ["--format", "jsonld"], ["--as-of", "{then}"],
    )),
    ["agent", "session", "list"], ["ontology", "show", "https://example.org/my#Incident"],
]  # fmt: skip


def environment(home):
    """Return the environment of a command: nothing of this user."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("JIDOMEM_")}
    own = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(home))
    return others | own | {"JIDOMEM_AGENT": "architect"}


def run(*words, home, given=None):
    """Return the output of a command that finds the root of *home*; it must succeed."""
    done = subprocess.run(
        [JIDOMEM, *words], cwd=home, input=given, capture_output=True, text=True, env=environment(home), check=False
    )
    if done.returncode:
        raise SystemExit(f"jidomem {' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout


def now():
    return datetime.now(UTC).isoformat()


def fill(home):
    """Fill a new root with everything it can contain; return a moment before the corrections, and the present."""
    run("init", ".", "--project", "p", home=home)
    root = home / ".jidomem"
    (root / "ontology").mkdir()
    (root / "ontology" / "my.ttl").write_text(TERMS)
    run("access", "policy", "grant", "architect", "curator", home=home)
    run("access", "policy", "set", "propose", "--kind", "risk", "--role", "Implementer", home=home)
    run("agent", "session", "start", "s-1", home=home)
    given = "".join(json.dumps({**WHO, "applies_to_project": "p", **intent}) + "\n" for intent in INTENTS)
    run("submit", "-", home=home, given=given)
    run("remember", "the index may be lost", "--type", "risk", "--agent", "bob", home=home)  # a proposal
    then = now()
    run("edit", BASE + "t1", "--set", "status=Completed", "--reason", "merged", home=home)
    run("edit", BASE + "u1", "--invalidate", "--reason", "nobody", home=home)
    run("journal", "redact", BASE + "f2", "--property", "summary", "--reason", "a key", home=home)
    run(
        "agent",
        "conversation",
        "record",
        "s-1",
        "--prompt",
        "which day?",
        "--asked-by",
        "ana",
        "--answer",
        "Friday",
        home=home,
    )
    run("agent", "working", "put", "language", "en", home=home)
    run("agent", "working", "add", "ask about the index", "--id", "w1", home=home)
    run(
        "agent",
        "memoryos",
        "add",
        "Which index do we use?",
        "Oxigraph.",
        "--about",
        "user:ana",
        "--id",
        "page-1",
        home=home,
    )
    with jidomem.open(root, project="p", agent="architect") as memory:
        code, module = memory.long_term("p"), "https://example.org/code/store"
        for lines in (1, 2):
            code.insert(
                [(module, "rdf:type", "jido:ElixirModule"), (module, "https://example.org/lines", lines)], "codebase"
            )
            if lines == 1:
                code.clear_graph("codebase")
        code.insert([("https://example.org/ci", "rdfs:label", "builds")], "system")
        memory.entries.write(WriteRequest(entry=Entry(agent_id="architect", content="we ship on Friday", id="e-1")))
    run("journal", "pack", home=home)
    run("agent", "session", "close", "s-1", home=home)
    run("remember", "said after the pack", home=home)
    return then, now()


def answers(home, moments):
    """Return the JSON output of each command of ASKED."""
    then, present = moments
    said = {}
    for words in ASKED:
        asked = [word.replace("{then}", then).replace("{now}", present) for word in words]
        lines = run("--json", *asked, home=home).replace(str(home), "{home}").splitlines()
        said[" ".join(words)] = [json.loads(line) for line in lines]
    return said


def main():
    folder = HERE / jidomem.__version__
    if folder.exists():
        raise SystemExit(f"{folder} is there, and what is frozen is never changed: raise the version first")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        moments = fill(home)
        told = {"moments": moments, "answers": answers(home, moments)}
        folder.mkdir()
        for derived in ("index", "cache"):
            shutil.rmtree(home / ".jidomem" / derived, ignore_errors=True)
        with tarfile.open(folder / "root.tar.gz", "w:gz") as archive:
            archive.add(home / ".jidomem", ".jidomem")
        (folder / "answers.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
