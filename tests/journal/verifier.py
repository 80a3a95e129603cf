"""An independent reader of the journal format, written from docs/journal-format.md alone; imports nothing of jidomem.

Run it over commit files and packs: python tests/journal/verifier.py FILE...
"""

import re
import sys
from hashlib import blake2b
from pathlib import Path

HEADER = """\
# jidomem journal 1
@prefix jido: <https://jido.ai/ontology#> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
SPACES = dict(re.findall(r"@prefix (\w+): <(.*)> \.", HEADER))
JIDO, XSD, RDF_TYPE = SPACES["jido"], SPACES["xsd"], f"<{SPACES['rdf']}type>"
ONCE = {
    "committer": r"<[^<>]*>",
    "inStream": r"<[^<>]*>",
    "journalFormat": rf'"1"\^\^<{XSD}integer>',
    "ontologyVersion": r'"([^"\\]|\\.)*"',
    "position": rf'"[1-9][0-9]*"\^\^<{XSD}integer>',
    "recordedAt": rf'"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{6}}Z"\^\^<{XSD}dateTime>',
}
ESCAPE = r'\\(?:[btnfr"\\]|u00(?:0[0-7BE-F]|1[0-9A-F]|7F)|uFFF[EF])'
IRI = r"<[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*>"
NAME = r"(?:jido|prov|rdf|rdfs|xsd):[A-Za-z_][A-Za-z0-9_-]*"
TEXT = rf'"(?:[^"\\\x00-\x1f\x7f\ufffe\uffff]|{ESCAPE})*"'
TERM = re.compile(rf"({IRI})|({NAME})|({TEXT})(@[a-z]{{1,8}}(?:-[a-z0-9]{{1,8}})*|\^\^(?:{IRI}|{NAME}))?")


class Wrong(Exception):
    pass


def demand(condition, message):
    if not condition:
        raise Wrong(message)


def canonical(written):
    """The canonical N-Triples form of a term as a commit file writes it."""
    match = TERM.fullmatch(written)
    demand(match, f"no term: {written!r}")
    whole, name, text, tail = match.groups()
    if text:
        demand(tail != "^^xsd:string", "xsd:string is never written")
        return text + (f"^^{canonical(tail[2:])}" if tail and tail[0] == "^" else tail or "")
    if name:
        prefix, local = name.split(":")
        return f"<{SPACES[prefix]}{local}>"
    short = any(re.fullmatch(re.escape(space) + "[A-Za-z_][A-Za-z0-9_-]*", whole[1:-1]) for space in SPACES.values())
    demand(not short, f"has a prefixed name: {whole}")
    return whole


def triples_of(lines):
    """The triples of the blocks in their order, which must be the one of the format."""
    triples, subject = [], None
    for line in lines:
        if line == "":
            demand(subject is None, "a block is not ended")
        elif not line.startswith("    "):
            demand(subject is None, f"a block inside a block: {line}")
            subject = canonical(line)
        else:
            match = re.fullmatch(r"    (\S+) (.*) ([;.])", line)
            demand(match and subject, f"not a triple: {line!r}")
            verb, value, end = match.groups()
            demand(verb != "rdf:type", "rdf:type is written a")
            triples.append((subject, RDF_TYPE if verb == "a" else canonical(verb), canonical(value)))
            if end == ".":
                subject = None
    own = triples[0][0]
    order = [(s != own, s, p != RDF_TYPE, p, o) for s, p, o in triples]
    demand(order == sorted(set(order)), "not in order")
    blocks = sum(1 for line in lines if line == "")
    demand(subject is None and blocks == len({s for s, _, _ in triples}) and lines[0] == "", "blocks are not one each")
    return triples


def digest_lines(triples, own):
    this = "<urn:jido:this>"
    demand(not any(this in triple for triple in triples), "the placeholder stands in the file")
    return [f"{this if s == own else s} {p} {this if o == own else o} ." for s, p, o in triples]


def keyed(key, line):
    return blake2b(line.encode("utf-8"), key=key, digest_size=32).digest()


def identity(parents, leaves):
    whole = b"jidomem commit 1\n"
    for group in (parents, leaves):
        whole += len(group).to_bytes(8, "big") + b"".join(sorted(group))
    return blake2b(whole, digest_size=32).hexdigest()


def read(data):
    """(id, parents, triples, secrets) of a document; Wrong unless it has the format and the right id."""
    text = data.decode("utf-8")
    demand(text.startswith(HEADER) and text.endswith(".\n") and "\r" not in text, "header or end")
    lines = text[len(HEADER) : -1].split("\n")
    secrets = lines[: lines.index("")]
    triples = triples_of(lines[lines.index("") :])
    own = triples[0][0]
    claimed = re.fullmatch("<urn:jido:commit:([0-9a-f]{64})>", own)
    demand(claimed, "the first block is not the commit's")
    parents = describe([(p, o) for s, p, o in triples if s == own])
    plain = digest_lines(triples, own)
    hexes = [re.fullmatch("# (nonce|salt|leaf) ([0-9a-f]{64})", line) for line in secrets]
    demand(hexes and all(hexes), "nonce, salts or leaves")
    kinds, values = [m[1] for m in hexes], [bytes.fromhex(m[2]) for m in hexes]
    if kinds == ["nonce"]:
        leaves = [keyed(keyed(values[0], line), line) for line in plain]
    else:
        count = len(plain)
        demand(kinds == ["salt"] * count + ["leaf"] * (len(kinds) - count) and len(kinds) > count, "salts and leaves")
        demand(values[count:] == sorted(values[count:]), "leaves in order")
        leaves = [keyed(salt, line) for salt, line in zip(values, sorted(plain), strict=False)] + values[count:]
    demand(identity(parents, leaves) == claimed[1], "the id is not that of the content")
    return claimed[1], parents, triples, secrets


def read_pack(name, data, bad=None):
    """The results of `read` for each commit of a pack, in order; Wrong unless all fits the format page."""
    whole = data.decode("utf-8")
    lines = whole.split("\n")
    demand(lines[0] == "# jidomem pack 1", "not a pack")
    top, rest = [], lines[1:]
    for key in ("commits", "first", "last", "tip", "after", "table", "blocks"):
        while rest[0].startswith(f"# {key} "):
            top.append((key, rest.pop(0).split(" ")[2:]))
    fields = {key: [values for label, values in top if label == key] for key, _ in top}
    once = [key for key in fields if key not in ("tip", "after")]
    demand(once == ["commits", "first", "last", "table", "blocks"], "the lines of the top")
    demand(all(len(fields[key]) == 1 for key in once), "a line of the top is there twice")
    header = "".join(f"{line}\n" for line in lines[: 1 + len(top)]).encode()
    (length, claimed), (blocks,) = fields["table"][0], fields["blocks"][0]
    table = data[len(header) : len(header) + int(length)]
    demand(blake2b(table, digest_size=32).hexdigest() == claimed, "the digest of the table")
    first = fields["first"][0][0]
    digest = blake2b(header, digest_size=32).hexdigest()[:12]
    demand(name == f"pack-{first.replace('-', '').replace(':', '')}-{digest}.ttl", "the name")
    demand(len(data) == len(header) + len(table) + int(blocks), "the length")
    rows = [row.split(" ") for row in table.decode().split("\n")[:-1]]
    place, results, tips, named = len(header) + len(table), [], [], set()
    for row in rows:
        mark, kind, identity, moment, position, size, _, *parents = row
        demand((mark, kind) == ("#", "commit"), "a line of the table")
        try:
            results.append(of_row(row, data[place : place + int(size)]))
        except (Wrong, ValueError, LookupError):
            if bad is None:
                raise
            bad.append(row)
        place += int(size)
        tips.append([identity, moment, position])
        named |= set(parents)
    demand(place == len(data) and [int(fields["commits"][0][0])] == [len(rows)], "how many")
    demand([(row[3], row[2]) for row in rows] == sorted({(row[3], row[2]) for row in rows}), "the order")
    demand([first, fields["last"][0][0]] == [rows[0][3], rows[-1][3]], "first and last")
    demand(fields["tip"] == [tip for tip in tips if tip[0] not in named], "the tips")
    outside = sorted(named - {row[2] for row in rows})
    demand(fields.get("after", []) == [[parent] for parent in outside], "what it comes after")
    return results


def of_row(row, document):
    """The result of `read` for a document of a pack, which must fit its line of the table."""
    _, _, identity, moment, position, _, form, *parents = row
    commit = read(document)
    said = {p: o for s, p, o in commit[2] if s == f"<urn:jido:commit:{identity}>"}
    demand(commit[0] == identity, "the id in the table")
    demand(said[f"<{JIDO}recordedAt>"][1:28] == moment, "the moment in the table")
    demand(said[f"<{JIDO}position>"].split('"')[1] == position, "the position in the table")
    demand(sorted(parent.hex() for parent in commit[1]) == parents, "the parents in the table")
    demand(form == ("whole" if commit[3][0].startswith("# nonce") else "redacted"), "the form in the table")
    return commit


def describe(said):
    """The ids of the parents, from a sound description."""
    for name, pattern in ONCE.items():
        found = [value for predicate, value in said if predicate == f"<{JIDO}{name}>"]
        demand(len(found) == 1 and re.fullmatch(pattern, found[0]), f"jido:{name}: {found}")
    types = {value for predicate, value in said if predicate == RDF_TYPE}
    demand({f"<{JIDO}Commit>", f"<{SPACES['prov']}Activity>"} <= types, "the types")
    parents = [value for predicate, value in said if predicate == f"<{JIDO}parent>"]
    demand(all(re.fullmatch("<urn:jido:commit:[0-9a-f]{64}>", parent) for parent in parents), "the parents")
    return [bytes.fromhex(parent[-65:-1]) for parent in parents]


def redact(data, gone):
    """The redacted form of a plain document, without the triples for which gone(triple) is true."""
    _, _, triples, secrets = read(data)
    nonce = bytes.fromhex(secrets[0].split()[-1])
    own = triples[0][0]
    salts, leaves = {}, []
    for triple, line in zip(triples, digest_lines(triples, own), strict=True):
        if gone(triple):
            leaves.append(keyed(keyed(nonce, line), line).hex())
        else:
            salts[line] = keyed(nonce, line).hex()
    comments = [f"# salt {salts[line]}" for line in sorted(salts)] + [f"# leaf {leaf}" for leaf in sorted(leaves)]
    remaining = [triple for triple in triples if not gone(triple)]
    return (
        HEADER
        + "\n".join(comments)
        + "\n"
        + "".join(block(remaining, s) for s in dict.fromkeys(t[0] for t in remaining))
    ).encode()


def block(triples, subject):
    lines = [f"    {'a' if p == RDF_TYPE else short(p)} {short(o)}" for s, p, o in triples if s == subject]
    return f"\n{short(subject)}\n" + " ;\n".join(lines) + " .\n"


def short(term):
    """A canonical term as a file writes it."""
    text, mark, name = term.rpartition("^^") if term.startswith('"') and term.endswith(">") else ("", "", term)
    for prefix, space in SPACES.items():
        match = re.fullmatch(f"<{re.escape(space)}([A-Za-z_][A-Za-z0-9_-]*)>", name)
        if match:
            return f"{text}{mark}{prefix}:{match[1]}"
    return term


if __name__ == "__main__":
    for given in sys.argv[1:]:
        path = Path(given)
        if path.name.startswith("pack-"):
            for commit in read_pack(path.name, path.read_bytes()):
                print(commit[0], given)
        else:
            print(read(path.read_bytes())[0], given)
