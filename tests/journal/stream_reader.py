"""A second reader of whole streams, written from docs/journal-format.md alone; imports nothing of jidomem.

Run it over the folder of a stream: python tests/journal/stream_reader.py FOLDER
"""

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import verifier

JIDO = verifier.JIDO


@dataclass(frozen=True)
class Read:
    """One commit: its document, its description, and its form."""

    id: str
    moment: str
    position: int
    parents: tuple[str, ...]
    graph: str
    triples: tuple[tuple[str, str, str], ...]
    redacted: bool
    leaves: tuple[str, ...] = ()  # of each triple

    @property
    def key(self):
        return self.moment, self.id

    @property
    def stem(self):
        return f"{self.moment.replace('-', '').replace(':', '')}-{self.id[:12]}"


@dataclass
class Told:
    """The content of a folder: its commits in order, the names of the damaged files, and the heads."""

    commits: list[Read]
    damaged: set[str]
    heads: list[str]

    def statements(self):
        """Return the statements of the stream, including the descriptions of its commits, without cleared ones."""
        cleared = set()
        for commit in self.commits:
            if any(p == f"<{JIDO}clears>" and s == own(commit) for s, p, _ in commit.triples):
                cleared |= {commit.id, *self.ancestors(commit)}
        return {triple for commit in self.commits if commit.id not in cleared for triple in commit.triples}

    def ancestors(self, commit):
        by_id, todo, ancestors = {each.id: each for each in self.commits}, [*commit.parents], set()
        while todo:
            identity = todo.pop()
            if identity in by_id and identity not in ancestors:
                ancestors.add(identity)
                todo += by_id[identity].parents
        return ancestors


def own(commit):
    return f"<urn:jido:commit:{commit.id}>"


def read(folder):
    """Return all commits in the files of *folder*, each verified; damaged files are named and skipped."""
    commits_by_id, damaged, aside, bad = {}, set(), set(), {}
    for path in sorted(Path(folder).iterdir(), reverse=True):  # packs first: the last of two redacted forms counts
        if path.name.startswith("."):
            continue
        if path.name.endswith(".ttl.aside"):
            aside.add(path.name.split("-")[1][:12])
        elif path.name.endswith(".ttl"):
            try:
                for commit in in_file(path, bad):
                    if commit.id not in commits_by_id or commit.redacted:
                        commits_by_id[commit.id] = commit
            except (verifier.Wrong, ValueError, LookupError):
                damaged.add(path.name)
    commits = sorted(commits_by_id.values(), key=lambda commit: commit.key)
    damaged |= {commit.stem for commit in commits if not follows(commit, commits_by_id, aside)}
    parents_named = {parent for commit in commits for parent in commit.parents}
    parents_named |= {parent for row in bad.values() for parent in row[7:]}
    hidden = {row[2] for row in bad.values() if row[6] == "redacted" and not is_redacted(commits_by_id.get(row[2]))}
    hidden |= {commit.id for commit in commits if f"{commit.stem}.redacted.ttl" in damaged}
    visible = without_ordered([commit for commit in commits if commit.id not in hidden])
    damaged |= {name for name, row in bad.items() if row[2] not in {commit.id for commit in visible}}
    known = [*commits_by_id, *(row[2] for row in bad.values())]  # heads follow from the tables of sound packs
    return Told(visible, damaged, [identity for identity in dict.fromkeys(known) if identity not in parents_named])


def without_ordered(commits):
    """Return the commits, in any form, without the triples that one of them redacts."""
    redacted = {}
    for commit in commits:
        properties = [(p, o) for s, p, o in commit.triples if s == own(commit)]
        leaves = {o[1:-1] for p, o in properties if p == f"<{JIDO}redactedLeaf>"}
        for p, o in properties:
            if p == f"<{JIDO}redacts>":
                redacted.setdefault(o[len("<urn:jido:commit:") : -1], set()).update(leaves)
    result = []
    for commit in commits:
        remaining = [n for n, leaf in enumerate(commit.leaves) if leaf not in redacted.get(commit.id, ())]
        if len(remaining) < len(commit.triples):
            triples = tuple(commit.triples[n] for n in remaining)
            commit = replace(commit, triples=triples, leaves=tuple(commit.leaves[n] for n in remaining), redacted=True)
        result.append(commit)
    return result


def is_redacted(commit):
    return commit is not None and commit.redacted


def graph_of(folder):
    """Return the graph of the stream in *folder*, by the two last parts of its path."""
    names = {"memory": "long-term-context", "history": "conversation-history", "codebase": "elixir-codebase"}
    graph = names.get(folder.name, "system-knowledge")
    return f"https://jido.ai/projects/{folder.parent.name}/graphs/{graph}"


def in_file(path, bad):
    """Return the commits of a file with a valid name; *bad* collects the rows of a sound pack with wrong documents."""
    if path.name.startswith("pack-"):
        wrong = []
        commits = [shaped(each) for each in verifier.read_pack(path.name, path.read_bytes(), wrong)]
        bad.update((f"{path.name}#{row[2]}", row) for row in wrong)
        return commits
    commit = shaped(verifier.read(path.read_bytes()))
    name = f"{commit.stem}{'.redacted' if commit.redacted else ''}.ttl"
    verifier.demand(path.name == name, f"is the commit to be named {name}")
    verifier.demand(commit.graph == graph_of(path.parent), "the stream")
    return [commit]


def shaped(parts):
    identity, parents, triples, secrets = parts
    properties = {p: o for s, p, o in triples if s == f"<urn:jido:commit:{identity}>"}
    lines = verifier.digest_lines(triples, f"<urn:jido:commit:{identity}>")
    keys = [bytes.fromhex(secret.split()[-1]) for secret in secrets]
    if secrets[0].startswith("# nonce"):
        salts = {line: verifier.keyed(keys[0], line) for line in lines}
    else:
        salts = dict(zip(sorted(lines), keys, strict=False))
    return Read(
        id=identity,
        moment=properties[f"<{JIDO}recordedAt>"][1:28],
        position=int(properties[f"<{JIDO}position>"].split('"')[1]),
        parents=tuple(sorted(parent.hex() for parent in parents)),
        graph=properties[f"<{JIDO}inStream>"][1:-1],
        triples=tuple(triples),
        redacted=not secrets[0].startswith("# nonce"),
        leaves=tuple(verifier.keyed(salts[line], line).hex() for line in lines),
    )


def follows(commit, by_id, aside):
    """Return whether the parents exist or are quarantined, and position and moment follow from them."""
    missing = [parent for parent in commit.parents if parent not in by_id]
    if missing:
        return all(parent[:12] in aside for parent in missing)
    parents = [by_id[parent] for parent in commit.parents]
    later = all(parent.moment < commit.moment for parent in parents)
    return later and commit.position == 1 + max((parent.position for parent in parents), default=0)


if __name__ == "__main__":
    content = read(sys.argv[1])
    for each in content.commits:
        print(each.moment, each.position, each.id, "redacted" if each.redacted else "", re.sub(r".*/", "", each.graph))
    for name in sorted(content.damaged):
        print("damaged:", name)
    sys.exit(1 if content.damaged else 0)
