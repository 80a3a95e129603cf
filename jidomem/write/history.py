"""The writing of what is kept word for word, in the stream of the conversation history: entries and turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from jidomem import vocab
from jidomem.entry import Entry
from jidomem.errors import PolicyDenied
from jidomem.intent import Receipt
from jidomem.policy import AgentPolicy
from jidomem.terms import Term, Triple, bare, iri
from jidomem.version import Version
from jidomem.write import entries as words
from jidomem.write import permission, secrets, triples, turns
from jidomem.write.line import JudgeFn, Outcome
from jidomem.write.recovery import Recovery
from jidomem.write.stages import Judged
from jidomem.write.tidy import check_size
from jidomem.write.turns import NotOpened, Said
from jidomem.write.view import View

#: The stream of what is kept word for word.
HISTORY = "history"


@dataclass(frozen=True, slots=True)
class EntryChanges:
    """What is to become of entries, all of it or nothing: those that are kept, and the ids of those taken back."""

    kept: Sequence[Entry] = ()
    removed: Sequence[str] = ()


class HistoryWriter(Recovery):
    """The verbs of writing what nobody judges: each is a small commit of the history, held to ontology and shapes."""

    def keep_entries(self, project_id: str, entries: Sequence[Entry]) -> list[Outcome]:
        """Return one receipt or refusal for each entry, in order, all that were kept being durable.

        An entry replaces what is kept under its id; many share a commit. Raises NotFound `invalid_project`.
        """
        return self._line(project_id, HISTORY).submit([self._keeps(project_id, entry) for entry in entries])

    def change_entries(self, project_id: str, plan: Callable[[], EntryChanges]) -> list[Receipt]:
        """Return the receipts of what *plan* says is to become of entries, kept in one commit or not at all.

        Nobody else writes between *plan*, which may read what is kept, and the commit; where the stream moved on all
        the same it is called again. An id nothing is kept under is removed by a receipt without a commit. The first
        refusal is raised, and what *plan* raises.
        """

        def judges(view: View) -> Iterator[JudgeFn]:
            changes = plan()
            yield from (self._keeps(project_id, entry) for entry in changes.kept)
            yield from (self._removes(project_id, entry_id) for entry_id in changes.removed)

        return self._line(project_id, HISTORY).submit_planned(judges)

    def keep_turn(self, project_id: str, session: str, said: Said) -> Receipt:
        """Return the receipt of a turn, kept as the next one of the conversation of *session*, a name or an IRI.

        Its place is the one thing `filled`. Raises NotOpened for a session nobody opened, InvalidRequest for what JSON
        does not hold, TooLarge, IntentRefused for what looks like a secret, and PolicyDenied for the words of another.
        """
        project, place = iri(f"{vocab.BASE}projects/{project_id}"), self.session_iri(session)

        def judge(view: View, now: datetime) -> Judged:
            self._check_besides("description", view, said.answered_by)
            if not view.types(place):
                raise NotOpened(f"no session {bare(place)}", hint="open it with: jidomem session start NAME")
            node = self._new("turns", view)
            conversation = turns.conversation_of(place)
            index = turns.next_index(conversation, view)
            rows = turns.described(node, index, conversation, said, self.literal)
            rows += [] if view.types(conversation) else turns.opened(conversation, place, project)
            judged = self._kept(node, [*rows, *self._stubs(said.agents, project, view)], view)
            return replace(judged, receipt=replace(judged.receipt, filled={"index": index}))

        return self._submit(project_id, judge, HISTORY)

    def refuse_words(self, texts: Mapping[str, str]) -> None:
        """Raise TooLarge, or IntentRefused for what looks like a secret, unless *texts* may be kept, by their names."""
        for name, text in texts.items():
            check_size(
                name, text, self._stages.literal, instead="keep it in parts, or keep a summary and where the whole is"
            )
        self._stages.screened(
            (name, found) for name, text in texts.items() if (found := secrets.find(text)) is not None
        )

    def session_iri(self, name: str) -> Term:
        """Return the IRI of a session, from its plain name or itself; raises IntentRefused where it is none."""
        return self._node(name, "sessions")

    def spoken_by(self, name: str | None) -> Term | None:
        """Return the IRI of an agent or a person, None for nobody; raises IntentRefused where the name is none."""
        return None if name is None else self._node(name, "agents")

    def _keeps(self, project_id: str, entry: Entry) -> JudgeFn:
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: View, now: datetime) -> Judged:
            agent = words.agent_of(entry)
            self._check_besides("description", view, agent)
            node = self._new("entries", view)
            rows = words.described(node, entry, project, self.literal)
            for before in words.held(view, entry.id):
                self._check_replaces(before, entry.id, view)
                rows.append((node, words.REPLACES, before))
            return self._kept(node, [*rows, *self._stubs(filter(None, [agent]), project, view)], view)

        return judge

    def _removes(self, project_id: str, entry_id: str) -> JudgeFn:
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: View, now: datetime) -> Judged:
            self._check_besides("description", view)
            ended = words.held(view, entry_id)
            if not ended:
                return Judged(Receipt("", None, Version(), "deduplicated"))
            for before in ended:
                self._check_replaces(before, entry_id, view)
            node = self._new("entries", view)
            return self._kept(node, words.removed(node, ended, project), view)

        return judge

    def _check_replaces(self, before: Term, entry_id: str, view: View) -> None:
        """Raise PolicyDenied where *before*, kept under *entry_id*, is of one the speaker may not speak for."""
        owner = view.first(before, words.OF)
        try:
            permission.check_speaks(owner and bare(owner), view, self._stages.policy, self._stages.speaker)
        except PolicyDenied:
            raise PolicyDenied(
                f"{entry_id!r} is the id of an entry of another agent", hint="leave id out, or give another one"
            ) from None

    def _new(self, folder: str, view: View) -> Term:
        """Return the name of what is kept for the first time; an id that is never given twice is not looked up."""
        node = iri(f"{vocab.BASE}{folder}/{self._sources.new_id()}")
        if self._stages.fresh_ids:
            view.add_new(node, ())
        return node

    def _stubs(self, agents: Iterable[Term], project: Term, view: View) -> list[Triple]:
        """Return the declarations of the agents and the project that are named for the first time."""
        found = [] if view.describes(project) else triples.project_stub(project)
        for agent in dict.fromkeys(agents):
            if not view.types(agent):
                found += triples.agent_stub(agent, self._policy.agents.get(triples.name_of(agent), AgentPolicy()))
        return found

    def _kept(self, node: Term, rows: list[Triple], view: View) -> Judged:
        """Return *rows*, which tell of the new *node*, as they pass what is asked of all that is no memory."""
        judged = self._stages.append(rows, view, lambda triple: False)
        return replace(judged, receipt=replace(judged.receipt, iri=bare(node)))
