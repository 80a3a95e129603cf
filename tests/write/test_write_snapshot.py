"""The rows for judging intents: those of the index and those accepted since, each queried once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import TYPE, jido
from jidomem.write.snapshot import WriteSnapshot

ITEM_MARK = jido("hasAssertionStatus")
SUBJECTS = [iri(f"urn:x:{n}") for n in range(3)]
VALUES = [jido("Asserted"), jido("Proposed"), *SUBJECTS]
PROPERTIES = [TYPE, ITEM_MARK, jido("supersededBy"), jido("invalidatedBy"), jido("about")]
ROWS = [(s, p, o) for s in SUBJECTS for p in PROPERTIES for o in VALUES]


class Index:
    """Rows, and the number of queries of them."""

    def __init__(self, rows=()):
        self.rows, self.asked = [*dict.fromkeys(rows)], []

    def __call__(self, *pattern):
        self.asked.append(pattern)
        return [row for row in self.rows if all(part in (None, said) for part, said in zip(pattern, row, strict=True))]


def answers(view, rows):
    """The answers of *view* on everything, and those expected from *rows* alone."""
    held = {(s, p): {o for a, b, o in rows if (a, b) == (s, p)} for s in SUBJECTS for p in PROPERTIES}
    ended = {s: bool(held[s, jido("supersededBy")] or held[s, jido("invalidatedBy")]) for s in SUBJECTS}
    for s in SUBJECTS:
        yield view.is_item(s), bool(held[s, ITEM_MARK])
        yield view.has_ended(s), ended[s]
        yield view.is_current(s), jido("Asserted") in held[s, ITEM_MARK] and not ended[s]
        yield view.types(s), held[s, TYPE]
        yield view.mentions(s), any(s in (a, o) for a, _, o in rows)
        yield view.describes(s), any(s == a for a, _, _ in rows)
        yield sorted(view.about(s)), sorted(row for row in rows if row[0] == s)
        for p in PROPERTIES:
            yield sorted(view.objects(s, p)), sorted(held[s, p])
            first = view.first(s, p)
            yield first in held[s, p] if held[s, p] else first is None, True
            yield view.subjects(p, s), sorted(a for a, b, o in rows if (b, o) == (p, s))


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(ROWS), st.sampled_from(["index", "new", "late", "ask"])), max_size=12))
def test_a_view_says_what_the_index_said_and_what_was_accepted_whatever_was_asked_before(steps):
    index = Index(row for row, how in steps if how == "index")
    view, rows = WriteSnapshot(index), set(index.rows)
    for row, how in steps:
        if how == "ask":
            view.objects(*row[:2]) if row[2] in SUBJECTS else view.properties(row[0])
        elif how != "index" and row not in rows:
            view.add([row])
            rows.add(row)
            index.rows += [row] if how == "late" else []  # the commit it is in was applied

    for number in range(2):
        for said, expected in answers(view, rows):
            assert said == expected, number


def test_what_is_known_is_asked_for_once():
    index = Index(ROWS)
    view = WriteSnapshot(index)
    for _ in range(3):
        view.properties(SUBJECTS[0])
        view.objects(SUBJECTS[0], TYPE)
        view.describes(SUBJECTS[0])
        view.types(SUBJECTS[1])
        view.describes(SUBJECTS[1])
        view.subjects(TYPE, SUBJECTS[2])
    assert index.asked == [
        (SUBJECTS[0], None, None), (SUBJECTS[1], TYPE, None), (None, TYPE, SUBJECTS[2]),
    ]  # fmt: skip
    assert view.size == len(VALUES) * len(PROPERTIES) + 2


def test_what_is_new_is_not_looked_up_and_counts_as_what_is_kept():
    index = Index()
    view = WriteSnapshot(index)
    view.add_new(SUBJECTS[0], [(SUBJECTS[0], TYPE, jido("Fact")), (SUBJECTS[0], ITEM_MARK, VALUES[0])])
    view.add_new(SUBJECTS[1], ())

    assert (view.mentions(SUBJECTS[0]), view.mentions(SUBJECTS[1])) == (True, False)
    assert view.types(SUBJECTS[0]) == {jido("Fact")}
    assert view.is_current(SUBJECTS[0])
    assert view.objects(SUBJECTS[1], TYPE) == []
    assert (index.asked, view.size) == ([], 2)


def test_what_others_get_is_not_what_the_view_keeps():
    view = WriteSnapshot(Index([(SUBJECTS[0], TYPE, SUBJECTS[1])]))
    view.objects(SUBJECTS[0], TYPE).append("changed")
    assert view.objects(SUBJECTS[0], TYPE) == [SUBJECTS[1]]


def test_instances_have_the_value_and_the_class_whether_stored_or_accepted_since_or_both():
    fact, task, place = jido("Fact"), jido("Task"), '"src/a.py"'
    stored = [(SUBJECTS[0], TYPE, fact), (SUBJECTS[0], jido("about"), place), (SUBJECTS[1], TYPE, task)]
    index = Index([*stored, (SUBJECTS[1], jido("about"), place)])
    new = [(SUBJECTS[2], TYPE, fact), (SUBJECTS[2], jido("about"), place)]

    def find(predicate, value, classes):
        named = {s for s, p, o in index.rows if (p, o) == (predicate, value)}
        return [s for s, p, o in index.rows if p == TYPE and o in classes and s in named]

    for view in (WriteSnapshot(index), WriteSnapshot(index, find)):
        assert view.instances(jido("about"), place, frozenset([fact])) == [SUBJECTS[0]]
        view.add(new)
        assert view.instances(jido("about"), place, frozenset([fact])) == [SUBJECTS[0], SUBJECTS[2]]
        assert view.instances(jido("about"), place, frozenset([task])) == [SUBJECTS[1]]
        index.rows += new  # the commit it is in was applied
        assert view.instances(jido("about"), place, frozenset([fact])) == [SUBJECTS[0], SUBJECTS[2]]
        del index.rows[-2:]
