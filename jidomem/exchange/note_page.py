"""A page of notes for agents, parsed as Markdown: its blocks as a tree, and each inline text as plain words. Pure.

Lines that only mark up the page (tags, admonitions, front matter, comments) are blanked, so that lines keep their
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.tree import SyntaxTreeNode

from jidomem.base.regex import lazy
from jidomem.exchange.note_words import is_negative

#: Front matter; without the line that closes it, it ends before a blank line or a heading.
FRONT_MATTER = lazy(
    r"\A\ufeff?---\n(?!\n)((?:(?!\n\n(?:#+|[-*]) ).)*?)\n---(?=\n|\Z)"
    r"|\A\ufeff?---((?:\n(?:[A-Za-z][\w-]*:|[ \t]*- )[^\n]*)+)(?=\n\n|\n#)",
    re.DOTALL,
)
_COMMENT = lazy(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = lazy(r"<(/?)([A-Za-z][\w.:-]*)(?:\s[^<>]*)?(/?)>")
_TAGS_ONLY = lazy(rf"[ \t>]*(?:{_TAG.pattern}[ \t]*)+")
_WRAPPED = lazy(r"\s*<([A-Za-z][\w.:-]*)(?:\s[^<>]*)?>\s*(.*?)\s*</\1>\s*", re.DOTALL)
_HTML = lazy(
    r"</?(?:a|b|big|br|center|code|dd|del|details|div|dl|dt|em|font|hr|i|img|ins|kbd|li|mark|ol|p|pre|q|s|small|span"
    r"|strong|sub|summary|sup|table|tbody|td|th|thead|tr|tt|u|ul|var)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_ADMONITION = lazy(r"([ \t]*)(?:!!!|\?\?\?)\+?[ \t]+[\w -]*?(?:[ \t]*\"([^\"]*)\")?[ \t]*")
_DIRECTIVE = lazy(r"[ \t]*:{3,}.*")
_BULLET = lazy(r"([ \t]*)[•‣▪●◦∙·](?=[ \t])")
#: The beginning of a line that may be markup of the page.
_MARKUP = lazy(r"[ \t>]*(?:<|!!!|\?\?\?|:::|[•‣▪●◦∙·])")
_ALERT = lazy(r"\s*\[!\w+\][-+]?\s*")
#: Unmatched brackets cost the parser up to forty times the time of other characters.
_BRACKETS = lazy(r"(?:!?\[){20,}")
#: A component of documentation pages: a parameter, a card, an update.
_COMPONENT = lazy(r"<[A-Z]\w*\s[^<>]*?\b(?:path|body|query|header|type|href|icon|label)=")
_SAMPLE_TAG = lazy(r"(?:^|[\W_])(?:examples?|samples?|snippets?|transcripts?)(?:$|[\W_])", re.IGNORECASE)
_ASKS, _ANSWERS = "user|human|me", r"assistant|claude(?: code)?|chatgpt|gpt-?\d[\w.-]*|gemini|copilot|codex|ai"
#: The beginning of a turn of a conversation: the speaker before a colon, outside lists, or alone in a heading.
_TURN = lazy(
    rf"[ \t>]*(?:#{{1,6}}[ \t]+[*_]*(?:({_ASKS})|({_ANSWERS}))[*_:]*[ \t]*$"
    rf"|[*_]*(?:({_ASKS})|({_ANSWERS}))(?::[*_]*|[*_]+:)(?:[ \t]|$))",
    re.IGNORECASE,
)


class _BoundedBlocks(ParserBlock):
    """A block parser that drops only the lines below its deepest level, and counts those with words.

    The parser of the library drops the rest of the page as well.
    """

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803 - names of the library
        if state.level < state.md.options.maxNesting:
            super().tokenize(state, startLine, endLine)
            return
        state.line = startLine
        while state.line < endLine and (state.isEmpty(state.line) or state.sCount[state.line] >= state.blkIndent):
            text = state.src[state.bMarks[state.line] : state.eMarks[state.line]]
            state.env["too deep"] = state.env.get("too deep", 0) + bool(re.search(r"[^\W\d_]", text))
            state.line += 1


#: Stand for escaped brackets and backslashes, which are no markup, until markup is removed.
_ESCAPED = {sign: chr(0xE000 + number) for number, sign in enumerate("<>[]\\")}
_UNESCAPED = str.maketrans({mark: sign for sign, mark in _ESCAPED.items()})


def _mark_escaped(state: StateCore) -> None:
    """Replace the signs of escapes and entities, which the parser joins with other text."""
    for inline in state.tokens:
        for token in inline.children or ():
            if token.type == "text_special":
                token.content = _ESCAPED.get(token.content, token.content)


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.core.ruler.before("text_join", "escaped", _mark_escaped)
    blocks = _BoundedBlocks()
    blocks.ruler = markdown.block.ruler
    markdown.block = blocks
    return markdown


_MARKDOWN = _markdown()


@dataclass(frozen=True, slots=True)
class Text:
    """An inline text: `plain` is one line of words, `raw` as written, `bare` the words outside code and links.

    `label` is a strong beginning or one before a colon, `is_strong` is True if all of the text is strong, `lines` are
    its lines where line ends matter.
    """

    plain: str
    raw: str
    bare: str
    label: str
    is_strong: bool
    has_link: bool
    lines: tuple[str, ...]


class NotePage(NamedTuple):
    """The blocks of a page, the lines and name of each tag section, and line and reason of each hidden part."""

    blocks: tuple[SyntaxTreeNode, ...]
    sections: tuple[tuple[range, str], ...]
    hidden: tuple[tuple[int, str], ...]

    def tags(self, line: int) -> list[str]:
        """Return the names of the tag sections around *line*, outermost first."""
        return [name for lines, name in self.sections if line in lines]


def is_sample_section(name: str) -> bool:
    """Return whether a tag section of this name contains samples."""
    return bool(_SAMPLE_TAG.search(name))


def parse_page(text: str) -> NotePage:
    """Return *text* as a page."""
    hidden: list[tuple[int, str]] = []

    def blank(match: re.Match[str]) -> str:
        line = match.string.count("\n", 0, match.start()) + 1
        hidden.append((line, "is a comment" if match[0].startswith("<") else "is front matter"))
        return "\n" * match[0].count("\n")

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _COMMENT.sub(blank, FRONT_MATTER.sub(blank, text, count=1))
    text = _BRACKETS.sub(lambda run: run[0].replace("[", "\\["), text)
    lines = text.split("\n")
    for talk in _conversations(lines):
        hidden.append((talk.start + 1, "is a transcript"))
        lines[talk.start : talk.stop] = [""] * len(talk)
    sections: list[tuple[range, str]] = []
    if any(map(_MARKUP.match, lines)):
        lines, sections = _without_markup(lines, _code_lines(lines))
    env: dict[str, int] = {}
    tree = SyntaxTreeNode(_MARKDOWN.parse("\n".join(lines), env))
    if env.get("too deep"):
        hidden += [(1, "is nested too deeply")] * env["too deep"]
    return NotePage(tuple(tree.children), tuple(sections), tuple(hidden))


def _conversations(lines: Sequence[str]) -> Iterator[range]:
    """Yield the lines of each conversation: turns of a user and of an assistant, without another heading between."""
    turns = {number: match for number, line in enumerate(lines) if (match := _TURN.match(line))}
    if len(turns) < 2:
        return
    talk: list[int] = []
    code = _code_lines(lines)
    for number in [*(n for n, line in enumerate(lines) if n not in code and (n in turns or line[:1] == "#")), None]:
        if number in turns:
            talk.append(number)
            continue
        sides = ["asks" if turns[each][1] or turns[each][3] else "answers" for each in talk]
        if ("asks", "answers") in pairwise(sides):
            talk = talk[: len(sides) - sides[::-1].index("answers")]
            is_alone = turns[talk[-1]].end() == len(lines[talk[-1]].rstrip())
            end = len(lines) if number is None else number
            blank = [n for n in range(talk[-1] + 1, end) if not lines[n].strip(" \t>") and n - talk[-1] > is_alone]
            yield range(talk[0], min([end, *blank]))
        talk = []


def _code_lines(lines: Sequence[str]) -> set[int]:
    """Return the numbers, from 0, of the lines inside code fences."""
    tokens = _MARKDOWN.parse("\n".join(lines))
    return {line for token in tokens if token.type == "fence" and token.map for line in range(*token.map)}


def _without_markup(lines: Sequence[str], code: set[int]) -> tuple[list[str], list[tuple[range, str]]]:
    """Return the lines, those outside *code* without tags and admonitions, and lines (from 1) and name of each tag."""
    shown: list[str] = []
    opened: list[tuple[str, int, bool]] = []
    sections: list[tuple[range, str]] = []
    indent = ""
    for number, line in enumerate(lines):
        if indent and line.strip() and not line.startswith(indent):
            indent = ""
        line = line.removeprefix(indent)
        if number in code:
            shown.append(line)
        elif admonition := _ADMONITION.fullmatch(line):
            indent += admonition[1] + "    "
            shown.append(f"{admonition[1]}**{admonition[2]}**" if admonition[2] else "")
        elif _TAGS_ONLY.fullmatch(line):
            for tag in _TAG.finditer(line):
                closes, name, alone = tag.groups()
                if closes:
                    at = next((at for at in reversed(range(len(opened))) if opened[at][0] == name), None)
                    if at is not None:
                        sections.append((range(opened[at][1], number + 1), "sample" if opened[at][2] else name))
                        del opened[at:]
                elif not alone:
                    opened.append((name, number + 1, bool(_COMPONENT.match(tag[0]))))
            shown.append(line[: len(line) - len(line.lstrip(" \t>"))].rstrip())
        else:
            shown.append("" if _DIRECTIVE.fullmatch(line) else _BULLET.sub(r"\1-", line))
    sections += [(range(start, len(lines) + 1), name) for name, start, _ in opened if is_negative(_spaced(name))]
    return shown, sorted(sections, key=lambda section: section[0].start)


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_.:-]+", " ", name)


def section_words(name: str) -> str:
    """Return the name of a tag as words if it negates its content, else an empty text.

    >>> section_words("never_do"), section_words("guidelines")
    ('never do', '')
    """
    return _spaced(name) if is_negative(_spaced(name)) else ""


def text_of(block: SyntaxTreeNode) -> Text:
    """Return the inline text of a paragraph or heading."""
    inline = next((child for child in block.children if child.type == "inline"), None)
    if inline is None:
        return Text("", "", "", "", False, False, ())
    pieces = list(_pieces(inline.children, in_link=False))
    words = "".join(piece for piece, _ in pieces)
    wrapped = _WRAPPED.fullmatch(words)
    words = wrapped[2] if wrapped else words
    words = _ALERT.sub("", words, count=1) if _ALERT.match(words) else words
    bare = _ALERT.sub("", "".join(piece for piece, is_bare in pieces if is_bare), count=1).translate(_UNESCAPED)
    shown = [child for child in inline.children if child.type != "text" or child.content.strip(" .:")]
    is_strong = len(shown) == 1 and shown[0].type == "strong"
    lines = tuple(filter(None, (" ".join(line.split()) for line in words.split("\n"))))
    if lines and lines[-1].endswith("\\"):
        lines = (*lines[:-1], lines[-1].rstrip("\\ "))
    lines = tuple(line.translate(_UNESCAPED) for line in lines)
    return Text(
        " ".join(lines), inline.content.strip(), " ".join(bare.split()),
        _label(inline.children).translate(_UNESCAPED), is_strong,
        any(child.type == "link" for child in inline.walk()), lines,
    )  # fmt: skip


def _label(children: Sequence[SyntaxTreeNode]) -> str:
    """Return the strong words or the words before a colon at the beginning of a text."""
    first = next((child for child in children if child.type != "text" or child.content.strip()), None)
    if first is None:
        return ""
    if first.type == "strong":
        return " ".join("".join(piece for piece, _ in _pieces(first.children, in_link=False)).split()).strip(" .:")
    match = re.match(r"\W{0,3}([\w][^.:;!?`]{1,38}):\s", first.content + " ") if first.type == "text" else None
    return match[1].strip() if match else ""


def _pieces(children: Sequence[SyntaxTreeNode], *, in_link: bool) -> Iterator[tuple[str, bool]]:
    """Yield the words of inline nodes, and whether they are outside code and links; struck words are left out."""
    for child in children:
        if child.type == "code_inline":
            pad = " " if "`" in child.content[:1] + child.content[-1:] else ""
            yield f"{child.markup}{pad}{child.content}{pad}{child.markup}", False
        elif child.type in ("softbreak", "hardbreak"):
            yield "\n", True
        elif child.type == "image":
            yield child.content, False
        elif child.type == "link":
            words = list(_pieces(child.children, in_link=True))
            if "".join(piece for piece, _ in words).isdigit():  # a number alone does not name its target
                words = [(f"[{words[0][0]}]({child.attrs['href']})", False)]
            yield from words
        elif child.type == "s":
            continue
        elif child.children:
            yield from _pieces(child.children, in_link=in_link)
        else:
            yield _HTML.sub(" ", child.content), not in_link
