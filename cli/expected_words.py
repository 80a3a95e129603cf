"""Expected words: verbs of other tools, each with the command of jidomem that does what they do there."""

from __future__ import annotations

from collections.abc import Mapping

_LIST = "to list memories: jidomem ask timeline"
_SEARCH = 'to search: jidomem recall "a question"'
_ADD = 'to add a memory: jidomem remember "the build needs Rust 1.80"'
_EDIT = "to change a memory: jidomem revise --help"
_REMOVE = "to withdraw a memory, with a reason: jidomem revise --help"
_UNDO = "to undo one change: jidomem revise --help"
_CHECK = "to check the memory: jidomem check"
_PAGES = "to see it in a browser: jidomem serve --help"
#: Word -> hint.
EXPECTED: Mapping[str, str] = {
    **dict.fromkeys(("list", "ls", "all", "dump", "print", "memories", "timeline"), _LIST),
    **dict.fromkeys(("search", "find", "grep", "query", "lookup", "retrieve"), _SEARCH),
    **dict.fromkeys(("add", "new", "create", "save", "store", "note", "put", "insert", "write"), _ADD),
    **dict.fromkeys(("edit", "update", "change", "set", "modify", "correct", "supersede"), _EDIT),
    **dict.fromkeys(("delete", "rm", "remove", "forget", "drop", "clear", "withdraw", "invalidate"), _REMOVE),
    **dict.fromkeys(("undo", "revert"), _UNDO),
    **dict.fromkeys(("validate", "lint", "test"), _CHECK),
    **dict.fromkeys(("ui", "web", "dashboard", "open", "browse"), _PAGES),
    **dict.fromkeys(("get", "view", "cat", "read"), "to show one memory: jidomem show --help"),
    **dict.fromkeys(("accept", "reject", "approve", "pending", "proposals"), "to see what is pending: jidomem review"),
    **dict.fromkeys(("decisions", "tasks", "errors", "facts"), "to list them: jidomem memory --help"),
    **dict.fromkeys(("sync", "refresh"), "to import what changed in the repository: jidomem init --from auto"),
    **dict.fromkeys(("install", "config", "configure"), "to set up a client: jidomem setup --help"),
    **dict.fromkeys(("stats", "info"), "to see how much there is: jidomem status"),
    "help": "jidomem --help",
    "version": "jidomem --version",
    "diagnose": "to look for faults: jidomem doctor",
}
#: Verbs that take something away or replace much at once: no misspelt word is answered with one of them.
DESTRUCTIVE = frozenset(
    ("redact", "rollback", "restore", "migrate", "remove", "revoke", "reject", "refuse", "forget", "clear", "delete",
     "drop", "reset")
)  # fmt: skip
