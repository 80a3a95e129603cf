"""Generated deltas: each breaks one constraint of one shipped shape and no other, or conforms at its limit."""

import re
from itertools import pairwise

from jidomem.rdf.terms import XSD, date_time, integer, iri, literal, parse_literal
from jidomem.rdf.vocab import BASE, SHAPE, TYPE, conv, jido, local_name
from jidomem.schema import ontology
from jidomem.schema.shacl import SH

SCHEMA = ontology.load()
RULES = [*SCHEMA.rules]
#: Every constraint of every shipped shape: the shape's name and the SHACL parameter.
CONSTRAINTS = sorted(
    (local_name(subject), local_name(predicate))
    for subject, predicate, _ in RULES
    if subject.startswith(f"<{SHAPE}")
    and predicate.startswith(f"<{SH}")
    and local_name(predicate) not in {"path", "property", "severity", "message", "targetClass", "targetSubjectsOf"}
)
NAMES = {cls: sorted(t for t, of in SCHEMA.individuals.items() if jido(cls) in of) for cls in
         ("ConfidenceLevel", "TaskStatus", "ErrorStatus", "SessionStatus", "Capability", "AgentRole",
          "EnforcementLevel", "ConventionScope")}  # fmt: skip
PROJECTS = [iri(f"{BASE}projects/{name}") for name in ("demo", "other")]
LEVELS = ["low", "medium", "high", "critical"]
IRIS = ["<urn:x:y>", "<urn:uuid:0>", "<https://jido.ai/agents/a>", "<http://example.org/ü?q=1#f>"]
NO_TEXT = ['""', '" "', '"\\t\\n"', '"\u00a0"', '"\u2003 "', '" "@en']
TEXT = ['"x"', '" x "', '"\\n.\\n"', '"ü"', '"日本"', '"\\""', '"0"']


def entailed(rows):
    """The types inferred from the class tree, of typed nodes and of the individuals that *rows* refer to."""
    types = [(subject, cls) for subject, predicate, cls in rows if predicate == TYPE]
    types += [(value, cls) for _, _, value in rows for cls in SCHEMA.individuals.get(value, ())]
    return [(subject, TYPE, above) for subject, cls in types for above in SCHEMA.ancestors(cls)]


def time(rng):
    day = f"{rng.randint(1, 9999):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    return date_time(
        f"{day}T{clock}{rng.choice(['', '.5', '.123456'])}{rng.choice(['Z', '+01:00', '-11:30', '+14:00'])}"
    )


def one_of(cls):
    return lambda rng: rng.choice(NAMES[cls])


def text(rng):
    return literal("".join(rng.choice('abc de"\\\nüß☃') for _ in range(rng.randint(0, 12))) + "." + str(rng.random()))


def name(rng):
    return iri(f"{BASE}{rng.choice(['memory', 'agents', 'sessions'])}/{rng.randint(0, 10**9)}")


ITEM = {"summary": text, "appliesToProject": lambda rng: PROJECTS[0], "assertedBy": name, "assertedIn": name,
        "hasConfidence": one_of("ConfidenceLevel"), "hasTimestamp": time}  # fmt: skip
