"""The conformance checks of stores: sound stores pass all, and each fault is reported by one check."""

import json
import math
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from jidomem.entries import Entry, InMemoryStore, RecallResult, StoreError, WriteResult, conformance
from jidomem.entries.conformance import CHECKS, ContractBroken, faults, it_keeps_namespaces_apart

PAGE = Path(__file__).parent.parent.parent / "docs" / "store-contract.md"
EVERY = [*CHECKS, it_keeps_namespaces_apart]


class TwentyLines:
    """A store with nothing but the three operations."""

    def __init__(self):
        self.kept = {}

    def recall(self, request, opts):
        found = [entry for entry in self.kept.values() if request.covers(entry)]
        return RecallResult(request, found[: request.limit])

    def write(self, request, opts):
        self.kept[request.entry.id] = request.entry
        return WriteResult(request, request.entry)

    def list_entries(self, opts):
        return list(self.kept.values())


class Hashes:
    """The part of a Redis client that a store needs: names, and hashes of bytes, without a server."""

    def __init__(self):
        self._hashes, self._lock = {}, threading.Lock()

    def hset(self, name, key, value):
        with self._lock:
            self._hashes.setdefault(name.encode(), {})[key.encode()] = value.encode()

    def hvals(self, name):
        return list(self._hashes.get(name.encode(), {}).values())


class RedisStore:
    """Entries as JSON in one hash, by id."""

    def __init__(self, client=None):
        self.client = client or Hashes()

    def write(self, request, opts):
        self.client.hset("entries", request.entry.id, json.dumps(request.entry.to_dict()))
        return WriteResult(request, request.entry)

    def recall(self, request, opts):
        covered = [entry for entry in self.list_entries(opts) if request.covers(entry)]
        return RecallResult(request, covered[: request.limit])

    def list_entries(self, opts):
        return [Entry.from_input(json.loads(value)) for value in self.client.hvals("entries")]


class VectorStore:
    """Entries by the likeness of their words to those of the query; what is not like it at all is left out."""

    def __init__(self):
        self.points = {}

    def write(self, request, opts):
        self.points[request.entry.id] = (self.embed(request.entry.content), request.entry)
        return WriteResult(request, request.entry, metadata={"model": "letters"})

    def recall(self, request, opts):
        wanted = self.embed(request.query)
        covered = [(point, entry) for point, entry in self.points.values() if request.covers(entry)]
        scored = [(sum(a * b for a, b in zip(wanted, point, strict=True)), entry) for point, entry in covered]
        best = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: -pair[0])[: request.limit]
        scores = {entry.id: score for score, entry in best}
        return RecallResult(request, [entry for _, entry in best], {"scores": scores})

    def list_entries(self, opts):
        return [entry for _, entry in self.points.values()]

    @staticmethod
    def embed(text):
        counts = [text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]
        length = math.sqrt(sum(count * count for count in counts)) or 1
        return [count / length for count in counts]


def sql_store():
    """Return the store that the page for authors of stores shows."""
    (program,) = [block for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M)
                  if "class SqlStore" in block]  # fmt: skip
    names = {}
    exec(program.replace("print(", "(faults_of_the_page := "), names)
    assert names["faults_of_the_page"] == {}
    return names["SqlStore"]


@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", [InMemoryStore, TwentyLines, RedisStore, VectorStore])
def test_a_sound_store_passes_every_check(make, check):
    check(make)  # B046, B074
    check(lambda: (make(), {"kit": "options"}))
    assert faults(make, [check]) == {}


def test_the_minimal_store_has_at_most_twenty_lines_and_no_faults():
    source = Path(__file__).read_text("utf-8")
    body = source[source.index("class TwentyLines:") : source.index("class Hashes:")].split('"""', 2)[2]

    assert len([line for line in body.splitlines() if line.strip()]) <= 20  # B046
    assert faults(TwentyLines) == {}


def test_the_documented_sql_store_passes_every_check(tmp_path):
    make = sql_store()

    assert faults(make) == {}  # B074
    store = make(tmp_path / "entries.sqlite")
    assert faults(lambda: store, [conformance.it_answers_with_results]) == {}
    assert (tmp_path / "entries.sqlite").stat().st_size > 0


