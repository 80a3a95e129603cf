r"""Untrusted patterns: they run in linear time, with the results of the engine of Python."""

import re
import sys
import unicodedata
from importlib import import_module
from importlib.util import module_from_spec

import pytest
from conftest import decision
from hypothesis import given
from hypothesis import strategies as st

import jidomem
from jidomem.base.regex import MAX_PATTERN_CHARS, Unsearchable, compiled, lazy
from jidomem.errors import Failed, IntentRefused
from jidomem.runtime.location import init

ENDLESS = [
    r"(a+)+b",
    "a*" * 30 + "b",
    "a?" * 30 + "a" * 30 + "!",
    r"^(a|a)*b",
    "^" + "(a|ab)" * 9 + "b",
    r"^.*.*.*x",
    r"^((ab?)+)+c",
    r"^(a{0,50}){0,19}b",
    r"(\w+\s?)+:",
]
REFUSED = {
    "(?=a)b": "it looks around",
    "(?!a)b": "it looks around",
    "(?<=a)b": "it looks around",
    "(?<!a)b": "it looks around",
    r"(a)\1": "it refers back to a group",
    "(?P<x>a)(?P=x)": "it refers back to a group",
    "(a)(?(1)b|c)": "it asks whether a group took part",
    "(?>a+)b": "write a plain",
    "a*+": "write a plain",
    "(?x)a b": "leave it out",
    "(?#remark)a": "leave it out",
    r"\u00e9": "write the sign itself",
    "a{1001}": "repeat it at most",
    "(a{100}){100}": "repeat it at most",
    "[\\W_]": "write the characters out",
    r"\Q.*\E": "write the characters out",
    "x" * (MAX_PATTERN_CHARS + 1): "split it into several patterns",
    "(": "google/re2/wiki/Syntax",
    "\\": "google/re2/wiki/Syntax",
}


def finder(pattern):
    search = compiled(pattern).search
    return lambda text: search(text.encode("utf-8", "replace")) is not None


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_pattern_of_exponential_backtracking_ends_on_a_long_text(pattern):
    # no time is asserted: with backtracking this would not end before the test is killed
    assert not finder(pattern)("a" * 100_000)


@pytest.mark.parametrize("pattern", REFUSED)
def test_an_unsupported_pattern_is_refused_with_a_replacement(pattern):
    with pytest.raises(Unsearchable) as refusal:
        compiled(pattern)

    assert REFUSED[pattern] in refusal.value.hint
    assert str(refusal.value)


@pytest.mark.parametrize("flags", ["x", "q", "iq"])
def test_an_unknown_flag_is_refused(flags):
    with pytest.raises(Unsearchable, match="there is no flag"):
        compiled("a", flags)


@pytest.mark.parametrize("name", ["d", "w", "s"])
def test_character_classes_cover_all_scripts(name):
    assigned = [sign for sign in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(sign) not in ("Cn", "Cs")]
    matching = "".join(sign for sign in assigned if re.match(rf"\{name}", sign))
    others = "".join(sign for sign in assigned if not re.match(rf"\{name}", sign))

    for is_there, is_not in ((rf"\{name}", rf"\{name.upper()}"), (rf"[\{name}]", rf"[^\{name}]")):
        assert finder(rf"\A{is_there}+\Z")(matching)
        assert finder(rf"\A{is_not}+\Z")(others)
    if name != "w":  # in brackets \W is refused
        assert finder(rf"\A[\{name.upper()}]+\Z")(others)


SIGNS = "aB0 _-é\n."
IN_CLASS = st.sampled_from([*"aB0 _é.", r"\d", r"\D", r"\s", r"\S", r"\w", "a-c", "0-9", r"\-", r"\]"])
CLASS = st.builds(
    lambda no, parts: f"[{no}{''.join(parts)}]", st.sampled_from(["", "^"]), st.lists(IN_CLASS, min_size=1)
)
ATOM = st.one_of(
    st.sampled_from([*"aB0 _é-", r"\.", ".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", "^", "$", r"\A", r"\Z", r"\n"]),
    CLASS,
)
OFTEN = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{,2}", "{1,}", "{1,3}", "*?", "+?", "??", "{0,2}?"])


def grown(inner):
    group = st.builds("{}{})".format, st.sampled_from(["(", "(?:", "(?P<n>"]), inner)
    return st.one_of(
        st.builds("{}{}".format, group, OFTEN),
        st.builds("{}{}".format, inner, inner),
        st.builds("{}|{}".format, inner, inner),
    )


PATTERN = st.recursive(st.builds("{}{}".format, ATOM, OFTEN), grown, max_leaves=6)
FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}