KINDS = {
    "Fact": ITEM, "Hypothesis": ITEM, "Milestone": ITEM, "DeletedMarker": ITEM,
    "Task": ITEM | {"hasTaskStatus": one_of("TaskStatus"), "assignedTo": name},
    "ArchitecturalDecision": ITEM | {"rationale": text}, "Decision": ITEM | {"rationale": text},
    "Bug": ITEM | {"hasErrorStatus": one_of("ErrorStatus")}, "Error": ITEM | {"hasErrorStatus": one_of("ErrorStatus")},
    "Convention": ITEM | {"conventionName": text, "hasConventionScope": one_of("ConventionScope"),
                          "hasEnforcementLevel": one_of("EnforcementLevel")},
    "LessonLearned": ITEM | {"derivedFrom": name}, "RootCause": ITEM, "Assumption": ITEM | {"expiresOn": time},
    "Agent": {"hasRole": one_of("AgentRole"), "hasCapability": one_of("Capability")},
    "WorkSession": {"startedAt": time, "hasStatus": one_of("SessionStatus")},
    "Entry": {"agentId": text, "entryId": text, "entryText": text}, "EntryRemoval": {"replaces": name},
}  # fmt: skip
ITEMS = [kind for kind in KINDS if kind not in ("Agent", "WorkSession", "Entry", "EntryRemoval", "RootCause")]
#: The property that a shape constrains, and the kinds to which it applies.
ABOUT = {
    "AgentHasACapability": ("hasCapability", ["Agent"]), "AgentHasARole": ("hasRole", ["Agent"]),
    "ConventionHasALevel": ("hasEnforcementLevel", ["Convention"]),
    "ConventionHasAName": ("conventionName", ["Convention"]),
    "ConventionHasAScope": ("hasConventionScope", ["Convention"]),
    "ItemHasAnAuthor": ("assertedBy", ITEMS), "ItemHasASession": ("assertedIn", ITEMS),
    "ItemHasOneConfidence": ("hasConfidence", ITEMS), "ItemHasOneProject": ("appliesToProject", ITEMS),
    "ItemHasOneSummary": ("summary", ITEMS), "ItemHasOneTimestamp": ("hasTimestamp", ITEMS),
    "Moment": ("hasTimestamp", ITEMS),
    "DecisionHasRationale": ("rationale", ["Decision", "ArchitecturalDecision"]),
    "DecisionStatusIsKnown": ("decisionStatus", ["Decision", "ArchitecturalDecision"]),
    "ImpactLevelIsKnown": ("impactLevel", ["Decision", "ArchitecturalDecision"]),
    "SeverityIsKnown": ("severityLevel", ["Error", "Bug"]), "ErrorHasOneStatus": ("hasErrorStatus", ["Error", "Bug"]),
    "TaskHasOneStatus": ("hasTaskStatus", ["Task"]), "TaskHasAnAssignee": ("assignedTo", ["Task"]),
    "SessionEndIsATime": ("endedAt", ["WorkSession"]), "SessionHasAStart": ("startedAt", ["WorkSession"]),
    "SessionHasAStatus": ("hasStatus", ["WorkSession"]),
    "EntryHasAnAgent": ("agentId", ["Entry"]), "EntryHasAnId": ("entryId", ["Entry"]),
    "EntryHasAText": ("entryText", ["Entry"]), "RemovalNamesWhatItEnds": ("replaces", ["EntryRemoval"]),
}  # fmt: skip
NOT_TIMES = ['"2026-11-21T08:00:00Z"', f'"2026-11-21T08:00:00Z"^^<{XSD}date>', '"2026-11-21T08:00:00Z"@en',
             '"2026-11-21T08:00:00Z"^^<urn:time>', "-2026-11-21T08:00:00Z"]  # fmt: skip
ILL_TYPED = ["2026-02-30T00:00:00Z", "2026-11-21T25:00:00Z", "2026-13-01T00:00:00Z", "12026-11-21T08:00:00Z",
             "2026-11-21T08:00:00Zz", "2026-11-21T08:00:00+25:00", "2026-11-21T08:00:60Z"]  # fmt: skip
ODD_TIMES = ["2026-11-21", "20261121T080000Z", "2026-11-21T08:00Z", "2026-11-21T08", "2026-W47-6T08:00:00Z",
             "2026-11-21 08:00:00", "2026-11-21T080000"]  # fmt: skip
ZONE = re.compile(r"(Z|[+-]\d\d:\d\d)$")
EDGE_TIMES = ["2026-11-21T08:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2024-02-29T00:00:00+14:00",
              "2026-11-21T08:00:00,5Z", "2026-11-21T08:00:00.1234567Z"]  # fmt: skip


def as_time(form):
    return form if form.startswith('"') else date_time(form)


class Delta:
    """Described nodes, as the writer passes them to the validator."""

    def __init__(self, rng):
        self.rng, self.rows = rng, []

    def add(self, kind, node=None, **given):
        """Describe a conforming node, except for the given properties: a value, or None to omit the property."""
        node = node or iri(f"{BASE}memory/{self.rng.randint(0, 10**12)}")
        self.rows.append((node, TYPE, jido(kind)))
        for prop, make in KINDS[kind].items():
            if prop not in given:
                self.rows.append((node, jido(prop), make(self.rng)))
        self.rows += [(node, jido(prop), value) for prop, value in given.items() if value is not None]
        if kind == "RootCause":
            self.rows.append((name(self.rng), jido("hasRootCause"), node))
        if kind in ITEMS and self.rng.random() < 0.3:
            self.rows.append((node, jido("about"), text(self.rng)))
        return node

    def link(self, *pairs, by="supersededBy"):
        self.rows += [(one, jido(by), other) for one, other in pairs]


def delta(rng, shape, parameter, broken):
    """Rows that break *parameter* of *shape* and nothing else, or that conform at its limit."""
    result = Delta(rng)
    if rng.random() < 0.3:
        result.add(rng.choice(sorted(KINDS)))
    recipe = SPECIAL.get((shape, parameter)) or SPECIAL.get(shape)
    if recipe:
        recipe(result, rng, broken)
    else:
        prop, kinds = ABOUT[shape]
        values, given = VALUES[parameter](result, rng, broken, shape, prop), {prop: None}
        if prop == "endedAt":
            # the start must be before the end, in the same time zone form
            zoned = ZONE.search(parse_literal(values[0]).text)
            given["startedAt"] = date_time("0001-01-01T00:00:00" + ("Z" if zoned else ""))
        node = result.add(rng.choice(kinds), **given)
        result.rows += [(node, jido(prop), value) for value in values]
    rng.shuffle(result.rows)
    return result.rows