class Halved:
    """No store: it cannot list."""

    recall, write = TwentyLines.recall, TwentyLines.write


class Parroting(TwentyLines):
    def recall(self, request, opts):
        return replace(super().recall(request, opts), request=replace(request, metadata={}))


class Renaming(TwentyLines):
    def write(self, request, opts):
        super().write(request, opts)
        return WriteResult(request, replace(request.entry, id="mine"))


class Substituting(TwentyLines):
    def write(self, request, opts):
        super().write(request, opts)
        return WriteResult(replace(request, metadata={}), request.entry)


class Speechless(TwentyLines):
    def write(self, request, opts):
        super().write(request, opts)


class Forgetful(TwentyLines):
    def write(self, request, opts):
        kept = {name: value for name, value in request.entry.metadata.items() if name != "tags"}
        return WriteResult(
            request, super().write(replace(request, entry=replace(request.entry, metadata=kept)), opts).entry
        )


class Numbering(TwentyLines):
    """It takes numbers of its own for ids that do not look like those it mints."""

    def write(self, request, opts):
        entry = request.entry
        stored = entry if entry.id.startswith("mem_") else replace(entry, id="mem_0")
        super().write(replace(request, entry=stored), opts)
        return WriteResult(request, entry)


class Bare(TwentyLines):
    """It lists entries without what is nested in their metadata."""

    def list_entries(self, opts):
        return [replace(entry, metadata=self.flat(entry.metadata)) for entry in self.kept.values()]

    @staticmethod
    def flat(metadata):
        return {name: value for name, value in metadata.items() if not isinstance(value, list)}


class Historical(TwentyLines):
    """It lists what was replaced, too."""

    def __init__(self):
        super().__init__()
        self.written = []

    def write(self, request, opts):
        self.written.append(request.entry)
        return super().write(request, opts)

    def list_entries(self, opts):
        return self.written


class Appending(TwentyLines):
    def write(self, request, opts):
        self.kept[len(self.kept)] = request.entry
        return WriteResult(request, request.entry)


class Stubborn(TwentyLines):
    def write(self, request, opts):
        self.kept.setdefault(request.entry.id, request.entry)
        return WriteResult(request, request.entry)


class Generous(TwentyLines):
    def recall(self, request, opts):
        return RecallResult(request, [entry for entry in self.kept.values() if request.covers(entry)])


class Stingy(TwentyLines):
    def recall(self, request, opts):
        found = super().recall(request, opts)
        return replace(found, entries=found.entries[: max(1, request.limit - 1)])


class Gossiping(TwentyLines):
    def recall(self, request, opts):
        found = [one for one in self.kept.values() if request.covers(replace(one, agent_id=request.agent_id))]
        return RecallResult(request, found[: request.limit])


class Leaking(TwentyLines):
    """With the scope of a session it gives what is of none, too."""

    def recall(self, request, opts):
        scope = request.scope == "session"
        found = [one for one in self.kept.values() if request.covers(one) or (scope and one.session_id is None)]
        return RecallResult(request, found[: request.limit])


class Absentminded(TwentyLines):
    """With the scope of a session and none named it gives all that is of the agent."""

    def recall(self, request, opts):
        lost = request.scope == "session" and request.session_id is None
        asked = replace(request, scope="agent") if lost else request
        return replace(super().recall(asked, opts), request=request)


class Neighbourly(TwentyLines):
    """With the scope of a session that holds something it gives what other sessions hold, too."""

    def recall(self, request, opts):
        found = super().recall(request, opts)
        if request.scope == "session" and found.entries:
            return replace(found, entries=[one for one in self.kept.values() if one.session_id])
        return found


class Welcoming(TwentyLines):
    """With the scope of a session that holds nothing it gives what is of the agent."""

    def recall(self, request, opts):
        found = super().recall(request, opts)
        if request.scope == "session" and request.session_id and not found.entries:
            return replace(super().recall(replace(request, scope="agent"), opts), request=request)
        return found