@given(PATTERN, st.text(SIGNS, max_size=12).map(lambda text: text.rstrip("\n")), st.sets(st.sampled_from("ims")))
def test_any_supported_pattern_matches_as_in_python(pattern, text, flags):
    try:
        python_pattern = re.compile(pattern, sum(FLAGS[flag] for flag in flags))
        re2_pattern = compiled(pattern, "".join(flags))
    except (re.error, Unsearchable):
        return  # what either refuses is held to nothing

    is_match = python_pattern.search(text) is not None
    assert (re2_pattern.search(text) is not None) == is_match
    if not flags:
        assert finder(pattern)(text) == is_match


SHAPE = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
my:Shape a sh:NodeShape ; sh:targetClass jido:Decision ; sh:property
    [ sh:path jido:summary ; sh:message "A decision is written as a commit is." ; %s ] .
"""


def root_with(folder, constraint, config=""):
    root = init(folder, "p")
    (root / "shapes").mkdir()
    (root / "shapes" / "mine.ttl").write_text(SHAPE % constraint)
    with (root / "config.toml").open("a") as file:
        file.write(config)
    return root


def is_accepted(memory, summary):
    try:
        return memory.writer.submit_intent("p", decision(summary=summary)).status == "asserted"
    except IntentRefused as refusal:
        (violation,) = refusal.violations
        assert violation.message.startswith("A decision is written as a commit is. (shape ")
        return False


JUDGES = pytest.mark.parametrize("config", ["", 'judge = "pyshacl"\n'], ids=["compiled", "pyshacl"])


@JUDGES
def test_a_pattern_of_a_root_has_the_same_result_in_both_validators(tmp_path, config):
    pattern = 'sh:pattern "^(feat|fix): .+$"'
    with jidomem.open(root_with(tmp_path, pattern, config)) as memory:
        assert [is_accepted(memory, each) for each in ("feat: größer", "docs: größer", "FIX: it")] == [
            True,
            False,
            False,
        ]


@JUDGES
def test_flags_of_a_root_apply_in_both_validators(tmp_path, config):
    pattern = r'sh:pattern "^fix: .+\\.$" ; sh:flags "is"'
    with jidomem.open(root_with(tmp_path, pattern, config)) as memory:
        assert [is_accepted(memory, each) for each in ("FIX: one\ntwo.", "fix: one", "- \nfix: x.")] == [
            True,
            False,
            False,
        ]


@JUDGES
def test_a_pattern_of_exponential_backtracking_does_not_block_a_write(tmp_path, config):
    with jidomem.open(root_with(tmp_path, r'sh:pattern "^(\\w+ ?)+:" ; sh:maxLength 200', config)) as memory:
        assert not is_accepted(memory, "a" * 150)
        assert is_accepted(memory, "b" * 50 + ":")


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ('sh:pattern "(?=a)b"', "which RE2 does not run: invalid perl operator"),
        ('sh:pattern "a" ; sh:flags "x"', "has the flags .* there is no flag 'x'"),
        ("sh:pattern my:x", "which is not a text"),
    ],
)
def test_a_root_with_an_unsupported_pattern_is_not_opened(tmp_path, constraint, message):
    with pytest.raises(Failed, match=rf"mine\.ttl: .*{message}") as refusal:
        jidomem.open(root_with(tmp_path, constraint))

    assert refusal.value.code == "invalid_config"


def test_a_lazy_pattern_behaves_like_the_compiled_pattern():
    text, pattern, flags = "Ab1 aB22", r"(?P<letters>[a-b]+)\d", re.IGNORECASE
    compiled_at_once = re.compile(pattern, flags)

    assert lazy(pattern, flags).sub("x", text) == compiled_at_once.sub("x", text) == "x x2"
    assert lazy(pattern, flags).split(text) == compiled_at_once.split(text)
    late = lazy(pattern, flags)
    assert [match["letters"] for match in late.finditer(text)] == ["Ab", "aB"]
    assert (late.pattern, late.flags, late.groups) == (pattern, compiled_at_once.flags, 1)
    assert late.fullmatch(text) is None
    assert late.match(text)[0] == "Ab1"
    with pytest.raises(AttributeError):
        _ = late.missing
    with pytest.raises(re.error):
        lazy("(").search("a")


#: Modules with many patterns, which most processes that import them never use.
OF_CUES = ("models.offline", "models.keywords", "exchange.note_words", "exchange.note_statements", "exchange.note_page")
OF_CUES += ("exchange.adr_markdown", "exchange.memory_md")


@pytest.mark.parametrize("name", OF_CUES)
def test_a_module_of_many_patterns_compiles_none_when_it_is_imported(name, monkeypatch):
    spec, calls = import_module(f"jidomem.{name}").__spec__, []
    monkeypatch.setattr(re, "compile", lambda *pattern: calls.append(pattern))

    spec.loader.exec_module(module_from_spec(spec))

    assert calls == []