def good(rng, shape, prop):
    """Any value the shape accepts."""
    for makers in KINDS.values():
        if prop in makers:
            return makers[prop](rng)
    return time(rng) if prop == "endedAt" else literal(rng.choice(LEVELS))


def at_least_one(built, rng, broken, shape, prop):
    return [] if broken else [good(rng, shape, prop)]


def at_most_one(built, rng, broken, shape, prop):
    pool = [good(rng, shape, prop) for _ in range(9)] + (PROJECTS if prop == "appliesToProject" else [])
    return list(dict.fromkeys(pool))[: rng.randint(2, 3)] if broken else pool[:1]


def of_class(built, rng, broken, shape, prop):
    (cls,) = (value for subject, predicate, value in RULES
              if (local_name(subject), local_name(predicate)) == (shape, "class"))  # fmt: skip
    right = NAMES[local_name(cls)]
    if broken:
        others = [term for names in NAMES.values() for term in names if term not in right]
        return [rng.choice([*others, *IRIS, '"High"', "_:b", integer(3)])]
    if rng.random() < 0.3:
        built.rows.append(("<urn:new>", TYPE, cls))
        return ["<urn:new>"]
    return [rng.choice(right)]


def of_kind(built, rng, broken, shape, prop):
    return [rng.choice(['"text"', "_:b", '"x"@en', integer(1), '""'] if broken else IRIS)]


def of_datatype(built, rng, broken, shape, prop):
    if prop == "summary":
        return [
            rng.choice(['"x"@en', integer(5), "<urn:x>", f'"x"^^<{XSD}token>'] if broken else TEXT)
            if broken or rng.random() < 0.5
            else text(rng)
        ]
    wrong = ILL_TYPED if prop == "endedAt" else [*NOT_TIMES, *ILL_TYPED]
    return [as_time(rng.choice(wrong if broken else EDGE_TIMES))]


def of_pattern(built, rng, broken, shape, prop):
    if prop in ("hasTimestamp", "startedAt", "endedAt"):
        return [as_time(rng.choice(ODD_TIMES if broken else EDGE_TIMES))]
    if prop == "summary":
        return [rng.choice(NO_TEXT[1:-1] if broken else TEXT)]
    return [rng.choice([*NO_TEXT, "_:b"] if broken else [*TEXT, "<urn:x>", '"x"@en', integer(0)])]


def of_list(built, rng, broken, shape, prop):
    allowed = ["proposed", "accepted", "deprecated", "rejected"] if prop == "decisionStatus" else LEVELS
    if not broken:
        return [literal(each) for each in rng.sample(allowed, rng.randint(1, 4))]
    one = rng.choice(allowed)
    wrong = [literal(one.upper()), f'"{one}"@en', literal(one + " "), iri(f"urn:{one}"), f'"{one}"^^<{XSD}token>', '""']
    return [rng.choice(wrong), *([literal(one)] if rng.random() < 0.3 else [])]


VALUES = {"minCount": at_least_one, "maxCount": at_most_one, "class": of_class, "nodeKind": of_kind, "in": of_list,
          "datatype": of_datatype, "pattern": of_pattern}  # fmt: skip


def same_project(link):
    def recipe(built, rng, broken):
        kind = rng.choice(["Task", "Bug", "Decision"])
        old = built.add(kind)
        if broken and rng.random() < 0.3:
            built.link((old, name(rng)), by=link)
        else:
            built.link((old, built.add(kind, appliesToProject=PROJECTS[broken])), by=link)

    return recipe


def one_successor(built, rng, broken):
    old, *new = [built.add("Task") for _ in range(rng.randint(3, 4) if broken else 2)]
    built.link(*((old, each) for each in new))


def no_cycle(built, rng, broken):
    chain = [built.add("Task") for _ in range(rng.randint(1 if broken else 2, 4))]
    built.link(*pairwise(chain), *([(chain[-1], chain[0])] if broken else []))


def promoted(built, rng, broken):
    """A fact that supersedes a hypothesis, with or without evidence."""
    old, new = built.add("Hypothesis"), built.add("Fact", derivedFrom=None if broken else name(rng))
    built.link(rng.choice([(old, new)]))
    if rng.random() < 0.5:
        built.link((new, old), by="supersedes")


def of_another_kind(built, rng, broken):
    """A fact without evidence that supersedes a memory of another class than Hypothesis."""
    old = built.add("Hypothesis" if not broken else rng.choice(["Fact", "Task", "Milestone"]))
    built.link((built.add("Fact", derivedFrom=None if broken else name(rng)), old), by="supersedes")


