"""The corpus of crafted memories, each with its expected findings and their lines."""

import re
from datetime import timedelta
from pathlib import Path

from conftest import START, fixed_sources

import jidomem
from jidomem.base.clock import format_timestamp
from jidomem.check.sources import read
from jidomem.journal.commit import build
from jidomem.journal.journal import FileJournal, Stream

CASES = Path(__file__).parent.parent / "cases" / "check"
_EXPECTATION = re.compile(r"#! (.+)$")


def turtle_cases():
    """Every crafted Turtle file."""
    return sorted(CASES.glob("*.ttl"))


def expected(path):
    """The expected findings of a file: each is noted as `#! severity Rule, ...` at the end of its line."""
    findings = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        match = _EXPECTATION.search(line)
        for each in match[1].split(", ") if match else ():
            findings.append((number, *each.split()))
    return sorted(findings)


def told(report):
    """The findings of a report, in the form of `expected`."""
    return sorted((problem.line, problem.severity, problem.name) for problem in report.problems)


PREFIXES = """
@prefix jido: <https://jido.ai/ontology#> .
@prefix memory: <https://jido.ai/memory/> .
@prefix agent: <https://jido.ai/agents/> .
@prefix session: <https://jido.ai/sessions/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
STREAM = Stream("p")


def journal_cases():
    """Every crafted journal."""
    return sorted((CASES / "journal").glob("*.json"))


def play(root, case):
    """Make the journal of a case: intents through the writer, Turtle without it, then the changes of the files.

    Return the names of the commit files in the order they were written.
    """
    sources = fixed_sources()
    with jidomem.open(root, sources=sources) as memory:
        for each in case["intents"]:
            memory.writer.submit_intent("p", each)
    if "warn" in case:
        (root / "config.toml").write_text('project = "p"\n[conflicts]\ndecision = "warn"\n')
        with jidomem.open(root, sources=sources) as memory:
            for each in case["warn"]:
                memory.writer.submit_intent("p", each)
    journal = FileJournal(root)
    for number, text in enumerate(case.get("raw", ())):
        append(journal, text, number)
    files = sorted(journal.path(STREAM).glob("*.ttl"))
    if case.get("pack"):
        journal.seal(STREAM)
    if "edit" in case:
        files[0].write_text(files[0].read_text("utf-8").replace(*case["edit"]), "utf-8")
    if "remove" in case:
        files[case["remove"] - 1].unlink()
    if "cut" in case:
        files[case["cut"] - 1].write_bytes(files[case["cut"] - 1].read_bytes()[:-40])
    return files


def append(journal, turtle, number=0, moment=None):
    """Append Turtle as a commit that no writer judged, of *moment*."""
    with journal.lock(STREAM) as version:
        commit = build(
            graph=STREAM.graph,
            parents=version,
            recorded_at=format_timestamp(moment or START + timedelta(days=1, seconds=number)),
            committer="https://jido.ai/agents/memory-writer",
            ontology_version="0.1.0",
            body=read("raw", (PREFIXES + turtle).encode()),
            nonce=bytes([number]) * 32,
        )
        journal.append(STREAM, version, commit)
