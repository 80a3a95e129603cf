"""The canonical layout of Turtle files in ontology/ and shapes/; run it with file names to rewrite them."""

import re
import sys
from pathlib import Path

import pyoxigraph as ox

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
PREFIXES = {
    "conv": "https://jido.ai/ontology/conversation-history#",
    "jido": "https://jido.ai/ontology#",
    "jidoka": "http://jidoka.ai/ontology#",
    "jidocore": "https://jido.ai/ontologies/core#",
    "jidomemory": "https://w3id.org/jido/memory/core#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "sh": "http://www.w3.org/ns/shacl#",
    "shape": "https://jido.ai/shapes#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
KINDS = (  # the order of subjects in a file, by the first of these types a subject has
    "owl:Ontology",
    "owl:Class",
    "owl:ObjectProperty",
    "owl:DatatypeProperty",
    "rdf:Property",
    "owl:AnnotationProperty",
    "owl:NamedIndividual",
)
_ORDER = """
rdf:type rdfs:subClassOf owl:disjointWith rdfs:subPropertyOf owl:inverseOf rdfs:domain rdfs:range
owl:equivalentClass owl:equivalentProperty skos:relatedMatch owl:differentFrom
sh:targetClass sh:targetSubjectsOf sh:property sh:path sh:inversePath sh:alternativePath sh:oneOrMorePath
sh:minCount sh:maxCount sh:nodeKind sh:class sh:datatype sh:minLength sh:pattern sh:in sh:equals sh:disjoint
sh:lessThanOrEquals sh:or sh:not sh:severity jido:checkSeverity
jido:atWriteOnly sh:message owl:versionIRI owl:versionInfo owl:imports rdfs:label skos:definition
skos:example skos:scopeNote
"""
PREDICATES = _ORDER.split()
ONE_LINE = {"rdf:type", "rdfs:subClassOf"}


class _Writer:
    def __init__(self, triples):
        self.of = {}
        for triple in triples:
            self.of.setdefault(triple.subject, {}).setdefault(self.name(triple.predicate), []).append(triple.object)

    def name(self, node):
        for prefix, base in PREFIXES.items():
            if node.value.startswith(base) and node.value[len(base) :].isalnum():
                return f"{prefix}:{node.value[len(base) :]}"
        return str(node)

    def term(self, node):
        if isinstance(node, ox.NamedNode):
            return self.name(node)
        if isinstance(node, ox.Literal):
            if node.datatype.value.rsplit("#")[-1] in {"integer", "boolean"}:
                return node.value
            return str(node)
        fields = self.of[node]
        if "rdf:first" in fields:
            return f"( {' '.join(self.term(item) for item in self.members(node))} )"
        return "[ " + " ; ".join(f"{name} {self.values(name, fields[name])}" for name in self.ordered(fields)) + " ]"

    def members(self, node):
        while isinstance(node, ox.BlankNode):
            yield self.of[node]["rdf:first"][0]
            node = self.of[node]["rdf:rest"][0]

    def ordered(self, fields):
        return sorted(fields, key=lambda name: (PREDICATES.index(name), name))

    def values(self, name, nodes):
        kinds = {kind: rank for rank, kind in enumerate(KINDS)}
        texts = sorted((self.term(node) for node in nodes), key=lambda text: (kinds.get(text, 99), text))
        return (" , " if name in ONE_LINE else " ,\n        ").join(texts)

    def block(self, subject):
        fields = self.of[subject]
        head = [f"{name if name != 'rdf:type' else 'a'} {self.values(name, fields[name])}"
                for name in self.ordered(fields) if name in ONE_LINE]  # fmt: skip
        rest = [f"{name} {self.values(name, fields[name])}" for name in self.ordered(fields) if name not in ONE_LINE]
        first = " ; ".join(head) if head else rest.pop(0)
        return f"{self.name(subject)} {first}" + "".join(f" ;\n    {part}" for part in rest) + " .\n"

    def rank(self, subject):
        """The order of a subject: ontology terms by kind, a node shape before its property shapes."""
        types = [self.term(node) for node in self.of[subject].get("rdf:type", [])]
        kind = min((KINDS.index(name) for name in types if name in KINDS), default=len(KINDS))
        name = self.name(subject)
        owner = next((self.name(s) for s, fields in self.of.items() if subject in fields.get("sh:property", ())), name)
        return kind, owner.casefold(), owner != name, name.casefold(), name

    def document(self):
        subjects = sorted((s for s in self.of if isinstance(s, ox.NamedNode)), key=self.rank)
        body = "\n".join(self.block(subject) for subject in subjects)
        used = [prefix for prefix in sorted(PREFIXES) if f"{prefix}:" in self.prefixed_names(body)]
        width = max(map(len, used)) + 1
        header = "".join(f"@prefix {prefix + ':':<{width}} <{PREFIXES[prefix]}> .\n" for prefix in used)
        return f"{header}\n{body}"

    @staticmethod
    def prefixed_names(body):
        """The prefixes outside quoted text and angle brackets."""
        bare = re.sub(r'"(?:[^"\\]|\\.)*"|<[^>]*>', "", body)
        return set(re.findall(r"\b[a-z]+:", bare))


def serialise(triples):
    """Return *triples* as a Turtle document in the canonical order and layout."""
    return _Writer(triples).document()


def parse(path):
    """Return the triples of a Turtle file, read strictly."""
    return list(ox.parse(path=str(path), format=ox.RdfFormat.TURTLE))


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:]):
        file.write_text(serialise([quad.triple for quad in parse(file)]), "utf-8")
