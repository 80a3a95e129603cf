"""docs/reference/python/*.md, written from signatures and docstrings: every public name of the modules users import."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import PurePath
from types import MappingProxyType, ModuleType
from typing import Annotated, Any, TypeVar, get_origin

from docs.generate.tables import table
from jidomem import adapters

#: The public modules below `jidomem` by page, in the order of reading. Any other module may change without notice.
_PAGES: dict[str, tuple[str, str]] = {
    "jidomem": ("Open a memory, write to it, query it", ""),
    "values": (
        "Records, results and errors",
        "errors records.policy records.recall records.entry records.intent base.clock",
    ),
    "results": (
        "Agents, entry stores and maintenance of a root, and the results of its methods",
        "runtime.agent_memory curation.redact curation.find_text curation.term_proposals check.report"
        " recall.governing read.lists read.named_queries records.active write.batch write.rollback journal.commit rdf.terms serve.mcp.client_session",
    ),
    "spaces": (
        "Working memory: the spaces of an agent",
        "working",
    ),
    "entries": (
        "Entries: the notes of agents in free text",
        "entries entries.conformance",
    ),
    "tiers": (
        "Short-term memory of a session, and its promotion",
        "working.tiers runtime.state",
    ),
    "directives": (
        "Directives: operations on memory as data, and their providers",
        "records.directive providers providers.dispatch providers.conformance",
    ),
    "memoryos": (
        "Pages, segments and personas of conversations",
        "extras.memoryos.config extras.memoryos.values extras.memoryos.segments"
        " extras.memoryos.memory_os extras.memoryos.jobs extras.memoryos.transactions extras.memoryos.personas extras.memoryos.retrieval extras.memoryos.storage",
    ),
    "models": (
        "Embedders and language models",
        "records.interfaces models.local_embedder models.embeddings models.endpoint models.chat"
        " models.offline models.scripted",
    ),
    "adapters": (
        "Interfaces of other projects, implemented over a root",
        " ".join(f"adapters.{found.name}" for found in pkgutil.iter_modules(adapters.__path__)),
    ),
    "govern": (
        "Ontology terms, briefings and trust",
        "check.terms recall.briefing read.derived",
    ),
}
#: The public names of modules that have others besides; of a module that is not listed, all names without an underscore.
_NAMES: dict[str, str] = {
    "jidomem.errors": (
        "BranchChanged Busy CODES Choice Conflict ConflictItem Failed IdempotencyMismatch"
        " IntentRefused InvalidRequest JidomemError JournalDamaged MemoryClosed MemoryMissing ModelUnavailable"
        " NotFound NotServed PolicyDenied QueryTimeout Repair RequestRedacted RequestTimeout RevisionConflict STOPPING"
        " TooLarge Unauthenticated Violation"
    ),
    "jidomem.records.policy": (
        "AccessPolicy OTHER_WRITES BUILT_IN CONFIRMS CURATORS PolicyChange KINDS PRESETS ROLE_WORDS UNSET"
        " VERDICTS validated is_below role_named"
    ),
    "jidomem.records.recall": (
        "DifferingMemory MemoryRecall Hit InvalidRecall LongQuery NAMESPACE NearPair RecallFilters RecallRequest RecallResult SCOPES parse_request"
    ),
    "jidomem.runtime.agent_memory": ("AgentMemory Conversation EntryStore"),
    "jidomem.curation.redact": ("Incomplete JournalMaintenance RedactionPlan"),
    "jidomem.curation.find_text": ("TextsToRemove Trace"),
    "jidomem.curation.term_proposals": ("Proposal TermProposals"),
    "jidomem.check.report": ("CheckReport Problem WaivedFinding WaiverState"),
    "jidomem.recall.governing": ("GoverningAnswer"),
    "jidomem.read.lists": ("Page"),
    "jidomem.read.named_queries": ("Result"),
    "jidomem.records.active": ("EndedDecision Inactive SimilarMemory"),
    "jidomem.write.batch": ("SubmissionResults"),
    "jidomem.write.rollback": ("Correction Rollback"),
    "jidomem.journal.commit": ("Commit"),
    "jidomem.serve.mcp.client_session": ("ToolResult"),
    "jidomem.rdf.terms": ("Literal"),
    "jidomem.extras.memoryos.jobs": ("Job JobOutcome"),
    "jidomem.extras.memoryos.transactions": ("ForgetReport"),
    "jidomem.records.entry": ("ToolUse Turn tool_uses"),
    "jidomem.records.intent": ("CommitRef SHORT Version parse_version"),
    "jidomem.base.clock": ("Sources monotonic_time new_id nonce now now_ms"),
    "jidomem.working.tiers": (
        "BOOSTS EXTENDED_RULES Message Promotion PromotionDecision RULES PromotionRule THRESHOLD TYPE_OF_CATEGORY"
        " TimedValue"
    ),
    "jidomem.runtime.state": ("FILE State WAIT"),
    "jidomem.records.directive": (
        "Answer DEFAULT_PROVIDER Directive Done StoredValue MemoryDelete MemoryQuery MemoryUpsert Missing"
        " Opts Provider RESULT_SIGNAL Scored Searchable Signal State TOP_K UpsertItem forget lookup"
        " new_request_id recall refuse_unknown remember vector_of"
    ),
    "jidomem.providers.dispatch": ("RegisteredProvider"),
    "jidomem.extras.memoryos.config": (
        "AgentRecord COMPARISONS Configurations DEFAULT_TYPE EVICT KINDS MemoryOSConfig ON_TRANSFER refuse_unknown"
    ),
    "jidomem.extras.memoryos.segments": (
        "PageArrival HasDescription Description PagePlacement TierPolicy before choose_segment cosine describe fscore"
        " has_room heat insert jaccard keywords_of known_page recency relevance segment_text transfer"
    ),
    "jidomem.extras.memoryos.memory_os": ("MemoryOS"),
    "jidomem.extras.memoryos.personas": ("ObjectLearnings"),
    "jidomem.extras.memoryos.retrieval": (
        "RetrievedItem PersonaMatch RetrievalQuery RetrievalResults MaintenanceRun SegmentVisit archived hot maintain retrieve touch_segments warmed"
    ),
    "jidomem.extras.memoryos.storage": (
        "HolderFormat StoredPart TierMove TIER_TABLES TierStorage agent_tiers agents_with_tiers system_memory"
    ),
    "jidomem.records.interfaces": (
        "OutputLimits Embedder Fact Known LanguageModel Learned DialogueTurn ModelPrompt Rows Segment Trait Vector"
    ),
    "jidomem.models.local_embedder": ("DIMENSIONS LONGEST_BATCH LocalEmbedder NAME Net missing not_there"),
    "jidomem.models.embeddings": ("AT_ONCE EndpointEmbedder HashedStems LONGEST EmbedderUnavailable"),
    "jidomem.models.endpoint": ("ModelEndpoint EndpointEnvironment PASSING RequestTimeouts EndpointUnavailable"),
    "jidomem.models.chat": ("AT_ONCE ChatModel OPTIONS OURS PairJudgement"),
    "jidomem.models.offline": ("GAP OfflineModel"),
    "jidomem.check.terms": ("TermEntry TermRule definitions described entry find glossary_terms labels short tree"),
    "jidomem.recall.briefing": (
        "Briefing BriefingEntry BriefingNote BriefingSection LONGEST anchored disagreement fit_recall_to_budget markdown stale_files"
    ),
    "jidomem.read.derived": ("trust"),
}
PAGES = {
    name: (what, tuple(f"jidomem.{module}" for module in modules.split()) or ("jidomem",))
    for name, (what, modules) in _PAGES.items()
}
_INDEX = """\
# Python: every public name

