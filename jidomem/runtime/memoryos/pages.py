"""The pages of an agent as recall looks through them: what was asked, what was answered, with whom, and when."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock

from jidomem.index.documents import Document
from jidomem.index.held_texts import HeldTexts
from jidomem.keeping import Keeping
from jidomem.lexical import FIELDS
from jidomem.memoryos.tiers import Tiers
from jidomem.memoryos.values import DialoguePage
from jidomem.moments import stamp
from jidomem.pieces import LONGEST
from jidomem.read.gathering import PAGE
from jidomem.runtime.memoryos import notes
from jidomem.runtime.memoryos.kept import agent_tiers
from jidomem.runtime.memoryos.moves import EMBEDDER
from jidomem.stems import Stemmer

#: Who answers in a page, by the name that tells a machine from a person; and who asks where nobody said.
ANSWERS, ASKS = "assistant", "user"


class Pages:
    """The pages of one agent, taken into texts in memory as they come and go; nothing of them is kept elsewhere."""

    def __init__(self, state: Keeping, project: str, agent: str, new_id: Callable[[], str], stemmer: Stemmer) -> None:
        """Look at those that *state* keeps; raises InvalidRequest for a name of which nothing is left."""
        self._state, self._project = state, project
        self._kept = agent_tiers(state, project, agent, new_id)
        self._texts = HeldTexts(stemmer)
        self._seen: Tiers | None = None
        self._known: dict[str, DialoguePage] = {}
        self._lock = RLock()

    def level(self) -> tuple[HeldTexts, str | None]:
        """Return the pages there are now, and of which embedder their vectors are."""
        with self._lock:
            with self._state.reading() as store:
                tiers = self._kept.read_in(store)
                embedder = notes.note(store, self._project, EMBEDDER, self._kept.holder)
            if tiers is not self._seen:
                self._take_in({page.id: page for page in tiers.pages()})
                self._seen = tiers
            return self._texts, embedder

    def _take_in(self, now: dict[str, DialoguePage]) -> None:
        new = {name: page for name, page in now.items() if self._known.get(name) is not page}
        gone = self._known.keys() - now.keys()
        if new or gone:
            self._texts.put({name: (_document(page), page.embedding) for name, page in new.items()}, gone)
        self._known = now

    def close(self) -> None:
        """Let go of the texts."""
        self._texts.close()


def _document(page: DialoguePage) -> Document:
    """Return a page as it is looked through; the pages with one and the same are a talk."""
    at, speakers = stamp(page.timestamp), (page.object_identifier or ASKS, ANSWERS)
    texts = {"summary": page.text, "about": "\n".join(speakers), "explanation": page.meta_chain or ""}
    return Document(
        item=page.id,
        types=(PAGE,),
        recorded=at,
        ended=None,
        inactive=None,
        agent=page.agent_id,
        session="",
        confidence="",
        valid_from=None,
        valid_until=None,
        successors=(),
        about=(),
        texts=tuple(texts.get(name, "") for name in FIELDS),
        text="\n\n".join(filter(None, (page.query, page.response)))[:LONGEST],
        speakers=speakers,
        said_at=at,
        talk=f"{page.object_type or ''}/{page.object_identifier or ''}",
        place=f"{at} {page.id}",
    )
