"""The statements of notes for agents: each with the headings, lead-ins and parents that its meaning needs. Pure.

A paragraph or list item is a statement if it has a meaning by itself or with its lead-in. Code, tables, lists of links
or names, samples and sentences about the page are not statements, and are counted by reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from markdown_it.tree import SyntaxTreeNode

from jidomem.base.regex import lazy
from jidomem.base.words import line_sentences
from jidomem.exchange.note_page import NotePage, Text, is_sample_section, parse_page, section_words, text_of
from jidomem.exchange.note_words import (
    LONGEST,
    binds,
    forbids,
    is_arrangement,
    is_binding,
    is_condition,
    is_negative,
    is_of_samples,
    is_of_the_page,
    is_of_upkeep,
    is_pointer,
    is_rule,
    is_sample_label,
    is_sentence,
    lacks_subject,
    names_work,
    refers_back,
    shorten,
    without_number,
    without_page,
)

#: The longest parent that is repeated whole, and the longest item that may be joined with the others of its list.
_WHOLE, _FRAGMENT = 160, 80
#: The longest negative sentence that may apply to the list after it.
_NEAR = 120
#: Bounds of a context, above those of any page written by hand.
_LONGEST_LEAD, _MOST_LEADS, _MOST_COMMANDS = 1_000, 12, 20
_BOX = lazy(r"\[([ xX])\]\s+")
_VAGUE = lazy(r"\b(?:following|this|these|below|it|like so)\b", re.IGNORECASE)
_OPEN_END = lazy(
    r"\b(?:do|be|to|the|for|with|in|on|of|by|and|or|not|never|ever|following|when|if|that|are|is|use|things)\W*$",
    re.IGNORECASE,
)
#: The end of a sentence that is continued by the list after it.
_POINTS_AHEAD = lazy(rf"{_OPEN_END.pattern}|\b(?:this|these|those|here)\W*$", re.IGNORECASE)
_SAMPLE = lazy(r"\W*(?:examples?|samples?|e\.g\.?)\b[^:.`]{0,20}:", re.IGNORECASE)
_SHOWS_HOW = lazy(
    r"\W*(?:(?:if|when|before|after|for|to)\b[^,]{1,120}, )?(?:use|prefer|avoid|follow|keep|write)\b", re.IGNORECASE
)
#: The end of a sentence whose subject is the code after it.
_OF_THE_CODE = lazy(
    r"\b(?:structure|format|form|shape|follows|layout|schema|syntax|commands?|options|snippets?|examples?|output|with|by"
    r"|via|using|run|is|are|as|to|look|looks|like|returns?|contains?|includes?)\W*$"
    r"|\b(?:looks?|examples?|shows?|see|here|result)\b",
    re.IGNORECASE,
)
_ELSEWHERE = lazy(
    r"\W*(?:see|check out|refer to|visit|learn more|read more|source:?"
    r"|(?:more|additional|further) (?:details?|information|instructions?|rules|guidelines)"
    r"|(?:for|to learn) (?:more|further|details?|a full|the full|complete)\b.*?\b(?:see|visit|check|refer|read))\b",
    re.IGNORECASE,
)
_SEE_THERE = lazy(
    r"\W*see (?:the )?[^.`/]*\b(?:examples?|sections?|table|diagram|above|below)\b[^.`/]*\.?", re.IGNORECASE
)
_SAMPLE_LINK = lazy(r"(?<=[.)!?])\s+(?:examples?|docs|link|here|details)\.?$", re.IGNORECASE)
_FOLLOWING = lazy(r"\b(?:the )?following\b|\bbelow\b|\bthese\b|\bany of\b", re.IGNORECASE)
_THESE_COMMANDS = lazy(
    r"\b(?:these|the following) (?:[\w-]+ )?(?:commands?|steps|lines|scripts?|tasks?)\b"
    r"|\b(?:run|execute|use|with|by|via) this (?:[\w-]+ )?(?:command|script|task)\b",
    re.IGNORECASE,
)
#: Words of a paragraph that refer to the command in the code block after it, without a colon.
_OF_COMMAND = lazy(
    r"\W*this (?:will|does|runs?|starts?|creates?|removes?|imports?|installs?)\b"
    r"|\b(?:an?|the|this|following) (?:rake |make |shell )?(?:task|command|script)\b",
    re.IGNORECASE,
)
#: The beginning of an item that refers to something above it.
_OF_ABOVE = lazy(
    r"\W*(?:it|they|its|their)\b|\W*(?:this|these|those|such) (?:(?:type|kind|sort)s? of\b|\w+s\b)", re.IGNORECASE
)
_DRAWN = lazy(r"[│├└┌┐┘┬┴─]{1}|^\$ ")
_JOINS = lazy(r"(?:[,;]\s*(?:and|or)?|\s+(?:and|or)|[,;])\s*$")
_FILLER = lazy(r"\b(?:and|or|in|at|see|the|via|from|also|plus|default|e\.g|i\.e|etc)\b|[\W\d_]", re.IGNORECASE)
_SEE = lazy(r"\W*(?:see|refer to|read|more|links?|references?|resources?|docs|further|related|also)\b", re.IGNORECASE)
_DEFINES = lazy(r"\S(?:\s+[-–—=→]+>?\s+|:\s+)\S")
_LISTS, _CODE = ("bullet_list", "ordered_list"), ("fence", "code_block")
#: A line that names another page to read.
IMPORT = lazy(r"@[\w~./-]+")
_PAGE_AT_END = lazy(rf"\s{IMPORT.pattern}$")
_SHELLS = frozenset(("sh", "bash", "shell", "zsh", "console", "shell-session", "powershell", "ps1", "cmd"))
_STRUCK = lazy(r"~~.+~~", re.DOTALL)


@dataclass(frozen=True, slots=True)
class NoteStatement:
    """A statement of a page: its first line, the headings above it, and its words.

    `context` are the headings, lead-ins and parents that its meaning needs, outermost first; `text` are its own words,
    `more` is the text below that belongs to it, `written` its own words in Markdown, `raw` all of it with its context.
    `is_done` is the state of its check box. `binds` is True if it, its lead-in or a heading demands or forbids
    something. The first of `headings` is the title of the page if `is_titled`.
    """

    line: int
    headings: tuple[str, ...]
    context: tuple[str, ...]
    text: str
    raw: str
    more: str = ""
    is_done: bool | None = None
    written: str = ""
    binds: bool = False
    is_titled: bool = False

    @property
    def summary(self) -> str:
        """Return the statement with its context; of a long text sentences are left out, of the context none."""
        whole = before = ""
        for part in (*self.context, shorten(self.text)):
            whole += _join(before, part)
            before = part
        return whole

    @property
    def explanation(self) -> str:
        """Return its own words as written and the text below, or an empty text if the summary contains all of it."""
        if not self.more and shorten(self.text) == self.text and "](" not in self.written:
            return ""
        return "\n\n".join(filter(None, (self.written, self.more)))


class _Scope(NamedTuple):
    """The context of a block: lead-ins and parents outermost first, and as written."""

    leads: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()

    def within(self, lead: str, raw: str = "") -> _Scope:
        if not lead:
            return self
        lead = lead if len(lead) <= _LONGEST_LEAD else lead[:_LONGEST_LEAD].rsplit(" ", 1)[0] + "…"
        return _Scope((*self.leads, lead)[-_MOST_LEADS:], (*self.raw, raw or lead)[-_MOST_LEADS:])


_NOTHING = _Scope()


@dataclass(slots=True)
class _Flow:
    """The state between consecutive blocks: the context for the next block.

    `previous` is the sentence that the next one may refer to, `introduction` the words that lead in to the next block.
    """

    scope: _Scope
    label: _Scope = _NOTHING
    lead: _Scope = _NOTHING
    is_after_list: bool = False
    previous: str = ""
    introduction: str = ""

    @property
    def inner(self) -> _Scope:
        """Return the context of the next block."""
        leads = self.scope.leads + self.label.leads + self.lead.leads
        return _Scope(leads, self.scope.raw + self.label.raw + self.lead.raw)

    def led(self, before: _Scope) -> None:
        """Prefix the lead-in with the lead-in that preceded it."""
        depth = len(self.scope.leads) + len(self.label.leads)
        for lead, raw in zip(reversed(before.leads[depth:]), reversed(before.raw[depth:]), strict=True):
            self.lead = _Scope((lead, *self.lead.leads), (raw, *self.lead.raw))
        self.lead = _Scope(self.lead.leads[-_MOST_LEADS:], self.lead.raw[-_MOST_LEADS:])


def read_statements(text: str) -> tuple[list[NoteStatement], list[tuple[int, str]]]:
    """Return the statements of a page, and line and reason of each part that is not a statement, by line."""
    page = parse_page(text)
    reader = _Reader(page)
    statements = list(reader.sequence(page.blocks, _Scope()))
    return statements, sorted([*reader.left_out, *page.hidden])


class _Reader:
    """The reader of one page: walks its blocks and yields statements."""

    def __init__(self, page: NotePage) -> None:
        self._page = page
        self.left_out: list[tuple[int, str]] = []
        first = next((block for block in page.blocks if block.type == "heading"), None)
        self._title = first if first and first.tag == "h1" else None
        self._headings: list[tuple[int, str, str]] = []
        self._is_apart = False

    def sequence(
        self, blocks: Sequence[SyntaxTreeNode], scope: _Scope, label: _Scope = _NOTHING
    ) -> Iterator[NoteStatement]:
        """Yield the statements of consecutive blocks.

        A lead-in applies to the next block, and after a list also to further lists and code. A strong line applies up
        to the next one or, if it introduces a list, as a lead-in does; *label* is the one before the blocks.
        """
        flow = _Flow(scope, label)
        for at, block in enumerate(blocks):
            following = blocks[at + 1] if at + 1 < len(blocks) else None
            if flow.is_after_list and block.type not in (*_LISTS, *_CODE):
                flow = _Flow(scope)
            if block.type in _LISTS:
                yield from self._led_list(block, flow)
            elif block.type in _CODE:
                self._leave_out(block, "is code")
                flow.lead = flow.lead if flow.is_after_list else _NOTHING
            elif block.type == "paragraph":
                yield from self._block_of_words(block, following, flow)
            elif block.type == "blockquote":
                yield from self.sequence(block.children, flow.inner)
                flow.lead = _NOTHING
            else:
                if block.type == "table":
                    self._leave_out(block, "is a table")
                    flow.previous = _subject_of_table(flow.introduction, block)
                    flow.lead, flow.introduction = _NOTHING, ""
                    continue
                flow = _Flow(scope)
                if block.type == "hr":
                    self._is_apart = True
                    continue
                self._leave_out(block, "is a heading")
                if block.level == 0:
                    self._open(block)
                else:
                    flow.label = _titled(text_of(block))

    def _leave_out(self, block: SyntaxTreeNode, reason: str) -> None:
        self.left_out.append((_line(block), reason))

    def _led_list(self, block: SyntaxTreeNode, flow: _Flow) -> Iterator[NoteStatement]:
        """Yield the statements of a list; a rule that leads in to links or names alone is one statement with them."""
        listed = list(self._list(block, flow.inner))
        lead = flow.lead.leads[-1] if flow.lead.leads else ""
        if not listed and is_rule(lead) and not _SEE.match(lead):
            items = [text_of(item.children[0]) for item in block.children if item.children]
            words = f"{lead} {'; '.join(item.plain for item in items if item.plain)}".strip()
            more = "\n".join(f"- {item.raw}" for item in items if item.raw)
            whole = Text(words, flow.lead.raw[-1], lead, "", False, False, ())
            listed = list(self._state(block, whole, flow.scope, more=more))
        flow.is_after_list = True
        yield from listed

    def _block_of_words(
        self, block: SyntaxTreeNode, following: SyntaxTreeNode | None, flow: _Flow
    ) -> Iterator[NoteStatement]:
        """Yield the statements of a paragraph, and store its lead-in for the next blocks."""
        text, after = text_of(block), following.type if following else ""
        flow.introduction = _lead_words(text) if after == "table" else ""
        if text.is_strong and after in (*_LISTS, "paragraph", "blockquote", "table"):
            if after == "paragraph" and is_sentence(text.plain) and not text.plain.endswith(":"):
                yield from self._paragraph(block, text, flow.inner)
            elif re.search(r"\w", text.plain) and not is_pointer(text.plain):
                flow.lead, flow.label = _NOTHING, _titled(text)
            return
        before, flow.lead = flow.inner, self._lead(text, after)
        statements: Iterator[NoteStatement] = iter(())
        if (
            not flow.lead.leads
            and after in _CODE
            and following
            and _OF_COMMAND.search(text.plain)
            and _commands(following)
        ):
            flow.lead = _NOTHING.within(_lead_words(text), text.raw)
        if not flow.lead.leads:
            if flow.previous and not before.leads and (refers_back(text.plain) or lacks_subject(text.plain)):
                before = before.within(flow.previous)
            statements = self._paragraph(block, text, before)
            last = next(reversed(list(line_sentences(text.plain))), "")
            denies = len(last) <= _NEAR and last.endswith((".", "!")) and is_negative(last)
            if denies and following and after in _LISTS and _continues(last, following):
                flow.lead = _NOTHING.within(last, text.raw)
        elif after not in (*_LISTS, "paragraph", "blockquote"):
            statements = self._introduction(block, text, before, following)
            flow.lead = _NOTHING
        else:
            if not _introduces(text) and _is_complete(text.plain):
                statements = self._state(block, text, before)
            else:
                statements = self._sentences(block, text, list(line_sentences(text.plain))[:-1], before)
            flow.led(before)
        for statement in statements:
            flow.previous = statement.text if len(statement.text) <= _NEAR else ""
            flow.previous += "" if flow.previous.endswith((".", "!", "?")) or not flow.previous else "."
            yield statement

    def _open(self, block: SyntaxTreeNode) -> None:
        level, title = int(block.tag[1]), text_of(block)
        self._is_apart = False
        del self._headings[next((at for at, (depth, _, _) in enumerate(self._headings) if depth >= level), 99) :]
        plain = "" if block is self._title and not is_negative(title.plain) else title.plain
        self._headings.append((level, title.raw, plain))

    def _above(self, words: str) -> tuple[str, ...]:
        """Return the headings that a statement with these *words* needs.

        These are the two nearest that name a subject, and each that negates or restricts; also the nearest if it names
        an activity below another subject. After a horizontal rule only the negative ones still apply.
        """
        plain = [title for _, _, title in self._headings if title and not is_arrangement(title)]
        nearest = self._headings[-1][2] if self._headings else ""
        if self._is_apart:
            plain = [title for title in plain if is_negative(title)]
        elif plain and names_work(nearest) and is_arrangement(nearest):
            plain.append(nearest)
        near = plain[-2:]
        chosen = [title for title in plain if title in near or is_negative(title) or is_condition(title)]
        known = set(re.findall(r"\w+", words.casefold()))
        titles = []
        for title in map(without_number, chosen):
            if is_arrangement(title):  # the nearest heading: an activity, other than that of the heading above
                titles.append(title)
                continue
            title_words = {word for word in re.findall(r"\w+", title.casefold()) if not is_arrangement(word)}
            begins = re.match(rf"{re.escape(title)}\b", words, re.IGNORECASE)
            if begins or (title_words <= known and not is_negative(title) and not _OF_ABOVE.match(words)):
                continue
            titles.append(title)
        return (" › ".join(titles) + ":",) if titles else ()

    def _lead(self, text: Text, following: str) -> _Scope:
        """Return the lead-in that a paragraph is for the next block, empty if it is none."""
        ends = text.plain.rstrip("*_\"'”’) ")
        is_open = not ends.endswith((".", "!", "?", "…"))
        if following in _LISTS and not ends.endswith((":", "：")):
            if is_open and text.label and text.label != text.plain and not _VAGUE.search(text.plain):
                return _NOTHING
            if is_open:
                return _NOTHING.within(_lead_words(text), text.raw)
            if not _FOLLOWING.search(list(line_sentences(text.plain))[-1]):
                return _Scope()
        elif not ends.endswith((":", "：")):
            last = next(reversed(list(line_sentences(text.plain))), "")
            if following not in _CODE or not (text.is_strong or _THESE_COMMANDS.search(last)):
                return _Scope()
        return _Scope().within(re.sub(r"\.$", ":", _lead_words(text)), text.raw)

    def _introduction(
        self, head: SyntaxTreeNode, text: Text, scope: _Scope, block: SyntaxTreeNode | None
    ) -> Iterator[NoteStatement]:
        """Yield the statement of a lead-in to code, to a table or to nothing: with its commands if they are short."""
        own = text.plain.rstrip(".:： ")
        parts = list(line_sentences(text.plain))
        is_code = block is not None and block.type in _CODE
        commands = _commands(block) if block is not None and is_code and not is_sample_label(parts[-1]) else ""
        whole, code = f"{own}: {commands}", f"```\n{block.content.strip()}\n```" if block is not None else ""
        says_how = is_code and _says_how(parts[-1])
        if commands and (len(whole) <= LONGEST or not says_how):
            yield from self._state(head, replace(text, plain=whole), scope, more=code if len(whole) > LONGEST else "")
        elif says_how:
            yield from self._state(head, replace(text, plain=own), scope, more=code)
        elif block is None and is_rule(parts[-1]):
            yield from self._state(head, replace(text, plain=own), scope)
        else:
            self._leave_out(head, "only introduces what follows")
            yield from self._sentences(head, text, parts[:-1], scope)

    def _sentences(
        self, block: SyntaxTreeNode, text: Text, rest: Sequence[str], scope: _Scope
    ) -> Iterator[NoteStatement]:
        """Yield the sentences before a lead-in as a statement."""
        words = " ".join(sentence for sentence in rest if not re.search(r"\bthe following\b", sentence, re.IGNORECASE))
        if is_sentence(words):
            yield from self._state(block, replace(text, plain=words, bare=words), scope)

    def _paragraph(self, block: SyntaxTreeNode, text: Text, scope: _Scope) -> Iterator[NoteStatement]:
        """Yield a paragraph as a statement, or each of its lines if each is a statement."""
        ends = all(re.search(r"[.!?][\"')\]`*_]*$", line) for line in text.lines)
        labels = all(re.match(r"\W*[\w][^:`]{1,38}:\s", line) for line in text.lines)
        if len(text.lines) > 1 and any(map(IMPORT.fullmatch, text.lines)):
            words = " ".join(line for line in text.lines if not IMPORT.fullmatch(line))
            parts = [words, *filter(IMPORT.fullmatch, text.lines)]
            for part in filter(None, parts):
                yield from self._state(block, replace(text, plain=part, bare=part), scope, is_item=False)
            return
        is_split = len(text.lines) > 1 and (ends or labels) and not any(refers_back(line) for line in text.lines[1:])
        if not is_split:
            yield from self._state(block, text, scope, is_item=False)
            return
        for offset, line in enumerate(text.lines):
            for statement in self._state(block, replace(text, plain=line, bare=line), scope, is_item=False):
                yield replace(statement, line=statement.line + offset)

    def _list(self, block: SyntaxTreeNode, scope: _Scope) -> Iterator[NoteStatement]:
        """Yield the statements of a list; fragments that need the lead-in are joined to one statement."""
        items = [item for item in block.children if item.children]
        joined = self._joined(block, items, scope)
        if joined is not None:
            yield from joined
            return
        previous = ""
        for item in items:
            head = text_of(item.children[0]) if item.children[0].type == "paragraph" else None
            own = head.plain if head else ""
            is_bare = not scope.leads and not self._above(own)
            within = self._named(previous) if is_bare and _OF_ABOVE.match(own) else ""
            yield from self._item(item, scope.within(within))
            previous = own

    def _named(self, previous: str) -> str:
        """Return the subject of an item that refers to something above it: the previous item, or a heading."""
        if previous and len(previous) <= _WHOLE and is_sentence(previous):
            return previous if re.search(r"[.!?]\W*$", previous) else f"{previous}."
        title = without_number(self._headings[-1][1]) if self._headings else ""
        return f"{title}:" if title and not is_arrangement(title) else ""

    def _joined(
        self, block: SyntaxTreeNode, items: Sequence[SyntaxTreeNode], scope: _Scope
    ) -> Iterator[NoteStatement] | None:
        """Return one statement of all items of a list if they are short fragments below a lead-in or heading, else
        None.
        """
        if len(items) < 2 or any(len(item.children) != 1 or item.children[0].type != "paragraph" for item in items):
            return None
        texts = [text_of(item.children[0]) for item in items]
        words = [_JOINS.sub("", text.plain).rstrip(". ") for text in texts]
        is_led = bool(scope.leads) or bool(self._above(""))
        if not is_led or any(
            len(text.plain) > _FRAGMENT or _BOX.match(text.plain) or is_sentence(text.plain)
            or (not scope.leads and (text.label or _DEFINES.search(text.plain)))
            or not text.plain or text.raw.startswith("~~")
            for text in texts
        ):  # fmt: skip
            return None
        if block.type == "ordered_list":
            words = [f"{number}. {word}" for number, word in enumerate(words, int(block.attrs.get("start", 1)))]
        whole = "; ".join(words)
        if len(whole) > (LONGEST if any(_FILLER.sub("", text.bare) for text in texts) else _LONGEST_LEAD):
            return None
        raw = "\n".join(f"- {text.raw}" for text in texts)
        bare = " ".join(text.bare for text in texts)
        has_link = any(text.has_link for text in texts)
        return self._state(block, Text(whole, raw, bare, "", False, has_link, ()), scope)

    def _item(self, item: SyntaxTreeNode, scope: _Scope) -> Iterator[NoteStatement]:
        """Yield the statements of a list item: its own, and those of nested lists with the item as their parent."""
        head, *below = item.children
        if head.type != "paragraph":
            yield from self.sequence(item.children, scope)
            return
        text = text_of(head)
        done = None
        if not text.raw.startswith("\\") and (box := _BOX.match(text.plain)):
            done = box[1] in "xX"
            text = replace(
                text, plain=text.plain[box.end() :], bare=_BOX.sub("", text.bare), raw=_BOX.sub("", text.raw)
            )
        has_list = any(block.type in _LISTS for block in below)
        runs_code = below and below[0].type in _CODE and _THESE_COMMANDS.search(text.plain)
        if below and (_introduces(text) or runs_code):
            lead = _NOTHING.within(_lead_words(text), text.raw)
            if below[0].type in _CODE:
                yield from self._introduction(head, text, scope, below[0])
                yield from self.sequence(below[1:], scope, lead if has_list else _NOTHING)
            else:
                yield from self._sentences(head, text, list(line_sentences(text.plain))[:-1], scope)
                yield from self.sequence(below, scope, lead)
            return
        own = [block for block in below if block.type == "paragraph" and not _introduces(text_of(block))]
        code = [block for block in below if block.type in _CODE]
        is_whole = is_sentence(text.plain) and not _OPEN_END.search(text.plain)
        if not has_list or is_whole or text.plain.count(" ") > 2:
            more = [text_of(block).raw for block in own] + [f"```\n{block.content.strip()}\n```" for block in code]
            yield from self._state(head, text, scope, more="\n\n".join(more), done=done)
        rest = [block for block in below if block not in own and block not in code]
        yield from self.sequence(rest, scope.within(shorten(text.plain, _WHOLE), text.raw))

    def _state(
        self,
        block: SyntaxTreeNode,
        text: Text,
        scope: _Scope,
        *,
        more: str = "",
        done: bool | None = None,
        is_item: bool = True,
    ) -> Iterator[NoteStatement]:
        """Yield the statement of a text in its context, or count the reason why it is none."""
        line = _line(block)
        tags = self._page.tags(line)
        own = _JOINS.sub("", text.plain).rstrip() if scope.leads else text.plain
        own = _SAMPLE_LINK.sub("", own.rstrip(":： ")) if text.has_link else own.rstrip(":： ")
        rest = without_page(own)
        own = own if refers_back(rest) else rest or own
        reason = _left_out(text, own, scope, is_item=is_item)
        if reason is None and any(map(is_sample_section, tags)):
            reason = "is an example"
        if reason is not None:
            self._leave_out(block, reason)
            return
        leads = tuple(lead for lead in scope.leads if not is_pointer(lead))
        denied = tuple(f"{words}:" for words in map(section_words, tags) if words)
        above = self._above(" ".join((*leads, own)))
        raw = "\n".join((*scope.raw, text.raw, more))
        headings = tuple(title for _, title, _ in self._headings)
        is_order = any(map(binds, (own, *scope.leads))) or any(map(forbids, (*above, *denied)))
        is_titled = bool(self._headings) and self._headings[0][0] == 1 and self._title is not None
        yield NoteStatement(
            line, headings, (*above, *denied, *leads), own, raw, more, done, text.raw, is_order, is_titled
        )  # fmt: skip


def _line(block: SyntaxTreeNode) -> int:
    return block.map[0] + 1 if block.map else 1


def _left_out(text: Text, own: str, scope: _Scope, *, is_item: bool) -> str | None:
    """Return the reason why a text is no statement; None if it is one or names another page to read."""
    if IMPORT.fullmatch(own):
        return None
    lead = " ".join(scope.leads)
    if not is_item and not lead and lacks_subject(own):
        return "refers to something that it does not name"
    bare = _FILLER.sub("", text.bare)
    if not re.search(r"\w", own):
        return "is struck out" if _STRUCK.search(text.raw) else "has no words"
    if _DRAWN.search(own):
        return "is a drawing or a transcript"
    if is_sample_label(re.sub(r"`[^`]*`", "", own)) and ("`" in own or not scope.leads):
        return "is an example" if "`" in own else "has too few words"
    if _SAMPLE.match(own) and not is_rule(own):
        return "is an example"
    if scope.leads and is_sample_label(scope.leads[-1]) and not is_negative(lead) and not is_sentence(own):
        return "is an example"
    if any(map(is_of_samples, scope.leads)) and not is_negative(lead) and not is_binding(own):
        return "is an example"
    if is_of_the_page(own) or (any(map(is_of_upkeep, scope.leads)) and not is_rule(own)):
        return "is about the page"
    words = len(re.findall(r"[^\W\d_]{2,}", text.bare))
    if _SEE_THERE.fullmatch(own):
        return "is a link"
    points = text.has_link or "://" in own or _PAGE_AT_END.search(own)
    if points and _ELSEWHERE.match(own) and len(list(line_sentences(own))) == 1:
        return "is a link"
    if text.has_link and (words < 3 or (words < 6 and _SEE.match(own)) or (words < 9 and _SEE.match(lead))):
        return "is a link"
    if not bare and not (is_sentence(lead) and not _SEE.match(lead)):
        return "only names files or commands" if "`" in text.raw or "/" in own else "has too few words"
    if (
        not is_item
        and words < 4
        and not is_sentence(own)
        and not own.endswith("?")
        and not scope.leads
        and not text.label
    ):
        return "has too few words"
    return None


def _subject_of_table(introduction: str, table: SyntaxTreeNode) -> str:
    """Return the name for the rows of a table: its lead-in and first column; an empty text if that is too long."""
    rows = [row for part in table.children[1:] for row in part.children[:LONGEST] if row.children]
    names = ", ".join(text_of(row.children[0]).plain for row in rows)
    lead = introduction.rstrip(".:： ")
    named = f"{lead}: {names}." if lead and names else f"{lead or names}." if lead or names else ""
    return named if len(named) <= LONGEST else f"{lead}." if lead and len(lead) <= LONGEST else ""


def _lead_words(text: Text) -> str:
    """Return the words of a paragraph that lead in: its last sentence, and those before it that it refers to."""
    parts = list(line_sentences(text.plain))
    start = len(parts) - 1
    for at in range(max(0, start - 2), start):
        if re.search(r"\bthe following\b", parts[at], re.IGNORECASE):
            if parts[-1].count(" ") > 1 and not is_negative(" ".join(parts[at + 1 :])):
                del parts[at + 1 :]
            start = at
            break
    while start > 0 and (parts[start].count(" ") < 2 or refers_back(parts[start])):
        start -= 1
    lead = " ".join(parts[start:])
    if start and text.label and len(text.label) <= _FRAGMENT and not lead.startswith(text.label):
        lead = f"{text.label}: {lead}"
    return lead


def _join(context: str, text: str) -> str:
    """Return *text* with the separator from its context: a space or full stop after a sentence, else a colon."""
    if not context:
        return text
    if re.search(r"[.:!?…：][\"'”’)]*$", context):
        return f" {text}"
    return f". {text}" if _is_complete(context) and is_binding(text) else f": {text}"


def _is_complete(text: str) -> bool:
    """Return whether *text* is a complete order, as "Never use pip" is and "Never do" is not."""
    is_order = is_binding(text) and text.count(" ") > 1
    return is_order and not _VAGUE.search(text) and not _OPEN_END.search(text)


def _titled(text: Text) -> _Scope:
    """Return a strong line, or a heading within a list, as the lead-in of the blocks below it."""
    is_open = re.search(r"\w\W{0,2}$", text.plain) and not re.search(r"[.:!?…：]\W*$", text.plain)
    return _NOTHING.within(f"{text.plain}:" if is_open else text.plain, text.raw)


def _continues(sentence: str, block: SyntaxTreeNode) -> bool:
    """Return whether a list continues the *sentence* before it, which ends so or has only fragments after it."""
    heads = [item.children[0] for item in block.children if item.children]
    items = [text_of(head).plain for head in heads if head.type == "paragraph"]
    return bool(_POINTS_AHEAD.search(sentence)) or not any(is_rule(item) or is_sentence(item) for item in items)


def _introduces(text: Text) -> bool:
    return text.plain.rstrip("*_\"'”’) ").endswith((":", "："))


def _says_how(intro: str) -> bool:
    """Return whether the introduction of code is an instruction without the code."""
    if is_sample_label(intro) or intro.count(" ") < 4:
        return False
    states = is_sentence(intro) and not is_binding(intro) and not _OF_THE_CODE.search(intro)
    return is_rule(intro) or (bool(_SHOWS_HOW.match(intro) or states) and not _VAGUE.search(intro))


def _commands(block: SyntaxTreeNode) -> str:
    """Return the code of a block inline if it is one line, or lines of a shell without comments; else an empty text."""
    lines = [line.strip() for line in block.content.split("\n") if line.strip()]
    is_prompted = bool(lines) and all(line.startswith("$ ") for line in lines)
    lines = [line.removeprefix("$ ") for line in lines]
    commented = [line for line in lines if not re.match(r"#(?:\s|!)", line)]
    is_shell = (
        (is_prompted or block.info.split(" ")[0] in _SHELLS)
        and commented == lines
        and not any(line.endswith("\\") for line in lines)
    )
    lines = [re.sub(r"\s+", " ", line) for line in (lines if is_shell else commented)]
    is_long = len(lines) > (_MOST_COMMANDS if is_shell else 1) or sum(map(len, lines)) > _LONGEST_LEAD
    if not lines or is_long or any(map(_DRAWN.search, lines)):
        return ""
    return "; ".join(f"`` {line} ``" if "`" in line else f"`{line}`" for line in lines)