class Unbounded(TwentyLines):
    """With the scope of the agent and no session named it gives what is of every session."""

    def recall(self, request, opts):
        lax = request.session_id is None
        found = [one for one in self.kept.values() if request.covers(one, include_sessions=lax)]
        return RecallResult(request, found[: request.limit])


class Oversharing(TwentyLines):
    """With the scope of the agent it gives what is of every session."""

    def recall(self, request, opts):
        found = [one for one in self.kept.values() if request.covers(one, include_sessions=True)]
        return RecallResult(request, found[: request.limit])


class Reticent(TwentyLines):
    """With the scope of the agent it leaves out the session that is named."""

    def recall(self, request, opts):
        of_agent = request.scope == "agent" and request.session_id is not None
        found = [one for one in self.kept.values() if request.covers(one)]
        if of_agent and len(found) > 1:
            found = [one for one in found if one.session_id is None]
        return RecallResult(request, found[: request.limit])


class Partial(TwentyLines):
    def list_entries(self, opts):
        return [entry for entry in self.kept.values() if entry.agent_id == "kit"]


class Raising(TwentyLines):
    def recall(self, request, opts):
        if not any(entry.agent_id == request.agent_id for entry in self.kept.values()):
            raise KeyError(request.agent_id)
        return super().recall(request, opts)


class Unlisted(TwentyLines):
    def list_entries(self, opts):
        if not self.kept:
            raise LookupError("nothing is there")
        return super().list_entries(opts)


class Prefilled(TwentyLines):
    """It holds something from the start, which is of another agent and shows in nothing but its list."""

    def list_entries(self, opts):
        return super().list_entries(opts) or [Entry(id="old", agent_id="x", content="old")]


class Strict(TwentyLines):
    def recall(self, request, opts):
        if set(opts) - {"tenant"}:
            raise ValueError(f"unknown options: {sorted(opts)}")
        return super().recall(request, opts)


class Picky(TwentyLines):
    def recall(self, request, opts):
        found = super().recall(request, opts)
        return found if "kit-tenant" not in request.metadata else replace(found, entries=[])


class Meddling(TwentyLines):
    def write(self, request, opts):
        if opts:
            opts["seen"] = True
        return super().write(request, opts)


class Choosy(TwentyLines):
    def list_entries(self, opts):
        return [] if opts else super().list_entries(opts)


class Mixing(TwentyLines):
    def recall(self, request, opts):
        return replace(super().recall(replace(request, metadata={}), opts), request=request)


class Common(TwentyLines):
    """What is of no namespace is of each."""

    def recall(self, request, opts):
        anywhere = replace(request, metadata={})
        found = [
            one
            for one in self.kept.values()
            if request.covers(one) or ("namespace" not in one.metadata and anywhere.covers(one))
        ]
        return RecallResult(request, found[: request.limit])


