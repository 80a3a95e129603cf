"""Random queries: patterns of every kind over the contents of a memory, and datasets of every kind."""

from jidomem.rdf.vocab import graphs_of

GRAPHS = graphs_of("p")
PREFIXES = (
    "PREFIX jido: <https://jido.ai/ontology#> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>"
    " PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
)
PROPERTIES = (
    *("rdf:type", "jido:summary", "jido:topic", "jido:about", "jido:assertedBy", "jido:hasConfidence"),
    *("jido:hasTaskStatus", "jido:supersedes", "jido:supersededBy", "jido:recordedAt", "rdfs:label", "jido:filePath"),
)
COMMON = PROPERTIES[:2] + PROPERTIES[4:6]
PATHS = ("rdf:type/rdfs:subClassOf*", "jido:supersedes|^jido:supersedes", "jido:supersededBy?",
         "!(rdf:type|jido:summary)", "rdfs:subClassOf+", "^jido:assertedBy/jido:topic")  # fmt: skip
VALUES = ("jido:Fact", "jido:Task", "jido:High", "'limit'", "'task 1'", "'src/a.py'", "<https://jido.ai/agents/ana>")
TESTS = ("isIRI(?b)", "CONTAINS(STR(?b), 'a')", "REGEX(STR(?b), '^T', 'i')", "STRLEN(STR(?b)) > 9", "BOUND(?c)",
         "?b != jido:High", "?a != ?b", "?b IN (jido:Fact, 'limit')", "LANG(?b) = 'en'", "?b < '2027'")  # fmt: skip


def queries(chance, count):
    """Yield *count* queries: the text, the text with its dataset written out, and the dataset of the request."""
    for _ in range(count):
        head, body = _form(chance)
        default, named = _dataset(chance)
        clauses = "".join(f" FROM <{each}>" for each in default) + "".join(f" FROM NAMED <{each}>" for each in named)
        whole, in_request = f"{PREFIXES}{head}{clauses} {body}", chance.random() < 0.5
        if in_request:
            yield f"{PREFIXES}{head} {body}", whole, default, named
        else:
            yield whole, whole, default, named


def _dataset(chance):
    kind = chance.randrange(6)
    default = [GRAPHS[0], *chance.sample(GRAPHS[1:], chance.randint(0, 2))] if kind in (1, 3) else []
    named = [GRAPHS[0], *chance.sample(GRAPHS[1:], chance.randint(0, 2))] if kind in (2, 3) else []
    return default, named


def _form(chance):
    group = _group(chance, chance.randint(0, 2))
    return chance.choice([
        ("SELECT *", group),
        ("SELECT DISTINCT ?a ?b ?c", group),
        ("SELECT ?b (COUNT(*) AS ?n) (COUNT(DISTINCT ?a) AS ?m)", f"{group} GROUP BY ?b HAVING (COUNT(*) > 1)"),
        ("SELECT ?a ?b ?c", f"{group} ORDER BY DESC(?a) ?b ?c LIMIT {chance.randint(1, 30)}"),
        ("SELECT DISTINCT ?a ?b", f"{group} ORDER BY STR(?a) ?a ?b OFFSET 2"),
        ("ASK", group),
        ("CONSTRUCT { ?a jido:topic ?b . ?b rdfs:label 'x'@en }", f"WHERE {group}"),
        ("DESCRIBE ?a", f"WHERE {group}"),
    ])  # fmt: skip


def _group(chance, depth):
    parts = [_triples(chance)]
    for _ in range(chance.randint(0, 2) if depth else 0):
        parts.append(_part(chance, depth - 1))
    return f"{{ {' '.join(parts)} }}"


def _part(chance, depth):
    group = _group(chance, depth)
    return chance.choice([
        f"OPTIONAL {group}",
        f"MINUS {group}",
        f"{{ {group} UNION {_group(chance, depth)} }}",
        f"FILTER EXISTS {group}",
        f"FILTER NOT EXISTS {group}",
        f"FILTER ({chance.choice(TESTS)})",
        f"FILTER ({chance.choice(TESTS)} || !({chance.choice(TESTS)}))",
        f"GRAPH ?g {group}",
        f"GRAPH <{chance.choice(GRAPHS)}> {group}",
        f"VALUES ?b {{ {chance.choice(VALUES)} {chance.choice(VALUES)} UNDEF }}",
        f"{{ SELECT ?a (COUNT(?b) AS ?n{chance.randrange(99)}) {group} GROUP BY ?a }}",
        f"BIND (CONCAT('<', STR(?a), '>') AS ?d{chance.randrange(9999)})",
    ])  # fmt: skip


def _triples(chance):
    """One, two or three connected patterns."""
    patterns = [f"?a {chance.choice(PROPERTIES + 3 * COMMON)} ?b ."]
    if chance.random() < 0.3:
        patterns.append(f"?a {chance.choice(COMMON + PATHS)} ?c .")
    if chance.random() < 0.1:
        patterns.append(f"?a {chance.choice(PROPERTIES)} {chance.choice(VALUES)} .")
    return " ".join(patterns)
