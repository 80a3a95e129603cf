"""Why a memory is there: who said it and when, on what it rests, which rules judged it, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jidomem import rules
from jidomem.anchor import anchors_of
from jidomem.errors import NotFound
from jidomem.excerpt import excerpt
from jidomem.query import FOREVER, to_term
from jidomem.read.functions import Rows
from jidomem.read.records import Records
from jidomem.read.revisions import Revisions, node_texts
from jidomem.schema import Schema
from jidomem.terms import bare, iri, literal
from jidomem.vocab import jido

#: Tells, of a project's memory, when and to whom it was shown by a moment.
Shown = Callable[[str, str, str], Rows]
#: How many memories that were concluded from one are listed.
MOST = 1_000
#: What is told of a memory as it stands in it: name -> property.
_SAID = {
    "summary": "summary", "rationale": "rationale", "explanation": "detailedExplanation", "reason": "revisionReason",
    "confidence": "hasConfidence", "timestamp": "hasTimestamp",
    "valid_from": "validFrom", "valid_until": "validUntil", "expires_on": "expiresOn",
}  # fmt: skip
_COMMITTED = (
    f"SELECT ?committer ?ontology {{ %s {jido('committer')} ?committer ; {jido('ontologyVersion')} ?ontology }}"
)
_ITEMS = f"SELECT DISTINCT ?node {{ VALUES ?node {{ %s }} ?node {jido('hasAssertionStatus')} ?status }}"
_REVIVALS = f"""SELECT ?node {{ ?node {jido("revives")} %s ; {jido("recordedAt")} ?at FILTER(?at <= %s) }}
ORDER BY ?at ?node"""


def _sources(said: dict[str, list[str]]) -> Rows:
    """Return the file, and the line unless it is a record, that a memory was imported from."""
    line = next(iter(said.get("sourceLine", ())), None)
    return [{"path": each.path, "line": line} for each in anchors_of(map(literal, said.get("sourceBlob", ())))]


class Why:
    """Explains memories of one project as they were known at one moment."""

    def __init__(
        self, reader: Records, schema: Schema, shown: Shown | None, project: str, *, as_of: object, valid_at: object
    ) -> None:
        """Ask *reader*; *schema* has the rules, and *shown* tells what was shown."""
        self._reader = reader
        self._schema = schema
        self._shown = shown
        self._project = project
        self._as_of, self._valid_at = as_of, valid_at
        self._moment = to_term(FOREVER if as_of is None else as_of, "dateTime", "as_of")

    def explain(self, memory_id: str) -> dict[str, Any]:
        """Return what explains one memory as plain values; raises what `get_memory` raises."""
        item = self._reader.resolve(self._project, memory_id, as_of=self._as_of)
        found = self._reader.get_memory(self._project, item, as_of=self._as_of, valid_at=self._valid_at)
        said, committed = found["properties"], self._committed(found["commit"])
        derived = self._asked("derived", item, limit=MOST + 1)
        return {
            **{name: found[name] for name in ("iri", "class", "status")},
            **{name: said.get(prop, [None])[0] for name, prop in _SAID.items()},
            "excerpt": excerpt(said),
            "asserted_by": said.get("assertedBy", []),
            "asserted_in": said.get("assertedIn", []),
            "recorded_at": found["recorded_at"],
            "source": _sources(said),
            "commit": found["commit"],
            "committer": committed.get("committer"),
            "evidence": self._evidence(said.get("derivedFrom", [])),
            "judged_by": self._judged(found, committed.get("ontology")),
            "replaced": self._replaced(item, said),
            "replaced_by": self._linked(found, ("superseded_by", "invalidated_by")),
            "revived_by": [self._told(other) for other in self._revivals(item)],
            "in_its_place": self._latest(found),
            "derived": [{"iri": row.pop("derived"), **row} for row in derived[:MOST]],
            "more_derived": len(derived) > MOST,
            "conflicts": [{"iri": row.pop("other"), **row} for row in self._asked("disagreements", item)],
            "shown": None if self._shown is None else self._shown(self._project, item, bare(self._moment)),
        }

    def _asked(self, name: str, item: str, **options: Any) -> Rows:
        moments = {"as_of": self._as_of, "valid_at": self._valid_at}
        return self._reader.ask(name, project=self._project, item=item, **moments, **options)

    def _committed(self, commit: str | None) -> dict[str, Any]:
        """Return who committed, and by which version of the ontology; nothing of what has no commit."""
        text = _COMMITTED % iri(f"urn:jido:commit:{commit}")
        return next(iter(self._reader.select(self._project, text) if commit else []), {})

    def _judged(self, found: dict[str, Any], ontology: str | None) -> dict[str, Any]:
        """Return the rules that speak about a memory: those there are now, whose version may be a later one."""
        classes = self._schema.ancestors(jido(found["class"]))
        found_rules = rules.about(self._schema.rules, classes, [*map(jido, found["properties"])])
        return {
            "judge": self._schema.judge_name,
            "ontology": ontology,
            "rules_of": self._schema.version,
            "rules": [{"rule": rule.shape, "severity": rule.severity, "message": rule.message} for rule in found_rules],
        }

    def _evidence(self, named: list[str]) -> Rows:
        """Return what a memory rests on: memories as they stand, texts, what was said, and what has an IRI alone."""
        values = " ".join(map(iri, named))
        rows = self._reader.select(self._project, _ITEMS % values) if named else []
        items = {row["node"] for row in rows}
        texts = node_texts(self._reader, self._project, named)
        return [self._told(node) if node in items else {"iri": node, "text": texts.get(node)} for node in named]

    def _linked(self, said: dict[str, list[str]], names: Iterable[str]) -> Rows:
        return [{"how": how, **self._told(other)} for how in names for other in said.get(how, [])]

    def _replaced(self, item: str, said: dict[str, list[str]]) -> Rows:
        """Return what *item* replaced, each with the reason for which it did."""
        rows = self._linked(said, ("supersedes", "invalidates", "revives"))
        reason = Revisions(self._reader, self._project, self._as_of).of(item)["reason"] if rows else None
        return [{**row, "reason": reason} for row in rows]

    def _revivals(self, item: str) -> list[str]:
        """Return what had revived a memory by then."""
        rows = self._reader.select(self._project, _REVIVALS % (iri(item), self._moment))
        return [row["node"] for row in rows]

    def _told(self, item: str) -> dict[str, Any]:
        """Return what one memory is, in short; all but its IRI is None for what is not there."""
        try:
            found = self._reader.get_memory(self._project, item, as_of=self._as_of)
        except NotFound:
            found = {"class": None, "status": None, "properties": {}}
        said = found["properties"]
        return {
            "iri": item,
            "class": found["class"],
            "status": found["status"],
            "summary": said.get("summary", [None])[0],
            "reason": Revisions(self._reader, self._project, self._as_of).of(item)["reason"],
            "asserted_by": said.get("assertedBy", []),
        }

    def _latest(self, found: dict[str, Any]) -> str | None:
        """Return what is in force at the end of the chain of successors; None for what is so itself, or has none."""
        seen = {found["iri"]}
        while (after := next(iter(found["superseded_by"]), None)) is not None and after not in seen:
            seen.add(after)
            found = self._reader.get_memory(self._project, after, as_of=self._as_of)
        return found["iri"] if len(seen) > 1 and found["status"] == "active" else None
