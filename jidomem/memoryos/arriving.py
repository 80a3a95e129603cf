"""How pages come into short-term memory, and what a model says of them there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jidomem.errors import InvalidRequest, NotFound
from jidomem.memoryos import form
from jidomem.memoryos.form import Value, Vector
from jidomem.memoryos.scores import Policy
from jidomem.memoryos.tiers import Tiers, stepped
from jidomem.memoryos.values import DialoguePage
from jidomem.spaces.step import Step


@dataclass(frozen=True, slots=True)
class Description(Value):
    """What a model said of one page: its vector and its keywords, whether it goes on with another, and its chain.

    What is None is left as it is.
    """

    page_id: str
    embedding: Vector | None = None
    keywords: frozenset[str] | None = None
    meta_chain: str | None = None
    continues: str | None = None

    def __post_init__(self) -> None:
        self._hold(page_id=form.text, embedding=form.unless_none(form.vector), keywords=form.unless_none(form.text_set),
                   meta_chain=form.unless_none(form.words), continues=form.unless_none(form.text))  # fmt: skip


def insert(tiers: Tiers, page: DialoguePage, policy: Policy) -> Step[Tiers]:
    """Return the step to short-term memory with *page* as its newest; what it has no room for leaves it, in order.

    A page that is held already is not put again. Raises InvalidRequest for another page of the same id, one of another
    agent, and one that is in a segment.
    """
    if (known := tiers.page(page.id)) is not None:
        if _as_said(known) != _as_said(page):
            raise InvalidRequest(f"page {page.id} is held already, and says something else", hint="give it a fresh id")
        return stepped(tiers, policy.config)
    return stepped(tiers, policy.config, stm=(*tiers.stm, page))


def _as_said(page: DialoguePage) -> tuple[object, ...]:
    return page.agent_id, page.query, page.response, page.timestamp, page.object


def before(tiers: Tiers, page_id: str) -> DialoguePage | None:
    """Return the page before another in the talk with the same one, whose chain it may go on with.

    None where there is none any more. Raises NotFound where the agent has no such page.
    """
    page = known_page(tiers, page_id)
    queue = [each.id for each in (*tiers.leaving, *tiers.stm) if each.object == page.object]
    if page.id in queue[1:]:
        return known_page(tiers, queue[queue.index(page.id) - 1])
    settled = (each for segment in tiers.mtm for each in segment.pages)
    earlier = (each for each in settled if each.object == page.object and each.when < page.when)
    return max(earlier, key=lambda each: each.when, default=None)


def describe(tiers: Tiers, said: Description, policy: Policy) -> Step[Tiers]:
    """Return the step to the page with what a model said of it, wherever it is; raises NotFound where it is not."""
    page = known_page(tiers, said.page_id)
    if said.continues == page.id:
        raise InvalidRequest(f"page {page.id} does not go on with itself", hint="name the page before it, or none")
    given = {name: getattr(said, name) for name in ("embedding", "keywords", "meta_chain", "continues")}
    after = replace(page, **{name: value for name, value in given.items() if value is not None})
    return stepped(
        tiers,
        policy.config,
        stm=_instead(tiers.stm, after),
        leaving=_instead(tiers.leaving, after),
        mtm=tuple(
            replace(segment, pages=_instead(segment.pages, after)) if segment.id == after.segment_id else segment
            for segment in tiers.mtm
        ),
    )


def _instead(pages: tuple[DialoguePage, ...], after: DialoguePage) -> tuple[DialoguePage, ...]:
    return tuple(after if page.id == after.id else page for page in pages)


def known_page(tiers: Tiers, page_id: str) -> DialoguePage:
    """Return the page of that id; raise NotFound where the agent has none."""
    page = tiers.page(page_id)
    if page is None:
        raise NotFound(f"{tiers.agent_id} holds no page {page_id}", hint="insert it first; an evicted one is archived")
    return page
