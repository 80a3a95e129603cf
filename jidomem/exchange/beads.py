"""The issues of beads (`.beads/issues.jsonl`) as tasks and bugs.  Pure: bytes in, values out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jidomem.exchange.foreign import Broken, ForeignEntry, Reading, line_of, objects, text_of, wrong
from jidomem.moments import parse_moment

_TASK = {"open": "Planned", "in_progress": "InProgress", "hooked": "InProgress", "pinned": "Planned",
         "blocked": "Blocked", "deferred": "Planned", "closed": "Completed"}  # fmt: skip
_ERROR = {"open": "Reported", "in_progress": "Investigating", "hooked": "Investigating", "pinned": "Reported",
          "blocked": "Investigating", "deferred": "Deferred", "closed": "Resolved"}  # fmt: skip
_SEVERITY = {0: "critical", 1: "high", 2: "medium", 3: "low", 4: "low"}
#: The parts of an issue that have no field of their own, in the order they are told.
_PARTS = {"description": "", "design": "Design", "acceptance_criteria": "Acceptance criteria", "notes": "Notes",
          "close_reason": "Closed because"}  # fmt: skip


def read(name: str, data: bytes) -> Reading:
    """Return the issues in a file of JSON lines, each after those it names; deleted ones are left out."""
    reading = Reading("ToolSource", alone=True)
    issues: dict[str, tuple[str, dict[str, Any]]] = {}
    for place, issue in objects(name, data, reading):
        key, title, status = (text_of(issue.get(part)) for part in ("id", "title", "status"))
        if not key or not title:
            reading.broken.append(Broken(place, wrong("an issue has an id and a title")))
        elif status == "tombstone":
            reading.left_out["deleted in beads"] += 1
        elif status not in _TASK:
            reading.broken.append(Broken(place, wrong(f"status {status!r:.80} is none of {', '.join(_TASK)}")))
        elif key in issues:
            reading.broken.append(Broken(place, wrong(f"{key:.80} stands in {issues[key][0]} already")))
        else:
            issues[key] = place, issue
    for key in _in_order(issues):
        reading.entries.append(_entry(name, key, *issues[key], issues, reading))
    return reading


def _entry(
    name: str, key: str, place: str, issue: Mapping[str, Any], issues: Mapping[str, Any], reading: Reading
) -> ForeignEntry:
    is_bug = _is_bug(issue)
    fields: dict[str, Any] = {
        "type": "bug" if is_bug else "task",
        "summary": text_of(issue["title"]),
        "detailed_explanation": _explained(issue) or None,
        "status": (_ERROR if is_bug else _TASK)[text_of(issue["status"])],
        "timestamp": _moment(issue.get("created_at")),
        "evidence": [f"{name}: {key}"],
    }
    if is_bug:
        priority = issue.get("priority")
        fields["severity"] = _SEVERITY.get(priority, "medium") if isinstance(priority, int) else "medium"
    elif assignee := text_of(issue.get("assignee")):
        fields["assigned_to"] = assignee
    if (url := text_of(issue.get("external_ref"))).startswith(("http://", "https://")):
        fields["tracked_by"] = url
    links = []
    _count_unread(issue, reading)
    for kind, other in _named(issue):
        if other not in issues:
            reading.notes.append(f"{place}: {key} names {other:.80} ({kind:.40}), which is not in the file")
            continue
        blocks = kind == "blocks" and not is_bug and not _is_bug(issues[other][1])
        links.append(("blockedBy" if blocks else "evidence" if kind == "discovered-from" else "about", other))
    known = {name: value for name, value in fields.items() if value is not None}
    return ForeignEntry(key, place, known, tuple(links), line=line_of(place))


def _is_bug(issue: Mapping[str, Any]) -> bool:
    return issue.get("issue_type") == "bug"


def _named(issue: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how an issue names which others."""
    listed = issue.get("dependencies")
    for dependency in listed if isinstance(listed, list) else ():
        if isinstance(dependency, dict) and (other := text_of(dependency.get("depends_on_id"))):
            yield text_of(dependency.get("type")) or "blocks", other


def _count_unread(issue: Mapping[str, Any], reading: Reading) -> None:
    """Count the parts of an issue that are not of the form beads gives them, and so are left out."""
    for name, part in (("dependencies", "depends_on_id"), ("labels", ""), ("comments", "text")):
        listed = issue.get(name)
        if listed is not None and not isinstance(listed, list):
            reading.left_out[f"{name} that are no list"] += 1
            continue
        for entry in listed or ():
            if not part and not text_of(entry):
                reading.left_out["a label that is no text"] += 1
            elif part and not (isinstance(entry, dict) and text_of(entry.get(part))):
                reading.left_out[f"an entry of {name} without {part}"] += 1


def _explained(issue: Mapping[str, Any]) -> str:
    """Return all that an issue says in prose."""
    parts = [
        f"{title}:\n{said}" if title else said for part, title in _PARTS.items() if (said := text_of(issue.get(part)))
    ]
    labels = issue.get("labels")
    if isinstance(labels, list) and (names := [text_of(label) for label in labels if text_of(label)]):
        parts.append(f"Labels: {', '.join(names)}")
    comments = issue.get("comments")
    for comment in comments if isinstance(comments, list) else ():
        if isinstance(comment, dict) and (said := text_of(comment.get("text"))):
            parts.append(f"{text_of(comment.get('author')) or 'Comment'}: {said}")
    return "\n\n".join(parts)


def _moment(value: Any) -> str | None:
    return value if isinstance(value, str) and parse_moment(value) else None


def _in_order(issues: Mapping[str, tuple[str, dict[str, Any]]]) -> Sequence[str]:
    """Return the keys, each after those it names, as far as they do not name each other."""
    ordered: dict[str, None] = {}
    met: set[str] = set()
    for first in issues:
        stack = [(first, False)]
        while stack:
            key, is_done = stack.pop()
            if is_done:
                ordered[key] = None
            elif key not in met:
                met.add(key)
                others = [other for _, other in _named(issues[key][1]) if other in issues and other not in met]
                stack += [(key, True), *((other, False) for other in reversed(others))]
    return list(ordered)
