"""One Markdown file as lines, headings and front matter; every position is a line of the file, so nothing is lost.

Markdown is read by its parser, so a heading or a status inside a code fence is never taken for one. YAML is composed,
not constructed: a number keeps its leading zeros (YAML would read 0012 as ten) and aliases are never expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN = MarkdownIt("commonmark")
#: Stands in the text of a line where a link stood: the place of the link among `links`, between two marks.
MARK = re.compile("\x00(\\d+)\x00")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a paragraph, list item or field: its words, with a `MARK` for each link, and the links themselves.

    `number` counts from 0; `links` are (text, address); `whole` tells whether the line is exactly one line of the file.
    """

    number: int
    text: str
    links: tuple[tuple[str, str], ...] = ()
    whole: bool = True

    @property
    def plain(self) -> str:
        """Return the words with the text of each link in its place."""
        return MARK.sub(lambda mark: self.links[int(mark[1])][0], self.text)


@dataclass(frozen=True, slots=True)
class Field:
    """One key of the front matter, its values (one, or those of a list; what is nested, as written) and its lines."""

    key: str
    values: tuple[str, ...]
    lines: range


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what is under it: its own text ends at the next heading, all of it at the next of its level."""

    title: str
    level: int
    start: int
    body: int
    own_end: int
    end: int


@dataclass(frozen=True, slots=True)
class Page:
    """A file: its lines, where the Markdown begins, the front matter, and the headings in order."""

    lines: tuple[str, ...]
    start: int
    fields: tuple[Field, ...]
    sections: tuple[Section, ...]
    tokens: tuple[Token, ...]
    fault: str = ""

    def text(self, start: int, end: int) -> str:
        """Return the lines from *start* to before *end* as written, without blank lines around them."""
        return "\n".join(self.lines[start:end]).strip()

    def said(self, start: int, end: int) -> Iterator[Line]:
        """Yield the lines of paragraphs and list items between two lines of the file: no headings, no code blocks."""
        for before, token in pairwise(self.tokens):
            if token.type == "inline" and token.map and before.type != "heading_open" and start <= token.map[0] < end:
                yield from _written(token)

    def items(self, start: int, end: int) -> Iterator[str]:
        """Yield the first words of each outermost list item between two lines of the file."""
        tokens = self.tokens
        for index, token in enumerate(tokens):
            if token.type == "list_item_open" and token.level == 1 and token.map and start <= token.map[0] < end:
                first = tokens[index + 2] if tokens[index + 1].type == "paragraph_open" else None
                if first and first.children:
                    yield _plain(first.children)


def parse_page(text: str) -> Page:
    """Return *text* taken apart; `fault` says why its front matter could not be read and was left as text."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start = _front_matter_end(lines)
    fields, fault = _fields(lines[1 : start - 1]) if start else ((), "")
    tokens = _MARKDOWN.parse("\n" * start + "\n".join(lines[start:]))
    return Page(tuple(lines), start, fields, tuple(_sections(tokens, len(lines))), tuple(tokens), fault)


def parse_line(number: int, text: str) -> Line:
    """Return *text*, the value of a field on line *number*, as a line of Markdown."""
    return Line(number, *_pieces(_MARKDOWN.parseInline(text)[0].children or []))


def _front_matter_end(lines: Sequence[str]) -> int:
    """Return the line after the front matter, 0 when there is none."""
    if lines[0].rstrip() != "---":
        return 0
    return next((n + 1 for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)


def _fields(lines: Sequence[str]) -> tuple[tuple[Field, ...], str]:
    """Return the fields of the front matter and, when it is no YAML mapping, what is wrong with it."""
    text = "\n".join(lines)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        return (), " ".join(str(error).split()) or "nested too deeply"
    if node is None:
        return (), ""
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return (), "it is not a list of `key: value` lines"
    starts = [key.start_mark.line + 1 for key, _ in node.value] + [len(lines) + 1]
    pairs = zip(node.value, starts, starts[1:], strict=False)
    return tuple(Field(str(key.value), _values(value, text), range(a, b)) for (key, value), a, b in pairs), ""


def _values(node: yaml.Node, text: str) -> tuple[str, ...]:
    """Return the scalars of *node*, or where it is nested deeper, what is written."""
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if all(isinstance(scalar, yaml.ScalarNode) for scalar in nodes):
        return tuple(scalar.value for scalar in nodes)
    return (text[node.start_mark.index : node.end_mark.index],)


def _sections(tokens: Sequence[Token], length: int) -> Iterator[Section]:
    """Yield every heading that stands on its own, not in a quote or a list item."""
    opened = [
        (int(token.tag[1]), token.map[0], token.map[1], _plain(inline.children or []))
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    for index, (level, start, body, title) in enumerate(opened):
        after = range(index + 1, len(opened))
        own_end = opened[index + 1][1] if after else length
        end = next((opened[other][1] for other in after if opened[other][0] <= level), length)
        yield Section(title, level, start, body, own_end, end)


def _written(inline: Token) -> Iterator[Line]:
    """Yield the lines of one paragraph; each break in it is a line of the file."""
    first, end = inline.map or [0, 1]
    rows: list[list[Token]] = [[]]
    for child in inline.children or []:
        if child.type in ("softbreak", "hardbreak"):
            rows.append([])
        else:
            rows[-1].append(child)
    for offset, row in enumerate(rows):
        yield Line(first + offset, *_pieces(row), whole=end - first == len(rows))


def _pieces(row: Sequence[Token]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the words of one line with a mark for each link, and the links."""
    text = ""
    links: list[tuple[str, str]] = []
    href: str | None = None
    for token in row:
        if token.type == "link_open":
            href = str(token.attrGet("href"))
            links.append(("", href))
            text += f"\x00{len(links) - 1}\x00"
        elif token.type == "link_close":
            href = None
        elif token.type in ("text", "code_inline", "image"):
            if href is not None:
                links[-1] = (links[-1][0] + token.content, href)
            else:
                text += f"`{token.content}`" if token.type == "code_inline" else token.content
    return text, tuple(links)


def _plain(children: Sequence[Token]) -> str:
    """Return the words of a heading or a list item, its breaks as blanks and without the marks of Markdown."""
    words = (
        " " if child.type.endswith("break") else child.content for child in children if child.type != "html_inline"
    )
    return " ".join("".join(words).split())