BROKEN = [
    (Halved, conformance.it_has_the_three_operations, "…has no list_entries"),
    (Parroting, conformance.it_answers_with_results, "the result of recall has another request: "),
    (Renaming, conformance.it_answers_with_results, "write stored the entry with another id: 'mine', not 'mem_kit_a'"),
    (Substituting, conformance.it_answers_with_results, "the result of write has another request: "),
    (
        Forgetful,
        conformance.it_keeps_what_is_written,
        "recall returned the entry with another metadata: {'tenant': 't-1'}, not ",
    ),
    (
        Numbering,
        conformance.it_keeps_what_is_written,
        "recall after one write returned other ids: ['mem_0'], not ['row/42']",
    ),
    (
        Bare,
        conformance.it_keeps_what_is_written,
        "list_entries returned the entry with another metadata: {'tenant': 't-1'}, not ",
    ),
    (
        Historical,
        conformance.it_replaces_by_id,
        "list_entries after two writes of one id did not return only the newer",
    ),
    (Appending, conformance.it_replaces_by_id, "recall after two writes of one id did not return only the newer"),
    (Stubborn, conformance.it_replaces_by_id, "recall after two writes of one id did not return only the newer"),
    (
        Generous,
        conformance.it_honours_the_limit,
        "recall with limit=1 returned 4 entries: apply the limit in the store",
    ),
    (Stingy, conformance.it_honours_the_limit, "recall with limit=3 returned too few of 4 matching entries: 2, not 3"),
    (Gossiping, conformance.it_keeps_agents_apart, "recall of one agent returned entries of another: "),
    (
        Leaking,
        conformance.it_keeps_sessions_apart,
        "recall with scope='session' returned entries of no or another session: ",
    ),
    (
        Absentminded,
        conformance.it_keeps_sessions_apart,
        "…entries of no or another session, without a session_id: ['mem_kit_all'], not []",
    ),
    (
        Neighbourly,
        conformance.it_keeps_sessions_apart,
        "…entries of no or another session: ['mem_kit_s', 'mem_kit_t'], not ['mem_kit_s']",
    ),
    (
        Welcoming,
        conformance.it_keeps_sessions_apart,
        "…returned entries of no or another session: ['mem_kit_all'], not []",
    ),
    (
        Unbounded,
        conformance.it_shares_what_is_of_no_session,
        "…without a session: ['mem_kit_all', 'mem_kit_s', 'mem_kit_t'], not [",
    ),
    (
        Oversharing,
        conformance.it_shares_what_is_of_no_session,
        "recall with scope='agent' returned other entries than those without",
    ),
    (
        Reticent,
        conformance.it_shares_what_is_of_no_session,
        "…without a session and those of the named one: ['mem_kit_all'], not ",
    ),
    (Partial, conformance.it_lists_everything, "list_entries did not return exactly all entries of the store"),
    (Raising, conformance.it_finds_nothing_without_an_error, "recall of an empty store raised: "),
    (Unlisted, conformance.it_finds_nothing_without_an_error, "list_entries of an empty store raised: "),
    (
        Prefilled,
        conformance.it_finds_nothing_without_an_error,
        "list_entries of a new store returned entries: ['old'], not []",
    ),
    (
        Strict,
        conformance.it_ignores_what_it_does_not_know,
        "unknown options or metadata raised: Strict could not recall: ",
    ),
    (
        Picky,
        conformance.it_ignores_what_it_does_not_know,
        "unknown options or metadata changed the recalled entries: [], not ['mem_kit_a']",
    ),
    (
        Choosy,
        conformance.it_ignores_what_it_does_not_know,
        "unknown options changed the listed entries: [], not ['mem_kit_a']",
    ),
    (Meddling, conformance.it_ignores_what_it_does_not_know, "the options were changed: "),
    (Mixing, conformance.it_keeps_namespaces_apart, "recall in a namespace returned entries outside it: "),
    (
        Common,
        conformance.it_keeps_namespaces_apart,
        "…entries outside it: ['mem_kit_none', 'mem_kit_red'], not ['mem_kit_red']",
    ),
]


@pytest.mark.parametrize(("make", "check", "message"), BROKEN, ids=[make.__name__ for make, *_ in BROKEN])
def test_each_faulty_store_fails_one_check_with_its_message(make, check, message):
    reported = faults(make, EVERY)

    assert list(reported) == [check.__name__]  # B072
    text = reported[check.__name__]
    assert message[1:] in text if message.startswith("…") else text.startswith(message)
    with pytest.raises((ContractBroken, StoreError)):
        check(make)


def test_a_store_that_ignores_the_limit_fails_the_check_of_the_limit():
    assert list(faults(Generous)) == ["it_honours_the_limit"]  # B043, B072
    assert (
        faults(Generous)["it_honours_the_limit"]
        == "recall with limit=1 returned 4 entries: apply the limit in the store"
    )


def test_each_check_has_a_faulty_store():
    assert {check for _, check, _ in BROKEN} == set(EVERY)


def test_a_store_whose_write_returns_none_fails_the_check_of_results():
    reported = faults(Speechless)

    assert reported["it_answers_with_results"] == "Speechless answered write with a NoneType, not a WriteResult"
    assert "it_has_the_three_operations" not in reported


def test_the_check_of_namespaces_is_optional():
    assert it_keeps_namespaces_apart not in CHECKS
    assert faults(Mixing) == {}
    assert all(check.__doc__ for check in EVERY)
