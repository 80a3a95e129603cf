"""Conflicting active memories: the index finds the pairs that a comparison of every two finds."""

from itertools import combinations
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reader_world import new_index, reader_of, triples

from jidomem.rdf.vocab import graph_iri

GRAPH = graph_iri("demo")
KEYS = ["duplicate:1", "overlapping_decision:2", "contradiction:3", "identical:4", "similar_decision:5"]
#: Two properties with two values each, of one subject.
SLOTS = [{f"value:{slot}", f"value-is:{slot}{value}"} for slot in "ab" for value in "xy"]
LASTING = ("stale_supersession", "contradicting_value")


class World:
    """Memories in plain Python, each as (moment, ended memories, keys, is asserted, coexisting memories)."""

    def __init__(self, random):
        self.items, self.random = {}, random

    def grow(self, moment):
        """Record some memories in one commit; return the triples of the writer, sometimes with an unusual end."""
        text = ""
        for _ in range(self.random.randrange(1, 5)):
            name = f"{self.random.randrange(10**6):06d}"
            known = sorted(self.items)
            named = self.random.sample(known, min(len(known), self.random.choice([0, 0, 1, 1, 2])))
            ends = {old: self.random.choice(["superseded", "superseded", "invalidated"]) for old in named}
            keys = set(self.random.sample(KEYS, self.random.randrange(3)))
            keys |= self.random.choice([set(), set(), *SLOTS, SLOTS[0] | SLOTS[2], SLOTS[1] | SLOTS[3]])
            asserted = self.random.random() < 0.85
            coexisting = self.random.sample(known, min(len(known), self.random.choice([0, 0, 0, 3])))
            self.items[name] = (moment, ends, keys, asserted, coexisting)
            text += self._text(name)
        if self.random.random() < 0.2:
            text += f"m:{self.random.choice(sorted(self.items))} jido:invalidatedBy m:nowhere .\n"
        return triples(text)

    def _text(self, name):
        moment, ends, keys, asserted, coexisting = self.items[name]
        text = (
            f"m:{name} jido:summary '{name}' ; jido:appliesToProject p:demo ;"
            f" jido:recordedAt '{at(moment)}'^^xsd:dateTime ;"
            f" jido:hasAssertionStatus jido:{'Asserted' if asserted else 'Proposed'} .\n"
        )
        text += "".join(f"m:{name} jido:conflictKey '{key}' .\n" for key in sorted(keys))
        text += "".join(f"m:{name} jido:coexistsWith m:{other} .\n" for other in coexisting)
        return text + "".join(f"m:{old} jido:{how}By m:{name} .\n" for old, how in ends.items() if asserted)

    def disagreeing(self, moment):
        """Return the pairs in conflict at a moment, by comparing every two."""
        known = {name: entry for name, entry in self.items.items() if entry[0] <= moment and entry[3]}
        ended = {old for _, ends, *_ in known.values() for old in ends}
        pairs = set()
        for a, b in combinations(sorted(known.keys() - ended), 2):
            kinds = self._shared(known[a][2], known[b][2])
            withdrawn = {old for old, how in known[a][1].items() if how == known[b][1].get(old) == "invalidated"}
            common = self._origins(a, known) & self._origins(b, known)
            kinds |= {"stale_supersession"} if common - withdrawn else set()
            settled = a in known[b][4] or b in known[a][4]
            pairs |= {(a, b, kind) for kind in kinds if kind in LASTING or not settled}
        return pairs

    def _origins(self, name, known):
        """Return the first predecessors of *name*, and the memories that it or a predecessor withdrew."""
        ends = known[name][1]
        replaced = [old for old, how in ends.items() if how == "superseded" and old in known]
        return {*ends}.union(*(self._origins(old, known) for old in replaced))

    @staticmethod
    def _shared(first, second):
        shared = {key.split(":")[0] for key in first & second} - {"identical", "similar_decision", "value", "value-is"}
        clash = any(f"value:{slot}" in first & second and not any(f"value-is:{slot}{value}" in first & second
                    for value in "xy") for slot in "ab")  # fmt: skip
        return shared | ({"contradicting_value"} if clash else set())


def at(moment):
    return f"2026-01-01T00:00:{moment:02d}Z"


def listed(rows):
    return [(row["a"][-6:], row["b"][-6:], row["kind"]) for row in rows]


def paged(reader, **moments):
    rows, cursor = [], None
    while True:
        page = reader.ask_page("conflicts", project="demo", limit=2, cursor=cursor, **moments)
        rows, cursor = rows + page.rows, page.cursor
        if cursor is None:
            return rows


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_conflicts_at_any_moment_equal_a_comparison_of_every_pair(seed):
    world, index = World(Random(seed)), new_index()
    lasting = reader_of(index)

    for moment in range(6):
        index.apply(GRAPH, str(moment), world.grow(moment))
        for reader in (lasting, reader_of(index)):
            assert listed(reader.ask("conflicts", project="demo")) == sorted(world.disagreeing(moment))
            past = Random(seed).randrange(moment + 1)
            assert listed(paged(reader, as_of=at(past))) == sorted(world.disagreeing(past))


@settings(max_examples=6)
@given(st.integers(0, 2**32))
def test_the_disagreements_of_a_memory_equal_its_pairs_among_all_conflicts(seed):
    world, index = World(Random(seed)), new_index()
    for moment in range(6):
        index.apply(GRAPH, str(moment), world.grow(moment))
    reader = reader_of(index)

    for item in world.items:
        rows = reader.ask("disagreements", project="demo", item=f"https://jido.ai/memory/{item}")
        pairs = [(*sorted((item, row["other"][-6:])), row["kind"]) for row in rows]
        assert sorted(pairs) == sorted(pair for pair in world.disagreeing(5) if item in pair[:2])


def test_versions_of_one_memory_never_conflict_and_forks_of_it_do():
    """The end of the first version is not effective, so both are active; a fork was recorded later."""
    items = {"a": (0, "b"), "b": (1, "x"), "c": (3, None), "d": (4, None), "e": (5, None)}
    text = [
        f"m:{name} jido:summary '{name}' ; jido:appliesToProject p:demo ; jido:hasAssertionStatus jido:Asserted ;"
        f" jido:recordedAt '{at(moment)}'^^xsd:dateTime .\n"
        + (f"m:{name} jido:supersededBy m:{end} .\n" if end else "")
        for name, (moment, end) in items.items()
    ]
    index = new_index()
    for number, each in enumerate(text):
        index.apply(GRAPH, str(number), triples(each))
    index.apply(GRAPH, "x", triples("m:x jido:supersededBy m:c .\n"))  # m:x is not asserted
    index.apply(GRAPH, "d", triples("m:a jido:supersededBy m:d .\n"))

    for moment in range(6):
        rows = reader_of(index).ask("conflicts", project="demo", as_of=at(moment))
        pairs = {(row["a"][-1], row["b"][-1]) for row in rows}
        assert pairs == ({("b", "d"), ("c", "d")} if moment > 3 else set()), moment
