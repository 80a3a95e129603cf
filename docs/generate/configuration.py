"""docs/reference/configuration.md, written from the code that reads settings; what each key is for stands here.

A key the code knows and this module does not, or the other way round, is a KeyError: the page cannot be written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from docs.generate.tables import code, table
from jidomem.records.policy import JUDGES, ON_CONFLICT, ON_SECRET, ON_SIMILAR, PRESETS, AgentPolicy, Policy
from jidomem.runtime import model_choice, root_config, settings, user_config

_INTRODUCTION = """\
# Configuration: every key

Nothing has to be configured. There are three places, and each has a say in other things, since a root may be somebody else's
repository ([security](../security.md#cloned-repositories)): what a repository brings along never names an address, a
program or a limit. What stands in none of these tables is an error that names the nearest key.

| place | says | who writes it |
|---|---|---|
| the options of a [command](command-line.md#global-options) | this once | you |
| the environment | for this process and those it starts | you |
| your own configuration, `~/.config/jidomem/config.toml` on Linux | for every root on this machine | you, `jidomem access token` and `jidomem access trust` |
| `config.toml` of a root | how its memory is governed | the project, in git |

An option counts before the environment, that before a file. What is not said has the default below.
"""

_READ_LOG = next(field.default for field in fields(settings.Settings) if field.name == "read_log")
_ROOT = {
    "project": ("the id of the project", "the name of the folder the root lies in"),
    "strict": ("refuse agents and sessions that nobody declared, and terms of foreign vocabularies", Policy().strict),
    "create_projects": ("let a first write create its project", Policy().create_projects),
    "judge": (f"who holds a write to the shapes: {' or '.join(JUDGES)}", Policy().judge),
    "secrets": (f"what looks like a key or a password: {', '.join(ON_SECRET)}", Policy().secrets),
    "read_log": ("keep which memories were shown, in `state/`, for `why` and the guard", _READ_LOG),
    "policy": (f"the rules of [who may do what](../policy.md) to begin with: {', '.join(PRESETS)}", Policy().preset),
    "host": ("where `jidomem serve` listens; counts once the root is [trusted](../security.md)", "127.0.0.1"),
    "port": ("its port; counts once the root is trusted", 8700),
}
_TABLES = {"conflicts": "see below", "on_similar": "see below", "agents": "see below"}
_AGENT = {
    "role": (
        "what it may do by the [policy](../policy.md#roles), until the journal says otherwise",
        AgentPolicy().role,
    ),
    "capabilities": ("what its first mention declares of it", list(AgentPolicy().capabilities)),
}
_LIMITS = {
    "queries": "ad hoc queries that are answered at once",
    "query_seconds": "how long one may take",
    "query_memory": "bytes of memory one may take",
    "query_rows": "rows of one answer",
    "query_answer": "bytes of one answer",
    "query_text": "bytes of the text of one",
    "query_nesting": "brackets in each other in it",
    "body": "bytes of the body of a request",
    "stream": "bytes of a stream of JSON lines",
    "line": "bytes of one of its lines",
    "literal": "bytes of one text of a memory, by whichever door it comes",
    "url": "bytes of the address of a request",
    "headers": "bytes of its headers",
    "connections": "connections at once",
    "idle_seconds": "how long a client may say nothing",
    "reread_seconds": "within which a server reads each file of the journal again",
}
_EMBEDDER = {
    "use": f"{', '.join(model_choice.EMBEDDER_USES)}; nothing said is the local one where it is installed",
    "base_url": "of an endpoint that speaks as OpenAI's does",
    "model": "its model",
    "dimensions": "of its vectors",
    "key_env": 'the environment variable with its key, `""` for one that asks for none',
    "key_file": "a file with its key, in place of that",
    "path": "the folder of a local [model of your choice](../models.md#a-model-of-your-choice)",
    "query_prefix": "what it wants before a query",
    "text_prefix": "what it wants before a text",
}
_RERANKER = {
    "path": "the folder of a local [reranker](../models.md#a-reranker)",
    "base_url": "of an endpoint that answers `/rerank`, in place of that",
    "model": "its model",
    "key_env": 'the environment variable with its key, `""` for one that asks for none',
    "key_file": "a file with its key, in place of that",
    "seconds": "what it may take; after that the first order stands",
}
_MODEL = {
    "use": f"{' or '.join(model_choice.LANGUAGE_MODEL_USES)}; nothing said is the offline one",
    "base_url": "of an endpoint, which has to be said",
    "model": "its model, which has to be said",
    "key_env": 'the environment variable with its key, `""` for one that asks for none',
    "key_file": "a file with its key, in place of that",
    "seconds": "what all tries of one request may take",
    "json_mode": "ask it for JSON",
    "options": "what goes along with each request",
}
_OTHERS = {
    "index": ("the address of a [triple store](../backends.md) that answers", ""),
    "tokens": ("what `jidomem access token` writes: digests of [tokens](../http.md#tokens)", []),
    "trusted": ("what `jidomem access trust` writes: roots you vouch for, as they are", []),
    "closed": ("roots whose last token was revoked: their servers still need one", []),
    "commands": ("what `jidomem access trust --command` writes: [checks](../guard.md) that may run", []),
}
#: name -> what it is for; the options of the command line say the same where they have it.
ENVIRONMENT = {
    "JIDOMEM_ROOT": "the root: a folder, or the address of a [shared one](../backends.md)",
    "JIDOMEM_PROJECT": "the project",
    "JIDOMEM_AGENT": "who asserts",
    "JIDOMEM_SESSION": "the work session it is asserted in",
    "JIDOMEM_INDEX": "the address of a triple store that answers",
    "JIDOMEM_EMBEDDER": "`local` or `none`: makes vectors by that, whatever is configured",
    "JIDOMEM_HOME": "the folder for the copy of a shared root, one for each root",
    "JIDOMEM_ALLOW_ORIGIN": "of `jidomem serve`: origins whose pages may read answers",
    "JIDOMEM_PUBLIC_URL": "of `jidomem serve`: the origin clients ask, behind a proxy",
    "JIDOMEM_TOKEN": "of a client that `jidomem setup --server` has set up: its token",
    "NO_COLOR": "no colours",
}


def pages() -> dict[str, str]:
    """Return the page, by its name."""
    head = ["key", "default", "is"]
    known = {**_ROOT, **{name: (text, {}) for name, text in _TABLES.items()}}
    _same(known, root_config._RULES)
    own = {
        **_OTHERS,
        "limits": ("see below", {}),
        "embedder": ("see below", {}),
        "model": ("see below", {}),
        "reranker": ("see below", {}),
    }
    _same(own, user_config._RULES)
    families = "".join(f"`{name}`, " for name in root_config._FAMILIES).removesuffix(", ")
    parts = [
        _INTRODUCTION,
        "\n## config.toml of a root\n\n",
        table(head, _rows(known)),
        f"\n`[conflicts]` says by family what becomes of a [conflict](../conflicts.md) that is not settled: {', '.join(ON_CONFLICT)};",
        f" where it says nothing, refuse. The families: {families}.\n",
        "\n`[on_similar]` says by family what becomes of a memory that is near to an active one"
        f" ([similar memories](../conflicts.md#similar-memories)): {', '.join(ON_SIMILAR)}; where it says nothing, ask.\n",
        "\n`[agents.NAME]` says of an agent:\n\n",
        table(head, _rows(_AGENT)),
        "\n[baseline.toml](../check.md#ranges-waivers-issues) beside it has what `check` waives.\n",
        "\n## Your own configuration\n\nNobody else may read the file (mode 0600).\n\n",
        table(head, _rows(own)),
        "\n### limits\n\nBytes, seconds and numbers; how they are used tells [HTTP](../http.md#limits).\n\n",
        table(["key", "default", "from", "to", "is"], _limits()),
        "\n### embedder\n\nWhat makes vectors: [embedders](../models.md#embedders).\n\n",
        table(head, _fields(model_choice.EmbedderChoice, _EMBEDDER)),
        "\n### model\n\nWhat reads dialogue: [language models](../models.md).\n\n",
        table(head, _fields(model_choice.LanguageModelChoice, _MODEL)),
        "\n### reranker\n\nWhat orders the best memories again: [rerankers](../models.md#a-reranker).\n\n",
        table(head, _fields(model_choice.RerankerChoice, _RERANKER)),
        "\n## The environment\n\n",
        table(["variable", "says"], ([code(name), text] for name, text in ENVIRONMENT.items())),
        "\nKeys of models are in the variables that `key_env` names. PostgreSQL and object stores read their own"
        " ([backends](../backends.md)).\n",
    ]
    return {"reference/configuration.md": "".join(parts)}


def _rows(keys: Mapping[str, tuple[str, Any]]) -> Iterator[list[str]]:
    for name, (text, default) in keys.items():
        is_words = isinstance(default, str) and " " in default
        yield [code(name), default if is_words else _value(default), text]


def _fields(kind: type, words: Mapping[str, str]) -> Iterator[list[str]]:
    _same(words, (field.name for field in fields(kind)))
    for field in fields(kind):
        usual = field.default_factory() if field.default is MISSING else field.default  # type: ignore[misc]
        yield [code(field.name), _value(usual), words[field.name]]


def _limits() -> Iterator[list[str]]:
    for name, default, text in _fields(user_config.RootLimits, _LIMITS):
        least, most = user_config._BETWEEN[name.strip("`")]
        yield [name, default, f"{least:_}", f"{most:_}", text]


def _value(value: Any) -> str:
    """Return a default as TOML writes it; nothing for what is not set."""
    if value in (None, "", [], {}):
        return ""
    return code(f"{value:_}" if type(value) is int and value >= 10_000 else json.dumps(value))


def _same(words: Iterable[str], known: Iterable[str]) -> None:
    """Raise KeyError unless *words* are of the keys *known* and no others."""
    if other := {*words} ^ {*known}:
        raise KeyError(f"docs/generate/configuration.py and the settings do not know the same keys: {sorted(other)}")
