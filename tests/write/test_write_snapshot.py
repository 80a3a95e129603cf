"""The write snapshot: rows of the index and rows added since, each pattern queried once."""

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
    """Indexed rows that record the queries of them."""

    def __init__(self, rows=()):
        self.rows, self.queries = [*dict.fromkeys(rows)], []

    def __call__(self, *pattern):
        self.queries.append(pattern)
        return [row for row in self.rows if all(part in (None, term) for part, term in zip(pattern, row, strict=True))]


def answers(snapshot, rows):
    """Yield each answer of *snapshot* and the one expected from *rows*."""
    values = {(s, p): {o for a, b, o in rows if (a, b) == (s, p)} for s in SUBJECTS for p in PROPERTIES}
    has_ended = {s: bool(values[s, jido("supersededBy")] or values[s, jido("invalidatedBy")]) for s in SUBJECTS}
    for s in SUBJECTS:
        yield snapshot.is_item(s), bool(values[s, ITEM_MARK])
        yield snapshot.has_ended(s), has_ended[s]
        yield snapshot.is_current(s), jido("Asserted") in values[s, ITEM_MARK] and not has_ended[s]
        yield snapshot.types(s), values[s, TYPE]
        yield snapshot.describes(s), any(s == a for a, _, _ in rows)
        yield sorted(snapshot.about(s)), sorted(row for row in rows if row[0] == s)
        for p in PROPERTIES:
            yield sorted(snapshot.objects(s, p)), sorted(values[s, p])
            first = snapshot.first(s, p)
            yield first in values[s, p] if values[s, p] else first is None, True
            yield snapshot.subjects(p, s), sorted(a for a, b, o in rows if (b, o) == (p, s))


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(ROWS), st.sampled_from(["index", "new", "late", "ask"])), max_size=12))
def test_a_snapshot_returns_indexed_and_added_rows_whatever_was_queried_before(steps):
    index = Index(row for row, origin in steps if origin == "index")
    snapshot, rows = WriteSnapshot(index), set(index.rows)
    for row, origin in steps:
        if origin == "ask":
            snapshot.objects(*row[:2]) if row[2] in SUBJECTS else snapshot.properties(row[0])
        elif origin != "index" and row not in rows:
            snapshot.add([row])
            rows.add(row)
            index.rows += [row] if origin == "late" else []  # its commit was applied

    for number in range(2):
        for answer, expected in answers(snapshot, rows):
            assert answer == expected, number


def test_a_known_pattern_is_queried_once():
    index = Index(ROWS)
    snapshot = WriteSnapshot(index)
    for _ in range(3):
        snapshot.properties(SUBJECTS[0])
        snapshot.objects(SUBJECTS[0], TYPE)
        snapshot.describes(SUBJECTS[0])
        snapshot.types(SUBJECTS[1])
        snapshot.describes(SUBJECTS[1])
        snapshot.subjects(TYPE, SUBJECTS[2])
    assert index.queries == [
        (SUBJECTS[0], None, None), (SUBJECTS[1], TYPE, None), (None, TYPE, SUBJECTS[2]),
    ]  # fmt: skip
    assert snapshot.size == len(VALUES) * len(PROPERTIES) + 2


def test_a_new_subject_is_not_queried_and_counts_in_the_size():
    index = Index()
    snapshot = WriteSnapshot(index)
    snapshot.add_new(SUBJECTS[0], [(SUBJECTS[0], TYPE, jido("Fact")), (SUBJECTS[0], ITEM_MARK, VALUES[0])])
    snapshot.add_new(SUBJECTS[1], ())

    assert (snapshot.describes(SUBJECTS[0]), snapshot.describes(SUBJECTS[1])) == (True, False)
    assert snapshot.types(SUBJECTS[0]) == {jido("Fact")}
    assert snapshot.is_current(SUBJECTS[0])
    assert snapshot.objects(SUBJECTS[1], TYPE) == []
    assert (index.queries, snapshot.size) == ([], 2)


def test_a_returned_list_is_a_copy():
    snapshot = WriteSnapshot(Index([(SUBJECTS[0], TYPE, SUBJECTS[1])]))
    snapshot.objects(SUBJECTS[0], TYPE).append("changed")
    assert snapshot.objects(SUBJECTS[0], TYPE) == [SUBJECTS[1]]


def test_instances_are_found_by_value_and_class_among_indexed_and_added_rows():
    fact, task, path = jido("Fact"), jido("Task"), '"src/a.py"'
    stored = [(SUBJECTS[0], TYPE, fact), (SUBJECTS[0], jido("about"), path), (SUBJECTS[1], TYPE, task)]
    index = Index([*stored, (SUBJECTS[1], jido("about"), path)])
    new = [(SUBJECTS[2], TYPE, fact), (SUBJECTS[2], jido("about"), path)]

    def find(predicate, value, classes):
        subjects = {s for s, p, o in index.rows if (p, o) == (predicate, value)}
        return [s for s, p, o in index.rows if p == TYPE and o in classes and s in subjects]

    for snapshot in (WriteSnapshot(index), WriteSnapshot(index, find)):
        assert snapshot.instances(jido("about"), path, frozenset([fact])) == [SUBJECTS[0]]
        snapshot.add(new)
        assert snapshot.instances(jido("about"), path, frozenset([fact])) == [SUBJECTS[0], SUBJECTS[2]]
        assert snapshot.instances(jido("about"), path, frozenset([task])) == [SUBJECTS[1]]
        index.rows += new  # its commit was applied
        assert snapshot.instances(jido("about"), path, frozenset([fact])) == [SUBJECTS[0], SUBJECTS[2]]
        del index.rows[-2:]
