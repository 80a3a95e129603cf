"""The sections of a briefing, read from the lists of a project."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from shlex import quote
from typing import Any

from jidomem.base.clock import json_value
from jidomem.base.words import excerpt, quoted, quoted_name, shortened, slug
from jidomem.errors import InvalidRequest, NotFound
from jidomem.index.store import OxigraphIndex
from jidomem.rdf import vocab
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import BASE, REDACTED, jido, local_name, short_id
from jidomem.read import memory_detail
from jidomem.read.reader import MemoryReader
from jidomem.recall.briefing import (
    BUDGET,
    SECTIONS,
    Briefing,
    BriefingEntry,
    BriefingNote,
    BriefingResult,
    at_moment,
    fit_to_budget,
    governing_command,
    recall_command,
)
from jidomem.recall.governing import anchors_by_item, rank, related_memories
from jidomem.recall.nearness import FORCES, disagreement, is_about, is_general, nearness
from jidomem.records.active import ACTIVE, DUE, FINISHED, OUTCOME, UNTIL, dates_text, outcome_text, state_text
from jidomem.records.entry import fault_of_text
from jidomem.records.file_anchor import Anchor
from jidomem.records.named_query import FOREVER, judged_at, to_term
from jidomem.records.recall import DifferingMemory
from jidomem.repository.freshness import GONE, UNCHANGED, Freshness, freshness
from jidomem.repository.worktree import Worktree
from jidomem.write.canonical import is_absolute

#: The most characters of a summary, and of the excerpt of a decision.
MAX_SUMMARY_CHARS, MAX_EXCERPT_CHARS = 320, 200
#: A list has one candidate per TOKENS_AN_ENTRY tokens of the budget, at most MOST_CANDIDATES.
TOKENS_AN_ENTRY, MOST_CANDIDATES = 30, 600
#: The most conventions that are ranked, and the facts: at least so many, or so many for each candidate of a list. They
#: are those recorded last, those about the files, and those recalled for the task.
MAX_RANKED, MIN_FACTS, FACTS_A_CANDIDATE = 10_000, 300, 5
#: The most memories recalled for the task.
MAX_RELATED = 30
#: The most files of a briefing; each needs a query of its own.
MOST_FILES = 50
#: An entry before it is built: the memory, its label and notes.
_SectionLine = tuple[str, str, Sequence[str]]
#: The sort key of a memory about other places than the files: behind those about one of them or about no place.
_ELSEWHERE = (-1, 0)
#: The source type of memories imported from notes.
_DOCUMENT = "ExternalDocumentSource"
#: The sort key of a memory that names no place.
_EVERYWHERE = (0, 0)
_SEVERITIES = ("critical", "high", "medium", "low", None)
_AGAINST = "against "
_SHOWN_DATES = {DUE: "expiresOn", UNTIL: "validUntil"}
_DETAILS = f"""SELECT ?item ?summary ?recorded ?about ?blob ?line {{{{ VALUES ?item {{{{ {{items}} }}}}
?item {jido("summary")} ?summary ; {jido("recordedAt")} ?recorded
OPTIONAL {{{{ ?item {jido("about")} ?about }}}} OPTIONAL {{{{ ?item {jido("sourceBlob")} ?blob }}}}
OPTIONAL {{{{ ?item {jido("sourceLine")} ?line }}}} }}}}"""
#: The bytes of names in one query; with the longest name it stays below the limit of a query.
_NAMES_A_QUERY = 32 * 1024
#: Words of an advisory convention that is a rule.
_BINDS = re.compile(
    r"\b(?:must|never|always|do not|don['’]t|shall|mandatory|forbidden|not allowed|required?)\b", re.IGNORECASE
)
#: Words of a rule that forbids something.
_FORBIDS = re.compile(
    r"\b(?:(?:do|must|shall|should|may|can) not|cannot|never|(?:do|must|should|ca)n['’]t|forbidden|not allowed)\b",
    re.IGNORECASE,
)
_SETTLER = f"?item {jido('settledBy')} ?settler"
_LAST = f"""SELECT (MAX(?recorded) AS ?last) WHERE {{{{ VALUES ?by {{{{ {{agent}} }}}}
{{{{ ?item {jido("assertedBy")} ?by MINUS {{{{ {_SETTLER} }}}} }}}} UNION {{{{ ?item {jido("settledBy")} ?by }}}}
?item {jido("recordedAt")} ?recorded FILTER(?recorded <= {{moment}}) }}}}"""
_NOTES = f"""SELECT (COUNT(DISTINCT ?item) AS ?count) WHERE {{{{ ?item {jido("quarantined")} true ;
{jido("hasAssertionStatus")} {jido("Proposed")} ; {jido("sourceDigest")} ?digest ; {jido("recordedAt")} ?at
FILTER(?at <= {{moment}}) FILTER NOT EXISTS {{{{ ?item {jido("supersededBy")}|{jido("invalidatedBy")} ?end .
?end {jido("hasAssertionStatus")} {jido("Asserted")} ; {jido("recordedAt")} ?ended
FILTER(?ended <= {{moment}}) }}}} }}}}"""
#: The sessions among which the last one of an agent is looked for, and the memories of it that are counted.
_SESSIONS, _COUNTED = 200, 100


class BriefingBuilder:
    """The builder of one briefing: reads the sections from the lists of a project."""

    def __init__(
        self,
        reader: MemoryReader,
        index: OxigraphIndex,
        tree: Worktree | None,
        project: str,
        *,
        now: datetime,
        agent: str | None = None,
        role: str | None = None,
        about: Sequence[str] = (),
        related: Sequence[str] = (),
        task: str = "",
        as_of: object = None,
        valid_at: object = None,
        contrasts: Callable[[Collection[str]], Mapping[str, Sequence[DifferingMemory]]] = lambda items: {},
    ) -> None:
        """Prepare the briefing of *agent*, a plain name or an IRI, in a *role*, about the files *about*, at the moment
        *now*.

        *related* are the memories recalled for its *task*, best first; *contrasts* finds the near memories from which
        some differ in a value. Raises InvalidRequest for an agent that is no text, and more than MOST_FILES files.
        """
        self._reader, self._index, self._tree, self._project = reader, index, tree, project
        self._moment: dict[str, Any] = {"as_of": as_of, "valid_at": valid_at}
        given = {name: moment for name, moment in self._moment.items() if moment is not None}
        self._given: dict[str, str] = json_value(given)
        self._moved: dict[Anchor, Freshness] = {}
        self._as_of = to_term(FOREVER if as_of is None else as_of, "dateTime", "as_of")
        self._now = judged_at(now, as_of, valid_at)
        if agent not in (None, "") and (fault := fault_of_text(agent)):
            raise InvalidRequest(f"agent {fault}", hint="give the name of the agent, or leave it out")
        self._agent = None if agent is None else agent if is_absolute(agent) else f"{BASE}agents/{slug(agent)}"
        self._role = _role(role) if role else self._declared_role()
        if isinstance(about, str) or not isinstance(about, Sequence) or any(map(fault_of_text, about)):
            raise InvalidRequest(f"about={about!r:.200} is not a list of texts", hint='give about=["src/db.py"]')
        self._about = tuple(dict.fromkeys(about))
        self._related = {name: place for place, name in enumerate(related)}
        self._task = task
        if len(self._about) > MOST_FILES:
            raise InvalidRequest(
                f"a briefing is about {MOST_FILES} files at most, not {len(self._about):,}",
                hint="name those that are worked on next in about",
            )
        self._looked_at = MOST_CANDIDATES
        self._find_contrasts, self._near = contrasts, list[str]()
        self._listed, self._first = set[str](), set[str]()

    def brief(self, budget: int = BUDGET) -> Briefing:
        """Return the briefing within *budget* tokens; raises InvalidRequest if that is too small."""
        if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
            hint = f"give budget_tokens={BUDGET}, or leave it out"
            raise InvalidRequest(f"budget_tokens={budget!r:.200} is not a positive whole number", hint=hint)
        self._looked_at = min(MOST_CANDIDATES, 1 + budget // TOKENS_AN_ENTRY)
        files = self._files()
        binding, advised, general = self._conventions()
        sections: dict[str, BriefingResult | None] = {
            "rules": self._strict(),
            "binding": binding,
            "advised": advised,
            "files": files,
            "related": self._recalled(),
            "tasks": self._tasks(),
            "errors": self._errors(),
            "decisions": self._page("recent-decisions", "decision", "decision"),
            "conflicts": self._conflicts(),
            "questions": self._questions(),
            "lessons": self._page("recent-lessons", "lesson", "lesson"),
            "session": self._session_summary(),
            "news": self._news(),
            "conventions": general,
            "facts": self._facts(),
        }
        subject = {"agent": self._agent, "role": self._role, "about": list(self._about)}
        shown = {
            name: replace(section, ask=at_moment(section.ask or SECTIONS[name][1], self._given))
            for name, section in sections.items()
            if section is not None
        }
        notes = [*self._session_notes(), *self._pending_notes()]
        return fit_to_budget(self._project, shown, role=self._role, budget=budget, about=subject, notes=notes)

    def _declared_role(self) -> str | None:
        """Return the declared role of the agent if there is exactly one."""
        if self._agent is None:
            return None
        graph = vocab.graph_iri(self._project)
        roles = {local_name(o) for _, _, o in self._index.triples(graph, iri(self._agent), jido("hasRole"))}
        return roles.pop() if len(roles) == 1 else None

    def _rows(self, name: str, **params: Any) -> tuple[list[dict[str, Any]], bool]:
        page = self._reader.ask_page(name, project=self._project, limit=self._looked_at, **self._moment, **params)
        return page.rows, page.cursor is not None

    def _strict(self) -> BriefingResult:
        rows, more = self._newest("strict-conventions", self._looked_at)
        ranked = self._ranked({row["conv"] for row in rows})
        return self._result([(row["item"], "strict convention", ()) for row in ranked], more)

    def _page(self, name: str, column: str, label: str) -> BriefingResult:
        rows, more = self._rows(name)
        return self._result([(row[column], label, ()) for row in rows], more)

    def _result(self, entries: Sequence[_SectionLine], more: bool = False, limit: int | None = None) -> BriefingResult:
        """Return the section of the given entries: IRI, label and notes of each."""
        names = [name for name, _, _ in entries]
        self._listed.update(names)
        self._first.update(names[: self._looked_at])
        return BriefingResult(len(entries), lambda at: self._entry(*entries[at]), more, limit=limit if more else None)

    def _recalled(self) -> BriefingResult | None:
        """Return the memories recalled for the task, with the recall command."""
        if not self._related:
            return None
        return replace(
            self._result([(name, "", ()) for name in self._related]), ask=recall_command(self._task, MAX_RELATED)
        )

    def _conventions(self) -> tuple[BriefingResult, BriefingResult, BriefingResult]:
        """Return the required conventions, the advisory ones in words of rules, and the other advisory ones.

        The nearest to the files come first, then those recalled for the task, then prohibitions that apply everywhere,
        then the newest.
        """
        rows, more = self._newest("conventions", MAX_RANKED)
        levels = {row["conv"]: local_name(row["level"]) for row in rows if local_name(row["level"]) != "Strict"}
        required: list[_SectionLine] = []
        worded: list[_SectionLine] = []
        others: list[_SectionLine] = []
        for row in self._ranked(levels):
            is_required = levels[row["item"]] == "Required"
            kind = required if is_required else worded if _BINDS.search(row["summary"]) else others
            kind.append((row["item"], f"{'required' if is_required else 'advisory'} convention", ()))
        binding, advised = (self._result(each, more and bool(each), MAX_RANKED) for each in (required, worded))
        return binding, advised, self._result(others, more, MAX_RANKED)

    def _facts(self) -> BriefingResult:
        count = max(MIN_FACTS, FACTS_A_CANDIDATE * self._looked_at)
        rows, more = self._newest("facts", count)
        ranked = self._ranked({row["fact"] for row in rows})
        return self._result([(row["item"], "fact", ()) for row in ranked], more, count)

    def _newest(self, name: str, count: int) -> tuple[list[dict[str, Any]], bool]:
        """Return the rows of a list about the memories that are ranked, and whether it has others."""
        return self._reader.newest(name, self._project, count, [*self._near, *self._related], **self._moment)

    def _ranked(self, items: Collection[str]) -> list[dict[str, Any]]:
        """Return *items*: the nearest to the files, those related to the task, prohibitions that apply everywhere, the
        newest.

        If there are files, memories about other places come last. Those of one commit have the order of the file they
        were imported from.
        """
        entries: dict[str, dict[str, Any]] = {}
        near: dict[str, tuple[int, int]] = {}
        placed: set[str] = set()
        for row in self._details(items):
            name, place = row["item"], str(row["about"] or "")
            entries[name] = row
            if not is_general(place):
                placed.add(name)
            near[name] = max(near.get(name, _ELSEWHERE), self._nearness(place))
        ranked = sorted(entries.values(), key=_in_file)
        ranked.sort(key=lambda row: str(row["recorded"]), reverse=True)
        ranked.sort(key=lambda row: row["item"] in placed or not _FORBIDS.search(row["summary"]))
        ranked.sort(key=lambda row: self._related.get(row["item"], len(self._related)))
        ranked.sort(key=lambda row: near[row["item"]], reverse=True)
        return ranked

    def _details(self, items: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of *items*, in several queries if their names are too long for one."""
        names, length = [], 0
        for number, name in enumerate(map(iri, items), 1):
            names.append(name)
            length += len(name.encode()) + 1
            if length > _NAMES_A_QUERY or number == len(items):
                yield from self._reader.select(self._project, _DETAILS.format(items=" ".join(names)))
                names, length = [], 0

    def _files(self) -> BriefingResult | None:
        """Return the memories that govern the files and others about them, the nearest first, then the most binding."""
        if not self._about:
            return None
        ranked = rank(self._reader, self._index, self._tree, self._project, self._about, **self._moment)
        ranked = [one for one in ranked if one.force != "strict" or one.row["about"]]
        ranked.sort(key=lambda one: FORCES.index(one.force))
        ranked.sort(key=lambda one: nearness(one.path, one.row["about"]), reverse=True)
        near: dict[str, tuple[int, int]] = {}
        entries: dict[str, _SectionLine] = {}
        for one in ranked:
            near.setdefault(one.item, nearness(one.path, one.row["about"]))
            entries.setdefault(one.item, (one.item, f"{one.force} for {quoted_name(one.path)}", ()))
        if self._moment["as_of"] is None:
            for other in related_memories(self._reader, self._project, self._about, entries):
                if not other.waits:
                    near[other.item] = self._nearness(other.about)
                    entries[other.item] = (other.item, f"{other.kind} about {quoted_name(other.about)}", ())
        self._near = [*entries]
        nearest_first = sorted(entries, key=near.__getitem__, reverse=True)
        result = self._result([entries[name] for name in nearest_first])
        urgent = sum(distance > _EVERYWHERE for distance in near.values())
        return replace(result, ask=governing_command(self._about), urgent=urgent)

    def _nearness(self, place: str) -> tuple[int, int]:
        distances = [nearness(path, place) for path in self._about if is_about(place, path)]
        return max(distances, default=_ELSEWHERE if self._about and not is_general(place) else _EVERYWHERE)

    def _tasks(self) -> BriefingResult:
        own: list[dict[str, Any]] = []
        if self._agent:
            own = self._reader.ask("tasks-of-agent", project=self._project, agent=self._agent, **self._moment)
        own_tasks = {row["task"] for row in own}
        late, _ = self._rows("open-tasks", actionable_only=True, overdue_only=True)
        rows, more = self._rows("open-tasks", actionable_only=True)
        rows = [*{row["task"]: row for row in (*own, *late, *rows)}.values()]
        is_late = {row["task"] for row in late}
        rows.sort(key=lambda row: (row["task"] not in own_tasks, row["task"] not in is_late))
        entries = [(row, "yours" if row["task"] in own_tasks else "") for row in rows]

        def entry(at: int) -> BriefingEntry:
            row, mark = entries[at]
            notes = [mark] if mark else []
            notes += [f"blocked by {short_id(other)}" for other in self._blockers(row["task"])]
            return self._entry(row["task"], f"task, {local_name(row['status'])}", notes)

        return BriefingResult(len(entries), entry, more)

    def _blockers(self, task: str) -> list[str]:
        graph = vocab.graph_iri(self._project)
        named = [o[1:-1] for _, _, o in self._index.triples(graph, iri(task), jido("blockedBy"))]
        blockers = []
        for other in sorted(named):
            blocker, seen = self._memory_or_none(other), {other}
            while blocker and blocker["superseded_by"] and blocker["superseded_by"][0] not in seen:
                seen.add(blocker["superseded_by"][0])
                blocker = self._memory_or_none(blocker["superseded_by"][0])
            states = [local_name(state) for state in blocker["properties"].get("hasTaskStatus", [])] if blocker else []
            if blocker and blocker["status"] == "active" and not set(states) & set(FINISHED):
                blockers.append(blocker["iri"])
        return blockers

    def _errors(self) -> BriefingResult:
        severe, further = self._rows("severe-errors")
        rows, more = ([], True) if further else self._rows("open-errors", include_deferred=False)
        known = {row["err"] for row in severe}
        severe += [row for row in rows if row["err"] not in known]
        severe.sort(key=lambda row: _SEVERITIES.index(row["severity"]) if row["severity"] in _SEVERITIES else 4)
        labels = (f"error, {quoted_name(row['severity'] or 'no')} severity" for row in severe)
        return self._result([(row["err"], label, ()) for row, label in zip(severe, labels, strict=True)], more)

    @cached_property
    def _disagreements(self) -> list[dict[str, Any]]:
        return self._reader.ask("conflicts", project=self._project, **self._moment)

    @cached_property
    def _rivals(self) -> Mapping[str, list[str]]:
        rivals: dict[str, set[str]] = {}
        for row in self._disagreements:
            rivals.setdefault(row["a"], set()).add(row["b"])
            rivals.setdefault(row["b"], set()).add(row["a"])
        return {name: sorted(others) for name, others in rivals.items()}

    def _conflicts(self) -> BriefingResult:
        entries: list[_SectionLine] = []
        for row in self._disagreements:
            entries.append((row["a"], row["kind"].replace("_", " "), [f"{_AGAINST}{short_id(row['b'])}"]))
        rows, more = self._rows("proposals", trusted_only=True)
        for row in {row["item"]: row for row in rows}.values():
            against = [f"{_AGAINST}{short_id(row['conflict'])}"] if row["conflict"] else []
            entries.append((row["item"], "proposal", against))
        return self._result(entries, more)

    def _questions(self) -> BriefingResult:
        """Return the memories that are due for review, the longest due first."""
        rows = self._reader.longest_due(self._project, self._looked_at, **{**self._moment, "valid_at": self._now})
        rows = [row for row in rows if row["summary"]]  # without redacted memories
        rows.sort(key=lambda row: (str(row["due"] or "9999"), row["item"]))
        entries = {row["item"]: (row["item"], str(row["reason"]).replace("_", " "), ()) for row in rows}
        return self._result([*entries.values()][: self._looked_at], len(rows) >= self._looked_at)

    def _news(self) -> BriefingResult | None:
        """Return the memories of others since the last one of the agent, or None if it has none."""
        if self._agent is None:
            return None
        text = _LAST.format(agent=iri(self._agent), moment=self._as_of)
        last = self._reader.select(self._project, text)[0]["last"]
        if last is None:
            return None
        rows, more = self._rows("timeline")
        new = {row["item"]: row for row in rows if row["recorded"] > last and row["agent"] != self._agent}
        return self._result([(name, local_name(row["kind"]), ()) for name, row in new.items()],
                           more and len(new) == self._looked_at)  # fmt: skip

    @cached_property
    def _last_session(self) -> dict[str, Any] | None:
        """Return the last session of the agent that has ended, with its memories (`rows`); None if there is none."""
        if self._agent is None:
            return None
        return last_session(self._reader, self._project, self._agent, **self._moment)

    def _session_summary(self) -> BriefingResult | None:
        """Return the newest memory of the last session that calls itself its summary, if there is one."""
        rows = self._last_session["rows"] if self._last_session else []
        named = (row for row in rows if {"session", "summary"} <= {*re.findall(r"\w+", row["summary"].casefold())})
        row = next(named, None)
        return None if row is None else self._result([(row["item"], local_name(row["kind"]).lower(), ())])

    def _session_notes(self) -> Iterator[BriefingNote]:
        if (last := self._last_session) is not None:
            name, count = local_name(last["session"]), len(last["rows"])
            more = "" if count < _COUNTED else " or more"
            memories = f"{count}{more} {'memory' if count == 1 else 'memories'}"
            span = f"{last['start']:%Y-%m-%d %H:%M} to {last['end']:%Y-%m-%d %H:%M} UTC"
            call, params = "ask memories-of-session", [f"params {json.dumps({'session': name})}"]
            params += [f"{parameter} {value}" for parameter, value in self._given.items()]
            text = f"your last session, {quoted_name(name)}, {span}, {memories}"
            command = at_moment(f"jidomem {call} session={quote(name)}", self._given)
            yield BriefingNote(text, command, f"{call} ({', '.join(params)})")

    def _pending_notes(self) -> Iterator[BriefingNote]:
        """Yield the note on imported notes that are not shown, as they wait for a curator."""
        (row,) = self._reader.select(self._project, _NOTES.format(moment=self._as_of))
        if count := row["count"]:
            text = f"{count:,} imported {'notes wait' if count > 1 else 'note waits'} for a curator"
            command = at_moment("jidomem ask proposals", self._given) if self._given else "jidomem review"
            yield BriefingNote(text, command, "ask proposals")

    def _freshness(self, name: str) -> list[Freshness]:
        """Return the state of the files of a memory; git is called once for the missing files of all first entries."""
        if self._tree is None:
            return []
        tree, anchors = self._tree, anchors_by_item(self._index, self._project, [name])[name]
        there = freshness(tree, (anchor for anchor in anchors if tree.has(anchor.path)))
        if any(anchor not in there and anchor not in self._moved for anchor in anchors):
            names = [name] if self._moved else [*self._first | {name}]
            several = chain.from_iterable(anchors_by_item(self._index, self._project, names).values())
            self._moved |= freshness(tree, (anchor for anchor in several if not tree.has(anchor.path)))
        states = {**self._moved, **there}
        return [states.get(anchor) or Freshness(anchor.path, GONE, None) for anchor in anchors]

    @cached_property
    def _contrasts(self) -> dict[str, Sequence[DifferingMemory]]:
        """Return each memory looked at, with those from which it differs in a value.

        Those of the first entries are read together, once all sections are there.
        """
        return {**dict.fromkeys(self._first, ()), **self._find_contrasts(self._first)}

    def _differing(self, name: str) -> Sequence[DifferingMemory]:
        if self._moment["as_of"] is not None or name not in self._listed:
            return ()
        if name not in self._contrasts:
            self._contrasts[name] = self._find_contrasts({name}).get(name, ())
        return self._contrasts[name]

    def _memory_or_none(self, name: str) -> dict[str, Any] | None:
        try:
            return memory_detail.load_memory(self._index, self._project, name, self._moment["as_of"])
        except NotFound:
            return None

    def _entry(self, name: str, label: str, notes: Sequence[str]) -> BriefingEntry:
        memory = memory_detail.load_memory(self._index, self._project, name, self._moment["as_of"])
        properties = {key: values[0] for key, values in memory["properties"].items() if values}
        summary, is_cut = shortened(str(properties.get("summary", REDACTED)), MAX_SUMMARY_CHARS)
        text = quoted(summary, MAX_SUMMARY_CHARS)[0]
        is_explained = not properties.keys().isdisjoint(("rationale", "hasErrorStatus"))
        answer = excerpt(memory["properties"], MAX_EXCERPT_CHARS) if is_explained else ""
        label = label or memory["type"] or memory["class"]
        files = self._freshness(name)
        stale = [
            f"{quoted_name(state_of_file.path)} {state_of_file.state}"
            for state_of_file in files
            if state_of_file.state != UNCHANGED
        ]
        agent, source = (
            local_name(str(properties.get("assertedBy", ""))),
            local_name(str(properties.get("hasSourceType", ""))),
        )
        states = [local_name(str(properties[link])) for link in memory_detail.STATES_OF_WORK if link in properties]
        outcome = memory_detail.outcome(self._index, self._project, name, self._moment["as_of"])
        state = "".join(state for state in states if state not in label and not outcome)
        status = state_text(memory["status"], state).removeprefix(ACTIVE).removeprefix(", ")
        rivals = self._rivals.get(name, [])
        is_marked = any(note.startswith(_AGAINST) for note in notes)
        others = self._differing(name)
        valued = {each.item for each in others}
        marks = "" if is_marked else disagreement([each for each in rivals if each not in valued])
        values_of = [each.words for each in others]
        dates = {key: properties[name] for key, name in _SHOWN_DATES.items() if name in properties}
        of_dates = dates_text(dates.get(DUE), dates.get(UNTIL))
        words = [
            *notes,
            *of_dates,
            *stale,
            status,
            marks,
            *values_of,
            *_origin(properties, memory["recorded_at"], agent, source),
        ]
        short = short_id(name)
        mark = f" [cut; jidomem show {short}]" if is_cut else ""
        why = f"; text: {quoted(answer, MAX_EXCERPT_CHARS)[0]}" if answer else ""
        ended = f"; {outcome_text(outcome)}" if outcome else ""
        line = f"- {quoted_name(short)} {label}: {text}{ended}{why}{mark} ({', '.join(filter(None, words))})"
        values = {
            "iri": name,
            "id": short,
            "label": label,
            "summary": properties.get("summary"),
            "excerpt": answer or None,
            "cut": is_cut,
            "notes": list(notes),
            "standing": memory["status"],
            "status": memory["status"],
            **({"state": states[0]} if states else {}),
            **({OUTCOME: outcome} if outcome else {}),
            **dates,
            **({"conflicts_with": rivals} if rivals else {}),
            **({"differs_from": [each.to_dict() for each in others]} if others else {}),
            "time": properties.get("hasTimestamp"),
            "agent": agent or None,
            "source": source or None,
            "imported": _is_imported(properties),
            "recorded": memory["recorded_at"],
            "freshness": [state_of_file.to_dict() for state_of_file in files],
        }
        return BriefingEntry(line, values)