Generated from signatures and docstrings. Names with a leading underscore and modules that are not listed here may change without
notice. `jidomem.open` returns the [root](python/jidomem.md#jidomem); its `writer`, `reader` and `entries` do what the command line,
HTTP and MCP do. [For those who build agents](../how-to/agent-author.md) has examples.

<!-- contents -->

"""


def pages() -> dict[str, str]:
    """Return the pages, by their names."""
    lists = "".join(f"- [{_title(name)}](python/{name}.md): {what}\n" for name, (what, _) in PAGES.items())
    found = {"reference/python.md": _INDEX + lists}
    for name, (what, modules) in PAGES.items():
        parts = "".join(_module(importlib.import_module(each)) for each in modules)
        found[f"reference/python/{name}.md"] = f"# {_title(name)}\n\n{what}.\n{parts}"
    return found


def _title(name: str) -> str:
    return name if name == "jidomem" else f"jidomem: {name}"


def public(module: ModuleType) -> list[str]:
    """Return the public names of *module*: those that are listed here or there, else those it defines."""
    if module.__name__ in _NAMES:
        return _NAMES[module.__name__].split()
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    defined = {name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    names = defined | _given_a_value(module)
    types = {
        name for name in names if isinstance(getattr(module, name), TypeVar) or _is_annotated(getattr(module, name))
    }
    return sorted(name for name in names - types if not name.startswith("_"))


def _is_annotated(value: Any) -> bool:
    return get_origin(value) is Annotated


def _given_a_value(module: ModuleType) -> set[str]:
    """Return the names that the source of *module* gives a value: constants, and names for types."""
    lines = ast.parse(inspect.getsource(module)).body
    named = [target for line in lines if isinstance(line, ast.Assign) for target in line.targets]
    named += [line.target for line in lines if isinstance(line, ast.AnnAssign)]
    return {each.id for each in named if isinstance(each, ast.Name)}


def _module(module: ModuleType) -> str:
    names = [(name, getattr(module, name)) for name in public(module)]
    things = [(name, value) for name, value in names if inspect.isclass(value) or callable(value)]
    text = "".join(_class(name, value) if inspect.isclass(value) else _function(name, value) for name, value in things)
    first = inspect.cleandoc(module.__doc__ or "").partition("\n\n")[0]
    values = [(f"`{name}`", _value(value)) for name, value in names if not callable(value)]
    constants = "\n" + table(["constant", "is"], values) if values else ""
    return f"\n## {module.__name__}\n\n{_text(first)}{constants}{text}"


def _value(value: Any) -> str:
    """Return what a constant is, where that is short and the same each time."""
    shown = _written(value)
    return f"`{shown}`" if len(shown) < 200 and " at 0x" not in shown and "`" not in shown else ""


def _written(value: Any) -> str:
    """Return a value as somebody would write it: the same each time, and without what keeps it from being changed."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(value)})" if value else "frozenset()"
    if isinstance(value, MappingProxyType):
        return repr(dict(value))
    return f"Path({str(value)!r})" if isinstance(value, PurePath) else repr(value)


def _function(name: str, value: Any, level: str = "###") -> str:
    return f"\n{level} {name}\n\n{_shown(f'{_kind(value)}{name}{_signature(value)}')}\n{_doc(value)}"


def _kind(value: Any) -> str:
    return "async def " if inspect.iscoroutinefunction(value) else "def " if inspect.isroutine(value) else ""


def _class(name: str, value: type) -> str:
    bases = [base for base in value.__bases__ if base not in (object, tuple) and base not in _hidden(value)]
    below = ", ".join(base.__name__ for base in bases if base.__name__ != "Protocol")
    head = f"class {name}({below})" if below else f"class {name}"
    signature = "" if _is_plain(value) else _signature(value, gives=False)
    text = f"\n### {name}\n\n{_shown(head)}\n{_doc(value)}"
    if signature:
        text += f"\n{_shown(f'{name}{signature}')}"
    members = {key: each for key, each in _members(value).items() if not key.startswith("_")}
    rows = [(f"`{key}`", _first(each)) for key, each in members.items() if isinstance(each, property | cached_property)]
    if rows:
        text += "\n" + table(["property", ""], rows)
    return text + "".join(_methods(members))


def _members(value: type) -> dict[str, Any]:
    """Return what *value* has, by its name: its own, then what its hidden bases bring and no language's type has."""
    of_python = {name for base in value.__mro__ if not _is_ours(base) for name in vars(base)}
    found = dict(vars(value))
    for base in _hidden(value):
        found |= {name: each for name, each in vars(base).items() if name not in found.keys() | of_python}
    return found


def _hidden(value: type) -> list[type]:
    """Return the bases of *value* that no page shows: what they bring is shown as its own."""
    return [base for base in value.__mro__[1:] if _is_ours(base) and base not in _classes()]


def _is_ours(value: type) -> bool:
    return value.__module__.partition(".")[0] == "jidomem"


@cache
def _classes() -> frozenset[type]:
    """Return the classes that some page shows."""
    modules = [importlib.import_module(each) for _, names in PAGES.values() for each in names]
    found = (getattr(module, name) for module in modules for name in public(module))
    return frozenset(each for each in found if inspect.isclass(each))


def _methods(members: dict[str, Any]) -> Iterator[str]:
    for key, each in members.items():
        found = each.__func__ if isinstance(each, classmethod | staticmethod) else each
        if inspect.isfunction(found):
            yield _function(key, found, "####")


def _is_plain(value: type) -> bool:
    """Return whether nobody calls *value* with arguments of its own: an error's base, a protocol."""
    return getattr(value, "_is_protocol", False) or (
        "__init__" not in vars(value) and not dataclasses.is_dataclass(value) and not hasattr(value, "_fields")
    )


def _signature(value: Any, *, gives: bool = True) -> str:
    """Return how *value* is called, an argument a line where that is long."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parts, star = [], False
    for parameter in found.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        parts.append(_parameter(parameter, value))
    answer = f" -> {_type(found.return_annotation)}" if gives and found.return_annotation is not found.empty else ""
    if sum(map(len, parts)) + len(answer) < 80:
        return f"({', '.join(parts)}){answer}"
    return f"(\n{''.join(f'    {part},{chr(10)}' for part in parts)}){answer}"


def _parameter(parameter: inspect.Parameter, function: Any) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{stars}{parameter.name}"
    if parameter.annotation is not parameter.empty:
        text += f": {_without_forms(_type(parameter.annotation), function)}"
    if parameter.default is parameter.empty:
        return text
    shown = getattr(parameter.default, "__qualname__", None) or _written(parameter.default)
    return f"{text} = {'...' if shown.startswith('<') or ' at 0x' in shown or len(shown) > 120 else shown}"


def _type(annotation: Any) -> str:
    annotation = getattr(annotation, "__forward_arg__", annotation)  # of a named tuple
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _without_forms(annotation: str, function: Any) -> str:
    """Return an annotation with the plain type in place of each alias that adds a form of values to it."""
    names = vars(importlib.import_module(function.__module__))
    for name in re.findall(r"[A-Z]\w+", annotation):
        if _is_annotated(names.get(name)):
            plain = inspect.formatannotation(names[name].__origin__).replace("collections.abc.", "")
            annotation = re.sub(rf"\b{name}\b", plain.rpartition("values.")[2], annotation)
    return annotation


def _shown(code: str) -> str:
    return f"```py\n{code}\n```\n"


def _first(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "").partition("\n\n")[0]


def _doc(value: Any) -> str:
    doc = inspect.cleandoc(value.__doc__ or "")
    if dataclasses.is_dataclass(value) and doc.startswith(f"{getattr(value, '__name__', '')}("):
        return ""  # the one dataclasses write
    return _text(doc)


def _text(doc: str) -> str:
    """Return a docstring as Markdown: examples as code, *names* as they are."""
    parts = []
    for part in filter(None, re.split(r"\n{2,}", doc)):
        is_code = part.startswith((">>>", " ")) or re.search(r"^[├└│]", part, re.MULTILINE)
        kind = "pycon" if part.startswith(">>>") else "text"
        parts.append(f"```{kind}\n{part}\n```\n" if is_code else f"{part}\n")
    return "\n".join(parts)