def no_hypothesis_replaced(built, rng, broken):
    if broken:
        promoted(built, rng, True)
    else:
        of_another_kind(built, rng, True)


def pair_in_time(rng, broken):
    """A start, and ends; one end is before the start if *broken*."""
    start = f"2026-11-21T{rng.randint(2, 20):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    hour = int(start[11:13])
    early = [
        f"{start[:11]}{hour - 1:02}{start[13:]}Z",
        f"2025{start[4:]}Z",
        f"{start}+00:01",
        f"{start[:11]}{hour:02}{start[13:]}+01:00",
    ]
    same = [
        f"{start}Z",
        f"{start}.000000Z",
        f"{start}+00:00",
        f"{start[:11]}{hour + 1:02}{start[13:]}+01:00",
        f"{start}.000001Z",
    ]
    ends = [rng.choice(early if broken else same), *(["9999-01-01T00:00:00Z"] if rng.random() < 0.2 else [])]
    return date_time(f"{start}Z"), map(date_time, ends)


def ends_after_start(built, rng, broken):
    start, ends = pair_in_time(rng, broken)
    node = built.add("WorkSession", startedAt=start)
    built.rows += [(node, jido("endedAt"), end) for end in ends]


def holds_before_it_ends(built, rng, broken):
    start, ends = pair_in_time(rng, broken)
    node = built.add(rng.choice(ITEMS), validFrom=start)
    built.rows += [(node, jido("validUntil"), end) for end in ends]


def lesson(built, rng, broken):
    node = built.add("LessonLearned", derivedFrom=None)
    if not broken:
        built.rows.append(
            (node, jido("derivedFrom"), name(rng)) if rng.random() < 0.5 else (name(rng), jido("producedLesson"), node)
        )


def undated(built, rng, broken):
    """A memory with the property isUndated, whose only valid value is true."""
    right, wrong = f'"true"^^<{XSD}boolean>', [f'"false"^^<{XSD}boolean>', '"true"', integer(1), "<urn:x>"]
    node = built.add(rng.choice(ITEMS), hasTimestamp=None)
    built.rows.append((node, jido("isUndated"), rng.choice(wrong) if broken else right))


def assumption(built, rng, broken):
    node = built.add("Assumption", expiresOn=None)
    if not broken:
        built.rows.append((node, jido(rng.choice(["expiresOn", "validUntil"])), time(rng)))


def root_cause(built, rng, broken):
    node = built.add("RootCause")
    if broken:
        built.rows = [row for row in built.rows if row[1:] != (jido("hasRootCause"), node)]


def anchor(built, rng, broken):
    blob, path = rng.choice(["ce01362503", "ab"]) * rng.choice([4, 8]), rng.choice(["src/a.py", "ü", ".x"])
    blob = (blob * 10)[: rng.choice([40, 64])]
    wrong = [f"{blob}{path}", f"{blob[1:]} {path}", f"{blob} /{path}", path, f"{blob} ", blob.upper() + " " + path]
    built.rows.append(
        (built.add("Fact"), jido("aboutBlob"), literal(rng.choice(wrong) if broken else f"{blob} {path}"))
    )


def turn(prop):
    """A turn with all required properties, except for *prop* if broken."""

    def recipe(built, rng, broken):
        node = name(rng)
        values = {"partOfConversation": name(rng), "turnIndex": integer(rng.randint(0, 99))}
        built.rows.append((node, TYPE, conv("ConversationTurn")))
        built.rows += [(node, conv(each), value) for each, value in values.items() if not (broken and each == prop)]

    return recipe


SPECIAL = {
    ("ItemHasOneTimestamp", "or"): undated, "Yes": undated,
    "AnchorNamesContentAndPath": anchor,
    "InvalidatorIsOfTheSameProject": same_project("invalidatedBy"),
    "SuccessorIsOfTheSameProject": same_project("supersededBy"),
    "ItemHasOneSuccessor": one_successor, "SupersessionHasNoCycle": no_cycle,
    "PromotedHypothesisHasEvidence": promoted, "FactHasEvidence": promoted,
    "FactSupersedesNoHypothesis": no_hypothesis_replaced, "Hypothesis": of_another_kind,
    "SessionEndsAfterItsStart": ends_after_start, "ItemHoldsBeforeItEnds": holds_before_it_ends,
    "LessonHasAnOrigin": lesson, "AssumptionHasAReviewDate": assumption, "RootCauseExplainsAnError": root_cause,
    "TurnHasAConversation": turn("partOfConversation"), "TurnHasAnIndex": turn("turnIndex"),
}  # fmt: skip