def last_session(reader: MemoryReader, project: str, agent: str | None = None, **moment: Any) -> dict[str, Any] | None:
    """Return the last session that has ended, of *agent* if one is given; None if there is none.

    `session`, `agent`, `start` and `end` are those of `ask sessions`, `rows` its first memories, the newest first.
    """
    page = reader.ask_page("sessions", project=project, limit=_SESSIONS, **moment)
    row = next((row for row in page.rows if row["end"] is not None and agent in (None, row["agent"])), None)
    if row is None:
        return None
    of = reader.ask_page(
        "memories-of-session", project=project, session=row["session"], include_inactive=True, limit=_COUNTED, **moment
    )
    return {**row, "rows": of.rows}


def _is_imported(properties: Mapping[str, Any]) -> bool:
    return "sourceDigest" in properties


def _origin(properties: Mapping[str, Any], recorded: datetime, agent: str, source: str) -> list[str]:
    """Return author, day and source; for an imported memory "imported", with the day only if its source has a date."""
    time = properties.get("hasTimestamp")
    moment = time if isinstance(time, datetime) else recorded
    if _is_imported(properties):
        # a note has no date: its time is that of its import, also after its acceptance
        day = [moment.date().isoformat()] if moment != recorded and source != _DOCUMENT else []
        return ["imported", *day, "" if source == _DOCUMENT else source]
    return [quoted_name(agent), moment.date().isoformat(), source]


def _in_file(row: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return the sort key of a memory by its source file and line."""
    return str(row["blob"] or "").partition(" ")[2], row["line"] or 0, row["item"]


def _role(given: str) -> str:
    """Return the canonical name of a role, given in any case; raises InvalidRequest for an unknown one."""
    for role in vocab.AGENT_ROLE:
        if role.casefold() == str(given).casefold():
            return role
    raise InvalidRequest(f"{given!r:.200} is not a role", hint=f"there are {', '.join(vocab.AGENT_ROLE)}")
